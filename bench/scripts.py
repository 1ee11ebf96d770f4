#!/usr/bin/env python3
"""Redis time per script call beside the plain recipe's: ./dev bench scripts

A private redis-server runs each script in batches, round-robin, and counts their time itself (INFO
commandstats, EVALSHA). The smallest mean of a batch is printed: what disturbs a batch only adds to
it. The recipe is the usual one with a hash of owner and count (exists, hset, pexpire; hexists,
hincrby, del)."""
import os
import re
import sys

SOURCE = os.path.realpath(os.path.join(__file__, "../.."))
sys.path[:0] = [os.path.join(SOURCE, "tests", "lib"), os.path.join(SOURCE, "tests", "script")]

import scripts  # noqa: E402
from redis_server import RedisServer  # noqa: E402

BATCHES = int(os.environ.get("BATCHES", "60"))
CALLS = 300
OWNER = "00112233445566778899aabbccddeeff"
LEASE = 10000
FAR_US = 9 * 10**15

RECIPE = {
    "acquire": """if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return nil
end
return redis.call('pttl', KEYS[1])""",
    "release": """if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
return 1""",
    "renew": """if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
return 0""",
}


class Bench:
    def __init__(self, client):
        self.client = client
        self.sha = {}
        for kind, texts in (("pawl", scripts.TEXTS), ("recipe", RECIPE)):
            for name, text in texts.items():
                self.sha[kind, name] = client.command("SCRIPT", "LOAD", text)

    def call(self, which, keys, *args):
        return self.client.command("EVALSHA", self.sha[which], len(keys), *keys, *args)

    def keys(self, number):
        name = f"k{number}"
        return [name, f"pawl:q:{{0}}:{name}", "pawl:f:{0}"]

    def batch(self, step):
        """Mean Redis time of the EVALSHA calls that step(i) makes, us."""
        self.client.command("CONFIG", "RESETSTAT")
        for number in range(CALLS):
            step(number)
        stats = self.client.command("INFO", "commandstats").decode()
        calls, usec = re.search(r"cmdstat_evalsha:calls=(\d+),usec=(\d+)", stats).groups()
        return int(usec) / int(calls)

    def pawl_acquire(self, number):
        answer = self.call(("pawl", "acquire"), self.keys(number), OWNER, scripts.hold_id(number),
                           LEASE, 180000, FAR_US, 0, "host 12 345 abcdef01")
        if answer[0] != 0:
            raise RuntimeError(f"acquire answered {answer}")
        return answer[2]

    def pawl_release(self, number):
        self.call(("pawl", "release"), self.keys(number), OWNER, scripts.hold_id(number), 0, 0,
                  "", "")

    def recipe(self, name, number):
        self.call(("recipe", name), [f"k{number}"], OWNER, LEASE)

    def renew_hundred(self, tokens):
        names = [f"k{number}" for number in range(100)]
        args = [part for token in tokens[:100] for part in (token, LEASE)]
        self.call(("pawl", "renew"), names, *args)

    def measure(self):
        """One round: each script once, in turn."""
        tokens = []
        times = {}
        times["pawl", "acquire"] = self.batch(lambda i: tokens.append(self.pawl_acquire(i)))
        times["pawl", "renew"] = self.batch(lambda i: self.renew_hundred(tokens)) / 100
        times["pawl", "release"] = self.batch(self.pawl_release)
        for name in ("acquire", "renew", "release"):
            times["recipe", name] = self.batch(lambda i, name=name: self.recipe(name, i))
        return times


def main():
    with RedisServer() as server:
        client = server.client()
        version = re.search(r"redis_version:(\S+)", client.command("INFO", "server").decode())[1]
        bench = Bench(client)
        best = {}
        for _ in range(BATCHES):
            for which, usec in bench.measure().items():
                best[which] = min(usec, best.get(which, usec))
    print(f"Redis {version}, {BATCHES} rounds of {CALLS} calls; us of Redis time per call")
    print(f"{'script':<28}{'pawl':>8}{'recipe':>8}{'ratio':>8}")
    for name, label in (("acquire", "acquire"), ("release", "release"),
                        ("renew", "renew (100 locks, per lock)")):
        ours, theirs = best["pawl", name], best["recipe", name]
        print(f"{label:<28}{ours:>8.2f}{theirs:>8.2f}{ours / theirs:>8.2f}")


main()
