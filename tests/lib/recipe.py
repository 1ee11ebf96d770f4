#!/usr/bin/env python3
"""The locks that other programs use, as they are usually written, to contend with libpawl:

ArticleLock  a hash of owner and count: exists/hset/pexpire, hexists/hincrby/pexpire; release by
             hincrby -1 and del at zero; renewal by hexists and pexpire. Redisson's layout.
StringLock   SET NX PX; release by compare and delete."""
import time

ACQUIRE = """
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])
"""

RELEASE = """
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
local count = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if count > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
return 1
"""

RENEW = """
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 1
end
return 0
"""

RELEASE_STRING = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class ArticleLock:
    def __init__(self, client, key, owner, lease_ms=2000):
        self.client, self.key, self.owner, self.lease_ms = client, key, owner, lease_ms

    def script(self, text):
        return self.client.command("EVAL", text, 1, self.key, self.lease_ms, self.owner)

    def try_acquire(self):
        return self.script(ACQUIRE) is None

    def acquire(self, wait_s):
        return wait_for(self.try_acquire, wait_s)

    def renew(self):
        return self.script(RENEW) == 1

    def release(self):
        """1: free, 0: still held, None: not the owner."""
        return self.script(RELEASE)


class StringLock:
    def __init__(self, client, key, owner, lease_ms=2000):
        self.client, self.key, self.owner, self.lease_ms = client, key, owner, lease_ms

    def try_acquire(self):
        return self.client.command("SET", self.key, self.owner, "NX", "PX",
                                   self.lease_ms) is not None

    def acquire(self, wait_s):
        return wait_for(self.try_acquire, wait_s)

    def release(self):
        return self.client.command("EVAL", RELEASE_STRING, 1, self.key, self.owner)


def wait_for(attempt, wait_s):
    end = time.monotonic() + wait_s
    while not attempt():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
