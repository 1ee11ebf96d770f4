"""An imitation of Redisson's RLock for tests: its scripts' meaning, and its way of waiting:
subscribe, try, sleep until a message or the remaining time, try again. Written from a description
of the layout; no line of Redisson's."""
import secrets
import threading
import time
import uuid

TAKE = """
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return redis.call('PTTL', KEYS[1])
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return nil
"""
GIVE = """
local known = redis.call('GET', KEYS[3])
if known then return tonumber(known) end
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
local left = redis.call('HINCRBY', KEYS[1], ARGV[3], -1)
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[3], 0, 'PX', ARGV[4])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], 1, 'PX', ARGV[4])
return 1
"""


def channel_of(name):
    return "redisson_lock__channel:" + (name if "{" in name else "{" + name + "}")


class RLock:
    """One thread of one such client. spans: when it held the lock, by time.monotonic()."""

    def __init__(self, server, name, lease_ms=30000):
        self.db, self.sub = server.client(), server.client(timeout=0.05)
        self.name, self.lease_ms = name, lease_ms
        self.field = f"{uuid.uuid4()}:{threading.get_ident()}"
        self.spans = []
        self.messages = 0

    def close(self):
        self.db.close()
        self.sub.close()

    def take(self):
        """None if taken, else the remaining ms."""
        return self.db.command("EVAL", TAKE, 1, self.name, self.lease_ms, self.field)

    def lock(self, wait_s):
        """Its loop; True if taken within wait_s."""
        end = time.monotonic() + wait_s
        if self.take() is None:
            return self.taken()
        self.sub.sock.settimeout(10)
        self.sub.command("SUBSCRIBE", channel_of(self.name))
        try:
            while True:
                left = self.take()
                if left is None:
                    return self.taken()
                sleep = end - time.monotonic()
                if sleep <= 0:
                    return False
                if left >= 0:
                    sleep = min(sleep, left / 1000)
                self.sub.sock.settimeout(max(sleep, 0.001))
                self.await_message()
        finally:
            self.sub.sock.settimeout(10)
            self.sub.send("UNSUBSCRIBE", channel_of(self.name))
            while self.sub.read()[0] != b"unsubscribe":
                pass

    def await_message(self):
        try:
            message = self.sub.read()
        except TimeoutError:
            # A file that timed out cannot be read any more: begin with a new one.
            self.sub.file = self.sub.sock.makefile("rb")
            return
        assert message[0] == b"message", message
        assert int(message[2]) == 0  # Redisson reads the whole of it as a number
        self.messages += 1

    def taken(self):
        self.spans.append([time.monotonic(), None])
        return True

    def unlock(self):
        self.spans[-1][1] = time.monotonic()
        latch = f"redisson_unlock_latch:{{{self.name}}}:{secrets.token_hex(16)}"
        done = self.db.command("EVAL", GIVE, 3, self.name, channel_of(self.name), latch, 0,
                               self.lease_ms, self.field, 16000)
        self.db.command("DEL", latch)
        return done
