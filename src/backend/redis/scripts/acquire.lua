-- acquire: grant a lock, let its owner in again, or say for how long it is held.
-- KEYS: lock, queue, counter of the slot
-- ARGV: owner, hold id, lease ms, span ms (0: no latest end), not_after us, floor, who
-- Answer: {0, now us, token, count, remaining ms}   {1 busy, now, remaining ms (-1: no expiry)}
--         {5, now} a tombstone refused it           {-33, now} arrived after not_after
--         {-8, now} not a lock   {-1, now} bad arguments   {-35, now, text} refused, nothing written
local K, Q, F = KEYS[1], KEYS[2], KEYS[3]
local owner, field = ARGV[1], '@h' .. ARGV[2]
local lease, span = tonumber(ARGV[3]), tonumber(ARGV[4])
local not_after, floor, who = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if not (lease and span and not_after and floor and who and F and lease >= 1) then
  return {-1, now}
end
if now > not_after then return {-33, now} end

local call, pcall, format = redis.call, redis.pcall, string.format
local ms = math.floor(now / 1000)
local n = call('EXISTS', K, Q)
if n > 0 then
  local left = call('PTTL', K)
  local h
  if left ~= -2 then
    h = pcall('HMGET', K, owner, field, '@t', '@l', '@e', '@r')
    if h.err then
      if not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, now, h.err} end
      -- SET NX PX of other clients: a holder like any other, never overwritten.
      if call('TYPE', K).ok == 'string' then return {1, now, left} end
      return {-8, now}
    end
    local token, longest = tonumber(h[3]), tonumber(h[4])
    if not (token and longest) then return {1, now, left} end
    local last = tonumber(h[5]) or 0
    if left < 0 or left > longest then
      -- PERSIST, or a clock stepped back: nothing may be held longer than its lease.
      left = longest
      if last > 0 and last - ms < left then left = math.max(last - ms, 1) end
      local r = pcall('PEXPIRE', K, format('%.0f', left))
      if type(r) == 'table' then return {-35, now, r.err} end
    end
    local count = tonumber(h[1])
    if not count or h[6] then return {1, now, left} end
    if h[2] then return {0, now, token, count, left} end
    -- Re-entry; the tombstone is looked at below, and n tells whether there can be one.
    if n == 2 and pcall('HEXISTS', Q, 'x' .. ARGV[2]) == 1 then return {5, now} end
    local r = pcall('HSET', K, owner, format('%.0f', count + 1), field, ARGV[3],
                    '@l', format('%.0f', math.max(lease, longest)))
    if type(r) == 'table' then return {-35, now, r.err} end
    local ttl = lease
    if last > 0 and last - ms < ttl then ttl = last - ms end
    if ttl > left and pcall('PEXPIRE', K, format('%.0f', ttl)) == 1 then left = ttl end
    return {0, now, token, count + 1, left}
  end
  if pcall('HEXISTS', Q, 'x' .. ARGV[2]) == 1 then return {5, now} end
end

-- Free: mint max(last + 1, now, floor). One command unless the counter is ahead of the clock.
local token = now
if floor > token and floor <= now + 86400000000 then token = floor end
local old = pcall('GETSET', F, format('%.0f', token))
if type(old) == 'table' then return {-35, now, old.err} end
old = tonumber(old or 0) or 0
if not (old >= 0 and old < 9007199254740991) then old = 0 end
local ahead = false
if old >= token then token, ahead = old + 1, true end
if floor > token and floor <= old + 86400000000 then token, ahead = floor, true end
if ahead then pcall('GETSET', F, format('%.0f', token)) end

local last, ttl = 0, lease
if span > 0 then
  last = ms + span
  if span < ttl then ttl = span end
end
local r = pcall('HSET', K, owner, '1', '@t', format('%.0f', token), '@l', ARGV[3],
                '@g', format('%.0f', ms), '@e', format('%.0f', last), '@w', who, field, ARGV[3])
if type(r) == 'number' then r = pcall('PEXPIRE', K, format('%.0f', ttl)) end
if type(r) == 'table' then
  -- A user without the right to PEXPIRE must not leave a lock that never ends.
  pcall('DEL', K)
  return {-35, now, r.err}
end
return {0, now, token, 1, ttl}
