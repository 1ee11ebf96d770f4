#!/usr/bin/env python3
"""The slots of keys and companions against CLUSTER KEYSLOT of a real server: test_slots.py
SLOT_KEYS, the program that says what the library makes of a name."""
import os
import random
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

from redis_server import RedisServer  # noqa: E402 # pylint: disable=wrong-import-position

PROGRAM = sys.argv[1]
N_NAMES = 10000
AT_ONCE = 1000
ODD = [b"a}b", b"{}x", b"x{y}z", b"}", b"a{b}c}", b"{", b"{}", b"}{", b"{{}", b"{}}", b"foo{}{bar}",
       b"foo{{bar}}zap", b"foo{bar}{zap}", b"{user1000}.following", b"foo", b"\x00", b"\xff{\x00}"]


def keys_of(names, prefix):
    """For each name (slot, [queue, counter, claim]), as the library has them."""
    text = "".join(name.hex() + "\n" for name in names)
    args = [PROGRAM] if prefix is None else [PROGRAM, prefix]
    done = subprocess.run(args, input=text, stdout=subprocess.PIPE, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        slot, *keys = line.split(" ")
        found.append((int(slot), [bytes.fromhex(key) for key in keys]))
    assert len(found) == len(names)
    return found


def slots_of(client, keys):
    """What the server says, many questions in one go."""
    slots = []
    for start in range(0, len(keys), AT_ONCE):
        some = keys[start:start + AT_ONCE]
        client.sock.sendall(b"".join(client.encode("CLUSTER", "KEYSLOT", key) for key in some))
        slots += [client.read() for _ in some]
    return slots


class Slots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer(cluster=True)
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)
        cls.client = cls.server.client()
        cls.addClassCleanup(cls.client.close)

    def check(self, names, prefix=None):
        found = keys_of(names, prefix)
        full = [(prefix or "").encode() + name for name in names]
        questions = []
        for name, (_, keys) in zip(full, found):
            questions += [name, *keys]
        answers = slots_of(self.client, questions)
        for number, (name, (slot, _)) in enumerate(zip(full, found)):
            self.assertEqual(answers[4 * number:4 * number + 4], [slot] * 4, name)

    def test_odd_names(self):
        self.check(ODD)
        self.check(ODD, "app:")

    def test_random_braces(self):
        seed = int(os.environ.get("PAWL_SEED") or random.randrange(2**32))
        print(f"PAWL_SEED={seed}")
        rng = random.Random(seed)
        names = []
        for number in range(N_NAMES):
            length = rng.randint(1, 24 if number % 10 else 512)
            if number % 2:
                names.append(bytes(rng.choice(b"{}{}ab") for _ in range(length)))
            else:
                names.append(rng.randbytes(length))
        self.check([name for name in names if not name.startswith(b"pawl:")])

    def test_every_tag(self):
        """One name per slot: all companions of all slots."""
        names, missing = {}, set(range(16384))
        number = 0
        while missing:
            some = [b"n%d" % n for n in range(number, number + 20000)]
            number += len(some)
            for name, (slot, _) in zip(some, keys_of(some, None)):
                names.setdefault(slot, name)
                missing.discard(slot)
        self.check(list(names.values()))


def main():
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Slots)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
