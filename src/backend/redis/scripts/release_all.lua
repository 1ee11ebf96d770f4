-- release_all: the owner gives up all its ids under one token (end of the maximum hold).
-- KEYS: lock, queue   ARGV: owner, token
-- Answer: {0, 0} free   {5, 0} not this owner under this token   {-35, 0, text} refused
local K = KEYS[1]
local h = redis.pcall('HMGET', K, ARGV[1], '@t')
if h.err and not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, 0, h.err} end
if h.err or not h[1] or h[2] ~= ARGV[2] then return {5, 0} end
local r = redis.pcall('DEL', K)
if type(r) == 'table' then return {-35, 0, r.err} end
return {0, 0}
