-- check: a client asks, for some of its waiters of one lock, whether they still stand in the queue.
-- Says that it lives, sets the whole lease for those that were handed the lock, and hands over a
-- lock that it finds free.
-- KEYS: lock, queue, counter of the slot
-- ARGV: floor, inbox, then of each waiter: hold id, owner, lease ms, entry
-- Answer: {0, now us, remaining ms (-2: free), 1 if the next turn is inbox's, then of each waiter:
--         -1 queued, 0 neither, or its token} and, if the lock was handed to a waiter that was not
--         named, id and token   {-8, now} not a lock   {-35, now, text} refused, nothing written
--         Remaining 0 and 1: free, with dead waiters still to be passed over; ask again at once.
local K, Q, F, inbox = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
local call, pcall, format = redis.call, redis.pcall, string.format
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = math.floor(now / 1000)
--@include tidy
--@include hand_over
local kind = call('TYPE', K).ok
if kind ~= 'none' and kind ~= 'hash' and kind ~= 'string' then return {-8, now} end
local id, token, pause = false, nil, nil
if call('EXISTS', Q) == 1 then
  local r = pcall('ZADD', Q, format('%.0f', 1e15 + ms), 'i' .. inbox)
  if type(r) == 'table' then return {-35, now, r.err} end
  if call('PTTL', Q) < 10000 then call('PEXPIRE', Q, 10000) end
  local others = kind == 'none' and call('ZSCORE', Q, 'f')
  if others and tonumber(others) - 4e15 > now then
    -- It was freed for other kinds of clients as well: theirs is the next moment.
    pause = math.ceil((tonumber(others) - 4e15 - now) / 1000)
  elseif kind == 'none' then
    id, token = hand_over(K, Q, F, now, tonumber(ARGV[1]) or 0, inbox)
    if id then kind = 'hash' end
  end
end
if kind == 'hash' then
  -- PERSIST, or a clock stepped back: waiters only ask here, so here it ends (see acquire).
  local h, left = call('HMGET', K, '@l', '@e', '@t'), call('PTTL', K)
  local longest, last = tonumber(h[1]), tonumber(h[2]) or 0
  if h[3] and longest and (left < 0 or left > longest) then
    if last > 0 then longest = math.min(longest, math.max(last - ms, 1)) end
    local r = pcall('PEXPIRE', K, format('%.0f', longest))
    if type(r) == 'table' then return {-35, now, r.err} end
  end
end
local answer, n, more = {0, now, 0, 0}, 4, token == 'more'
local finish
for i = 3, #ARGV, 4 do
  local code = 0
  local h = kind == 'hash' and
    call('HMGET', K, '@h' .. ARGV[i], '@t', '@e', ARGV[i + 1], '@r') or {}
  if h[1] and h[2] then
    local ttl, left = tonumber(ARGV[i + 2]), call('PTTL', K)
    finish = tonumber(h[3]) or 0
    if finish > 0 then ttl = math.min(ttl, finish - ms) end
    -- A revoked lock passes on when its time ends: not a claim's longer one.
    if ttl > left and not h[5] then call('PEXPIRE', K, format('%.0f', ttl)) end
    code = tonumber(h[2])
    if ARGV[i] == id then id = false end
  elseif h[2] and h[4] then
    -- Its owner holds the lock by another call: it need not wait, it may enter again.
    call('ZREM', Q, ARGV[i + 3])
  elseif call('ZSCORE', Q, ARGV[i + 3]) then
    code = -1
  end
  n = n + 1
  answer[n] = code
end
answer[3] = more and 0 or pause or call('PTTL', K)

-- Is the next turn ours? Clients that should have been heard of by now are left out: they will be
-- dead when the lock expires, and somebody must look then.
local from, quiet = 0, {}
while answer[4] == 0 and from < 128 do
  local entries = call('ZRANGE', Q, from, from == 0 and 0 or from + 31)
  from = from + #entries
  if #entries == 0 then break end
  for i = 1, #entries do
    local other = string.match(entries[i], '^w%x+\n([^\n]*)\n')
    if more or other == inbox then
      answer[4] = 1
    elseif other and quiet[other] == nil then
      local seen = call('ZSCORE', Q, 'i' .. other)
      quiet[other] = not seen or ms - (tonumber(seen) - 1e15) > 1000
    end
    if answer[4] == 1 or not (other and quiet[other]) then
      from = 128
      break
    end
  end
end
if id then answer[n + 1], answer[n + 2] = id, format('%.0f', token) end
return answer
