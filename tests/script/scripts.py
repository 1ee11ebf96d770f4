"""The shipped scripts as functions, run on a real server exactly as they are embedded."""
import os
import sys
import time

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.realpath(os.path.join(__file__, "../../.."))
FOLDER = os.path.join(SOURCE, "src", "backend", "redis", "scripts")
sys.path[:0] = [os.path.join(SOURCE, "tests", "lib"), os.path.join(SOURCE, "tools")]

import embed  # noqa: E402

BUSY, STILL_HELD, NOT_OWNER, FREE, STALE = 1, 4, 5, 6, 7
TAKEN, REVOKED, QUEUED = 10, 14, 100
USAGE, WRONGTYPE, LATE, REFUSED = -1, -8, -33, -35
DAY_US = 86400 * 10**6
ME = "00112233445566778899aabbccddeeff:me"
OTHER = "ffeeddccbbaa99887766554433221100:other"


def text_of(name):
    with open(os.path.join(FOLDER, name + ".lua"), encoding="utf-8") as file:
        return embed.strip_script(embed.include(file.read(), FOLDER), name)


TEXTS = {name[:-4]: text_of(name[:-4]) for name in sorted(os.listdir(FOLDER))
         if name.endswith(".lua") and not name.endswith(".inc.lua")}


def hold_id(number):
    return f"{number:032x}"


def now_us():
    return time.time_ns() // 1000


class Scripts:
    """One lock name on one connection."""

    def __init__(self, client, lock="k"):
        self.client = client
        self.lock, self.queue, self.counter = lock, "pawl:q:{0}:" + lock, "pawl:f:{0}"

    def run(self, name, keys, *args):
        return self.client.command("EVAL", TEXTS[name], len(keys), *keys, *args)

    def keys(self):
        return [self.lock, self.queue, self.counter]

    def acquire(self, number=1, owner=ME, lease=30000, span=180000, not_after=None, floor=0):
        return self.run("acquire", self.keys(), owner, hold_id(number), lease, span,
                        now_us() + 5 * 10**6 if not_after is None else not_after, floor,
                        "host 12 345 abcdef01", "", "", 0, 0)

    def release(self, number=1, owner=ME, tombstone=0):
        return self.run("release", self.keys(), owner, hold_id(number), tombstone, 0, "", "")

    def extend(self, number, token, lease, owner=ME):
        return self.run("extend", [self.lock], owner, hold_id(number), token, lease)

    def renew(self, *locks):
        """locks: (name, token, lease)"""
        args = [part for lock in locks for part in lock[1:]]
        return self.run("renew", [lock[0] for lock in locks], *args)

    def inspect(self):
        return self.run("inspect", [self.lock, self.queue])

    def force(self, token=0, at_once=0):
        return self.run("force", self.keys(), token, at_once)

    def pttl(self):
        return self.client.command("PTTL", self.lock)

    def ids(self):
        return sorted(f for f in self.client.hgetall(self.lock) if f.startswith(b"@h"))
