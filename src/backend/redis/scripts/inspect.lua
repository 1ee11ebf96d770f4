-- inspect: what an operator may see. Writes nothing and never answers a hold id.
-- KEYS: lock, queue
-- Answer: {0, now us, 'hash', remaining ms, number of holds, owners, field, value, ...}
--         {0, now us, 'string', remaining ms, value, shortened}
--         {6, now} free   {-8, now} not a lock
--         The first two end in an array: number of waiters, and of the first 100 of them: asked
--         ms, owner, who.
local K, Q = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local kind = redis.call('TYPE', K).ok
if kind == 'none' then return {6, now} end
local waiters = {0}
if redis.call('TYPE', Q).ok == 'zset' then
  waiters[1] = redis.call('ZCOUNT', Q, 1, 1e12)
  local entries = redis.call('ZRANGE', Q, 0, 99)
  for i = 1, #entries do
    local asked, owner, who = string.match(entries[i],
      '^w%x+\n[^\n]*\n%d+\n%d+\n%d+\n(%d+)\n([^\n]*)\n(.*)$')
    if not asked then break end
    local n = #waiters
    waiters[n + 1], waiters[n + 2], waiters[n + 3] = asked, owner, who
  end
end
if kind == 'string' then
  return {0, now, kind, redis.call('PTTL', K), redis.call('GETRANGE', K, 0, 127),
          waiters}
end
if kind ~= 'hash' then return {-8, now} end
local all
-- Somebody else's large hash must not hold up the server.
if redis.call('HLEN', K) > 512 then
  all = redis.call('HSCAN', K, '0', 'COUNT', 64)[2]
else
  all = redis.call('HGETALL', K)
end
local answer = {0, now, kind, redis.call('PTTL', K), 0, 0}
local holds, owners, n = 0, 0, 6
for i = 1, #all, 2 do
  local field = all[i]
  if string.sub(field, 1, 2) == '@h' then
    holds = holds + 1
  else
    local owner = string.sub(field, 1, 1) ~= '@'
    if owner then owners = owners + 1 end
    if not owner or owners == 1 then
      answer[n + 1], answer[n + 2] = string.sub(field, 1, 256), string.sub(all[i + 1], 1, 256)
      n = n + 2
    end
    if n >= 64 then break end
  end
end
answer[5], answer[6] = holds, owners
answer[n + 1] = waiters
return answer
