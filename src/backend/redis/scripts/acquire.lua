-- acquire: grant a lock, let its owner in again, queue for it, or say for how long it is held.
-- KEYS: lock, queue, counter of the slot
-- ARGV: owner, hold id, lease ms, span ms (0: no latest end), not_after us, floor, who,
--       and only to queue or to barge: inbox ('': do not queue), entry, ticket (0: a new one),
--       barge (1 or 0)
-- Answer: {0, now us, token, count, remaining ms}   {1 busy, now, remaining ms (-1: no expiry)}
--         {100 queued, now, remaining ms, ticket}   {-34, now} the queue is full
--         {5, now} a tombstone refused it           {-33, now} arrived after not_after
--         {-8, now} not a lock   {-1, now} bad arguments   {-35, now, text} nothing written
--         Answers 1 and 100 end in id and token if the lock was handed to another waiter of inbox.
local K, Q, F = KEYS[1], KEYS[2], KEYS[3]
local call, pcall, format, sub = redis.call, redis.pcall, string.format, string.sub
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local lease, span, floor = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6])
if not (lease and span and floor and ARGV[7] and lease >= 1) then return {-1, now} end
if now > (tonumber(ARGV[5]) or 0) then return {-33, now} end

local n = call('EXISTS', K, Q)
if n > 0 then
  -- Not in the usual case, which shall not pay for making the functions.
  local owner, field, ms = ARGV[1], '@h' .. ARGV[2], math.floor(now / 1000)
  local inbox, entry, ticket = ARGV[8] or '', ARGV[9] or '', tonumber(ARGV[10] or 0) or 0
  --@include tidy
  --@include hand_over

  -- Busy: take a place in the queue, if one is wanted.
  local function busy(left, id, token)
    local answer = {1, now, left}
    if inbox ~= '' then
      local place = call('ZSCORE', Q, entry)
      if place then
        place = tonumber(place)
      else
        if call('ZCOUNT', Q, 1, 1e12) >= 10000 then return {-34, now} end
        place = ticket
        if place == 0 then
          local tail = call('ZREVRANGEBYSCORE', Q, 1e12, 1, 'WITHSCORES', 'LIMIT', 0, 1)
          place = (tonumber(tail[2] or 0) or 0) + 1
        end
        if place % 64 == 0 then
          -- Old marks are swept now and then, since each join refreshes the expiry of all.
          call('ZREMRANGEBYSCORE', Q, 1e15, format('%.0f', 1e15 + ms - 10000))
          call('ZREMRANGEBYSCORE', Q, 4e15, format('%.0f', 4e15 + now))
        end
        local r = pcall('ZADD', Q, place, entry, format('%.0f', 1e15 + ms), 'i' .. inbox)
        if type(r) == 'table' then return {-35, now, r.err} end
      end
      if call('PTTL', Q) < 10000 then call('PEXPIRE', Q, 10000) end
      answer = {100, now, left, place}
    end
    if id then
      answer[#answer + 1], answer[#answer + 2] = id, format('%.0f', token)
    end
    return answer
  end

  local function buried()
    return pcall('ZSCORE', Q, 'x' .. ARGV[2])
  end

  local left = call('PTTL', K)
  local h
  if left ~= -2 then
    h = pcall('HMGET', K, owner, field, '@t', '@l', '@e', '@r')
    if h.err then
      if not string.find(h.err, 'WRONGTYPE', 1, true) then return {-35, now, h.err} end
      -- SET NX PX of other clients: a holder like any other, never overwritten.
      if call('TYPE', K).ok == 'string' then return busy(left) end
      return {-8, now}
    end
    local token, longest = tonumber(h[3]), tonumber(h[4])
    if not (token and longest) then return busy(left) end
    local last = tonumber(h[5]) or 0
    if left < 0 or left > longest then
      -- PERSIST, or a clock stepped back: nothing may be held longer than its lease.
      left = longest
      if last > 0 and last - ms < left then left = math.max(last - ms, 1) end
      local r = pcall('PEXPIRE', K, format('%.0f', left))
      if type(r) == 'table' then return {-35, now, r.err} end
    end
    local count = tonumber(h[1])
    if count and h[2] and not h[6] then return {0, now, token, count, left} end
    if n == 2 and buried() then return {5, now} end
    if not count or h[6] then return busy(left) end
    -- Re-entry. A place in the queue, if this id has one, goes.
    if n == 2 and entry ~= '' then call('ZREM', Q, entry) end
    local r = pcall('HSET', K, owner, format('%.0f', count + 1), field, ARGV[3],
                    '@l', format('%.0f', math.max(lease, longest)))
    if type(r) == 'table' then return {-35, now, r.err} end
    local ttl = lease
    if last > 0 and last - ms < ttl then ttl = last - ms end
    if ttl > left and pcall('PEXPIRE', K, format('%.0f', ttl)) == 1 then left = ttl end
    return {0, now, token, count + 1, left}
  end
  if buried() then return {5, now} end
  if ARGV[11] ~= '1' then
    local others = call('ZSCORE', Q, 'f')
    if others and tonumber(others) - 4e15 > now then
      -- It was freed for other kinds of clients as well: theirs is the next moment.
      return busy(math.ceil((tonumber(others) - 4e15 - now) / 1000))
    end
    -- Free with a queue, after an expiry or somebody's DEL: the first in it has the turn.
    local id, other = hand_over(K, Q, F, now, floor, inbox)
    if id == ARGV[2] then
      -- "other" is the token. What was a claim becomes the whole lease: this is its answer.
      local ttl = lease
      if span > 0 and span < ttl then ttl = span end
      call('PEXPIRE', K, format('%.0f', ttl))
      return {0, now, other, 1, ttl}
    end
    if id then return busy(math.min(1500, lease), id, other) end
    if other then return busy(call('PTTL', K)) end
  end
  if entry ~= '' then call('ZREM', Q, entry) end
end

-- Free: mint max(last + 1, now, floor). One command unless the counter is ahead of the clock. The
-- digits are cut from the server's own text where that will do: to print a number costs as much as
-- half a command.
local text = time[1] .. sub('00000' .. time[2], -6)
local ms, token = sub(text, 1, 13), now
if floor > token and floor <= now + 86400000000 then
  token = floor
  text = format('%.0f', token)
end
local old = pcall('GETSET', F, text)
if old and (old.err or #old ~= #text or old >= text) then
  if old.err then return {-35, now, old.err} end
  old = tonumber(old) or 0
  if not (old >= 0 and old < 9007199254740991) then old = 0 end
  if old >= token then token = old + 1 end
  if floor > token and floor <= old + 86400000000 then token = floor end
  text = format('%.0f', token)
  pcall('GETSET', F, text)
end

local last, ttl = '0', lease
if span > 0 then
  last = format('%.0f', ms + span)
  if span < ttl then ttl = span end
end
local r = pcall('HSET', K, ARGV[1], '1', '@t', text, '@l', ARGV[3], '@g', ms, '@e', last, '@w',
                ARGV[7], '@h' .. ARGV[2], ARGV[3])
if type(r) == 'number' then r = pcall('PEXPIRE', K, ttl == lease and ARGV[3] or ARGV[4]) end
if type(r) == 'table' then
  -- A user without the right to PEXPIRE must not leave a lock that never ends.
  pcall('DEL', K)
  return {-35, now, r.err}
end
return {0, now, token, 1, ttl}
