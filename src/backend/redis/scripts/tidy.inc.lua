-- tidy: nothing of a queue outlives its waiters but tombstones. Part of the scripts that may find
-- or make a queue empty, before hand_over.
local function tidy(Q)
  local first = redis.call('ZRANGE', Q, 0, 0)[1]
  if first and string.sub(first, 1, 1) ~= 'w' and redis.call('ZCOUNT', Q, 4e15, '+inf') == 0 then
    redis.call('DEL', Q)
  end
end
