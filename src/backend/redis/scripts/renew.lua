-- renew: set the full lease again, for many locks, each on its own. Never creates a key, never
-- shortens an expiry and never passes the latest end.
-- KEYS: locks   ARGV: token and lease ms of each
-- Answer: {0, now us, place, code, remaining ms, ...}: only the locks that differ from "renewed,
--         the whole lease remains". Codes: 0 renewed, 10 taken, 14 revoked.
--         {-1, now} bad arguments   {-35, now, text} refused by the server
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = math.floor(now / 1000)
local pcall, format, KEYS, ARGV = redis.pcall, string.format, KEYS, ARGV
if #ARGV ~= 2 * #KEYS then return {-1, now} end
for i = 2, #ARGV, 2 do
  if not ((tonumber(ARGV[i]) or 0) >= 1) then return {-1, now} end
end
local answer, n = {0, now}, 2
for i = 1, #KEYS do
  local K, lease = KEYS[i], tonumber(ARGV[2 * i])
  local h = pcall('HMGET', K, '@t', '@l', '@e', '@r')
  local code, left = 0, lease
  if h.err and not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, now, h.err} end
  if h.err or h[1] ~= ARGV[2 * i - 1] then
    code, left = 10, 0
  elseif h[4] then
    code, left = 14, redis.call('PTTL', K)
  else
    local longest, last, ttl = tonumber(h[2]) or lease, tonumber(h[3]) or 0, lease
    if longest > lease then
      -- Another hold of the owner has a longer lease: what it has stays.
      local pttl = redis.call('PTTL', K)
      if pttl < 0 or pttl > longest then
        ttl = longest
      elseif pttl >= lease then
        ttl = nil
        left = pttl
      end
    end
    if ttl then
      if last > 0 and last - ms < ttl then ttl = math.max(last - ms, 1) end
      local r = pcall('PEXPIRE', K, format('%.0f', ttl))
      if type(r) == 'table' then return {-35, now, r.err} end
      left = ttl
    end
  end
  if code ~= 0 or left ~= lease then
    answer[n + 1], answer[n + 2], answer[n + 3] = i, code, left
    n = n + 3
  end
end
return answer
