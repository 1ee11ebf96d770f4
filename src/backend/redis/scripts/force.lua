-- force: an operator takes the lock away. Revokes by default: renewals are refused and the lock
-- passes on when its lease ends, so that the holder knows before. With "now" it passes on at once.
-- KEYS: lock, queue, counter of the slot   ARGV: token (0: any), now (1 or 0),
--       channel (as in release)
-- Answer: {0, now us}   {6, now} free   {5, now} another token   {-8, now} not a lock
--         {-1, now} another client's lock cannot be revoked   {-35, now, text} refused
local K, want, at_once = KEYS[1], ARGV[1], ARGV[2] == '1'
local pcall = redis.pcall
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
--@include tidy
--@include hand_over
local kind = redis.call('TYPE', K).ok
if kind == 'none' then return {6, now} end
if kind ~= 'string' and kind ~= 'hash' then return {-8, now} end
local h = kind == 'hash' and redis.call('HMGET', K, '@t', '@l', '@e') or {}
if want ~= '0' and h[1] ~= want then return {5, now} end
local r
if at_once then
  r = pcall('DEL', K)
elseif not h[1] then
  return {-1, now}
else
  -- An expiry that was taken away comes back first, else a revoked lock would stay for ever.
  local left, longest, last = redis.call('PTTL', K), tonumber(h[2]) or 0, tonumber(h[3]) or 0
  if left < 0 or left > longest then
    if last > 0 then longest = math.min(longest, last - math.floor(now / 1000)) end
    r = pcall('PEXPIRE', K, string.format('%.0f', math.max(longest, 1)))
    if type(r) == 'table' then return {-35, now, r.err} end
  end
  r = pcall('HSET', K, '@r', '1')
end
if type(r) == 'table' then return {-35, now, r.err} end
if at_once and ARGV[3] and ARGV[3] ~= '' then
  --@include wake
  wake(K, KEYS[2], ARGV[3], now)
elseif at_once and redis.call('EXISTS', KEYS[2]) == 1 then
  hand_over(K, KEYS[2], KEYS[3], now, 0, '')
end
return {0, now}
