-- hand_over: the lock K is free; give it to the first waiter that lives. Part of every script that
-- may free a lock or find one free. The queue Q is a sorted set:
--   w<id>\n<inbox>\n<lease ms>\n<span ms>\n<deadline us>\n<asked ms>\n<owner>\n<who>   its ticket
--   i<inbox>   1e15 + when it was last heard of, ms
--   x<id>      4e15 + until when this id is refused, us
--   f          4e15 + until when other kinds of clients have the turn, us (see wake)
-- A waiter lives if its own deadline has not passed and its inbox was heard of within 1.5 s, and it
-- must be there to be told: 0 receivers count as dead. An inbox that begins with ~ cannot be told:
-- the lock stays free for it until its client asks, as it does often. One call tells at most 64
-- inboxes in vain and passes over some 1000 dead waiters; the next re-check goes on from there.
-- The lock is written before the waiter is told, so that nobody believes in a grant that failed.
-- mine: the inbox of the calling client, which reads of a grant to it in the answer.
-- Returns the id and token of a grant to mine; else false and 'told' (somebody else is served),
-- 'asks' (the turn is of one who will ask), 'more' (dead ones are left to be passed over), or
-- false: nobody waits.
local function hand_over(K, Q, F, now, floor, mine)
  local call, pcall, format = redis.call, redis.pcall, string.format
  local ms, page, dead, vain, silent, token =
    math.floor(now / 1000), 1, 0, 0, {}, nil
  while dead < 1000 and vain < 64 do
    local entries, gone = call('ZRANGE', Q, 0, page - 1), {}
    local last = #entries < page
    page = math.min(page * 4, 256)
    for i = 1, #entries do
      local m = entries[i]
      local id, inbox, lease, span, deadline, owner, who = string.match(m,
        '^w(%x+)\n([^\n]*)\n(%d+)\n(%d+)\n(%d+)\n%d+\n([^\n]*)\n(.*)$')
      if not id then
        last = true
        break
      end
      local lives = deadline == '0' or now <= tonumber(deadline)
      if lives and inbox ~= mine then
        local seen = not silent[inbox] and call('ZSCORE', Q, 'i' .. inbox)
        lives = seen and ms - (tonumber(seen) - 1e15) <= 1500
        if not lives then silent[inbox] = true end
        if lives and string.sub(inbox, 1, 1) == '~' then
          if #gone > 0 then call('ZREM', Q, unpack(gone)) end
          return false, 'asks'
        end
      end
      if lives and not token then
        -- Without the counter no token can be trusted to rise: the lock stays free for who asks.
        local old = pcall('GET', F)
        if type(old) == 'table' then return false, false end
        old = tonumber(old or 0) or 0
        if not (old >= 0 and old < 9007199254740991) then old = 0 end
        token = math.max(old + 1, now)
        if floor > token and floor <= token + 86400000000 then token = floor end
      end
      gone[#gone + 1] = m
      if lives then
        -- The first write: at the memory limit only a script that begins so goes through.
        call('ZREM', Q, unpack(gone))
        gone = {}
        if pcall('SET', F, format('%.0f', token)).err then return false, false end
        local claim, finish = math.min(1500, tonumber(lease)), 0
        if span ~= '0' then
          finish = ms + tonumber(span)
          claim = math.min(claim, tonumber(span))
        end
        call('HSET', K, owner, '1', '@t', format('%.0f', token), '@l', lease, '@g',
             format('%.0f', ms), '@e', format('%.0f', finish), '@w', who, '@h' .. id, lease)
        call('PEXPIRE', K, format('%.0f', claim))
        if inbox == mine then return id, token end
        local told = pcall('PUBLISH', inbox, id .. format(' %.0f', token))
        if type(told) == 'number' and told > 0 then return false, 'told' end
        call('DEL', K)
        silent[inbox], vain = true, vain + 1
        if vain == 64 then
          last = false
          break
        end
      end
      dead = dead + 1
    end
    if #gone > 0 then call('ZREM', Q, unpack(gone)) end
    if last then
      tidy(Q)
      return false, false
    end
  end
  return false, 'more'
end
