-- extend: a new lease for one hold id from now on, also a shorter one if it is the only id.
-- KEYS: lock   ARGV: owner, hold id, token, lease ms
-- Answer: {0, now us, remaining ms}   {5, now} not held   {14, now} revoked
--         {-1, now} bad arguments
--         {-35, now, text} refused, nothing written
local K, owner, field, lease = KEYS[1], ARGV[1], '@h' .. ARGV[2], tonumber(ARGV[4])
local pcall, format = redis.pcall, string.format
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if not (lease and lease >= 1) then return {-1, now} end
local h = pcall('HMGET', K, owner, field, '@t', '@e', '@r')
if h.err and not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, now, h.err} end
if h.err or not (h[1] and h[2]) or h[3] ~= ARGV[3] then return {5, now} end
if h[5] then return {14, now} end
local ms, last, ttl = math.floor(now / 1000), tonumber(h[4]) or 0, lease
local longest = lease
if h[1] ~= '1' then
  -- Others of the owner rely on what they have: keep it.
  local all = redis.call('HGETALL', K)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == '@h' and all[i] ~= field then
      longest = math.max(longest, tonumber(all[i + 1]) or 0)
    end
  end
  ttl = math.max(ttl, math.min(redis.call('PTTL', K), longest))
end
if last > 0 and last - ms < ttl then ttl = math.max(last - ms, 1) end
local r = pcall('PEXPIRE', K, format('%.0f', ttl))
if type(r) == 'table' then return {-35, now, r.err} end
pcall('HSET', K, field, ARGV[4], '@l', format('%.0f', math.max(longest, ttl)))
return {0, now, ttl}
