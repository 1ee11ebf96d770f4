-- probe: may this user do what a release needs? Run at each login on a key that does not exist, so
-- that a missing right shows then and not when a lock is to be given back.
-- KEYS: a key under the user's prefix that nobody writes
-- Answer: {0, now us}   {-35, now us, text, command} the first refusal
local K = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tries = {{'EXISTS', K}, {'PTTL', K}, {'HMGET', K, 'x'}, {'HGETALL', K}, {'HDEL', K, 'x'},
               {'DEL', K}, {'PEXPIRE', K, '1'}}
for i = 1, #tries do
  local r = redis.pcall(unpack(tries[i]))
  if type(r) == 'table' and r.err then return {-35, now, r.err, tries[i][1]} end
end
return {0, now}
