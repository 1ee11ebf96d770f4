-- set_if: write a resource if the claim on it is still this holder's.
-- KEYS: claim, resource   ARGV: owner, token, value
-- Answer: {0, 0} written   {7, 0} the claim is another's   {-8, 0} not a claim, or the resource is
--         not a string   {-1, 0} bad arguments   {-35, 0, text} refused
local C, R, owner, token, value = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
if not (R and owner and token and value) then return {-1, 0} end
local h = redis.pcall('HMGET', C, 'token', 'owner')
if h.err then
  if string.find(h.err, 'WRONGTYPE', 1, true) then return {-8, 0} end
  return {-35, 0, h.err}
end
if h[1] ~= token or h[2] ~= owner then return {7, 0} end
local kind = redis.call('TYPE', R).ok
if kind ~= 'none' and kind ~= 'string' then return {-8, 0} end
local r = redis.pcall('SET', R, value)
if r.err then return {-35, 0, r.err} end
return {0, 0}
