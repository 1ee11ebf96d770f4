-- wake: the lock K was freed for everybody: say so on the channel of other clients. If some of them
-- listen, who are not told of our queue and are slower than ours, they have 20 ms: the mark f holds
-- back acquire and check, who hear of it on the channel. Else tell the first waiter of the queue Q
-- that can be told, who then tries.
local function wake(K, Q, channel, now)
  local heard = redis.pcall('PUBLISH', channel, '0')
  local entries, inboxes, ours = redis.call('ZRANGE', Q, 0, 255), {}, 0
  for i = 1, #entries do
    local inbox = string.match(entries[i], '^w%x+\n([^\n]*)\n')
    if not inbox then break end
    if not inboxes[inbox] then
      ours = ours + 1
      inboxes[inbox], inboxes[ours] = true, inbox
    end
  end
  if type(heard) == 'number' and heard > ours then
    local r = redis.pcall('ZADD', Q, string.format('%.0f', 4e15 + now + 20000), 'f')
    if type(r) == 'number' and redis.call('PTTL', Q) < 1000 then redis.pcall('PEXPIRE', Q, 1000) end
    return
  end
  for i = 1, math.min(ours, 64) do
    local told = redis.pcall('PUBLISH', inboxes[i], 'try ' .. K)
    if type(told) == 'number' and told > 0 then return end
  end
end
