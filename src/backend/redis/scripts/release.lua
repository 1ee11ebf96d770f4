-- release, and cancel of a wait that may have been granted: give one hold id back.
-- KEYS: lock, queue, counter of the slot
-- ARGV: owner, hold id, tombstone until us (0: none), floor, inbox, entry ('': was not queued),
--       channel ('': hand over; else free it for everybody and say so there)
-- Answer: {0, now or 0, 0} free   {4, now, count} still held
--         {5, now, count} not held by this id, but so often by its owner
--         {-35, now, text} refused, nothing written
--         Ends in id and token if the lock was handed to another waiter of inbox.
-- The first write is DEL or HDEL: only so a release goes through at the server's memory limit.
local K, Q, owner, field = KEYS[1], KEYS[2], ARGV[1], '@h' .. ARGV[2]
local pcall, format = redis.pcall, string.format
local tomb, entry, channel, now = tonumber(ARGV[3]) or 0, ARGV[6], ARGV[7] or '', 0
local queue = redis.call('EXISTS', Q) == 1
if tomb > 0 or queue or channel ~= '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local h = pcall('HMGET', K, field, owner, '@l')
if h.err then
  if not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, now, h.err} end
  h = {}
end

local code, count, id, token = 5, 0, false, nil
if h[1] then
  local last = h[2] == '1'
  local r
  if last then r = pcall('DEL', K) else r = pcall('HDEL', K, field) end
  if type(r) == 'table' then return {-35, now, r.err} end
  local longest = 0
  if not last then
    local all = redis.call('HGETALL', K)
    for i = 1, #all, 2 do
      if string.sub(all[i], 1, 2) == '@h' then
        count = count + 1
        longest = math.max(longest, tonumber(all[i + 1]) or 0)
      end
    end
  end
  if count == 0 then
    if not last then pcall('DEL', K) end
    code = 0
    if channel ~= '' then
      --@include wake
      wake(K, Q, channel, now)
    elseif queue then
      --@include tidy
      --@include hand_over
      id, token = hand_over(K, Q, KEYS[3], now, tonumber(ARGV[4]) or 0, ARGV[5])
    end
  else
    -- The lease of the rest; not below what remains, which the rest may rely on.
    longest = math.max(longest, redis.call('PTTL', K))
    longest = math.min(longest, tonumber(h[3]) or longest)
    pcall('HSET', K, owner, format('%.0f', count), '@l', format('%.0f', longest))
    code = 4
  end
else
  -- What its owner holds all the same, so that a release sent again can tell.
  count = tonumber(h[2] or 0) or 0
  if queue and entry ~= '' and pcall('ZREM', Q, entry) == 1 then
    --@include tidy
    tidy(Q)
  end
end
local answer = {code, now, count}
if id then answer[4], answer[5] = id, format('%.0f', token) end

if tomb > 0 then
  -- An earlier attempt with this id may still be on its way: it must not grant to nobody.
  local r = pcall('ZADD', Q, format('%.0f', 4e15 + tomb), 'x' .. ARGV[2])
  if type(r) == 'table' then
    if code == 5 then return {-35, now, r.err} end
    return answer
  end
  local ttl = math.max(10000, math.ceil((tomb - now) / 1000))
  local left = redis.call('PTTL', Q)
  if left < ttl and type(pcall('PEXPIRE', Q, format('%.0f', ttl))) == 'table' and left < 0 then
    pcall('DEL', Q)
  end
  -- Each write refreshes the expiry, so a hot key must sweep its old tombstones.
  pcall('ZREMRANGEBYSCORE', Q, 4e15, format('%.0f', 4e15 + now))
end
return answer
