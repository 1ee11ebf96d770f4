-- claim: the holder of a token claims a resource before it reads it.
-- KEYS: claim   ARGV: owner, token
-- Answer: {0, 0} claimed   {7, 0} a newer holder has claimed it   {-8, 0} not a claim
--         {-1, 0} bad arguments   {-35, 0, text} refused
local C, owner, token = KEYS[1], ARGV[1], tonumber(ARGV[2])
if not (owner and token) then return {-1, 0} end
local h = redis.pcall('HMGET', C, 'token', 'owner')
if h.err then
  if string.find(h.err, 'WRONGTYPE', 1, true) then return {-8, 0} end
  return {-35, 0, h.err}
end
local stored = tonumber(h[1] or 0)
if not stored then return {-8, 0} end
if token == stored and owner == h[2] then return {0, 0} end
if token <= stored then return {7, 0} end
local r = redis.pcall('HSET', C, 'token', ARGV[2], 'owner', owner)
if type(r) == 'table' then return {-35, 0, r.err} end
return {0, 0}
