-- release_all: the owner gives up all its ids under one token (end of the maximum hold).
-- KEYS: lock, queue, counter of the slot
-- ARGV: owner, token, floor, inbox, channel (as in release)
-- Answer: {0, now us} free   {5, now} not this owner under this token   {-35, now, text} refused
--         Ends in id and token if the lock was handed to a waiter of inbox.
local K = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
--@include tidy
--@include hand_over
local h = redis.pcall('HMGET', K, ARGV[1], '@t')
if h.err and not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, now, h.err} end
if h.err or not h[1] or h[2] ~= ARGV[2] then return {5, now} end
local r = redis.pcall('DEL', K)
if type(r) == 'table' then return {-35, now, r.err} end
if ARGV[5] and ARGV[5] ~= '' then
  --@include wake
  wake(K, KEYS[2], ARGV[5], now)
elseif redis.call('EXISTS', KEYS[2]) == 1 then
  local id, token = hand_over(K, KEYS[2], KEYS[3], now, tonumber(ARGV[3]) or 0, ARGV[4])
  if id then return {0, now, id, string.format('%.0f', token)} end
end
return {0, now}
