#!/usr/bin/env python3
"""libpawl and the recipes of other clients contend for one key: no overlap, no lock left.

test_recipe.py HOLDER, the helper program of holder.c."""
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from recipe import ArticleLock, StringLock  # noqa: E402
from redis_server import RedisServer  # noqa: E402

HOLDER = sys.argv.pop()
SECTIONS = 25
SLOW = "PAWL_SANITIZE" in os.environ


def note(fd, text):
    os.write(fd, text.encode())


def python_sections(server, kind, path, failed):
    """As the helper's sections, in a thread."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with server.client() as client:
        for i in range(SECTIONS):
            lock = kind(client, "job", str(uuid.uuid4()) + ":1")
            if not lock.acquire(120):
                failed.append("acquire")
                continue
            note(fd, f"{lock.owner} enter {i}\n")
            time.sleep(0.001)
            note(fd, f"{lock.owner} leave {i}\n")
            if lock.release() != 1:
                failed.append("release")
            time.sleep(0.002)
    os.close(fd)


def overlaps(path):
    """Lines that are not the leave of the enter before them."""
    wrong, inside, n = [], None, 0
    with open(path, encoding="ascii") as log:
        for line in log:
            who, what, _ = line.split()
            if what == "enter":
                n += 1
                if inside is not None:
                    wrong.append(line)
                inside = who
            else:
                if inside != who:
                    wrong.append(line)
                inside = None
    return wrong, n


class Contention(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(RedisServer())
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    if not hasattr(unittest.TestCase, "enterContext"):  # before Python 3.11
        def enterContext(self, context):
            entered = context.__enter__()
            self.addCleanup(context.__exit__, None, None, None)
            return entered

    def start_holder(self):
        holder = subprocess.Popen([HOLDER, "redis+unix://" + self.server.socket], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.stdin.close)
        self.assertEqual(holder.stdout.readline(), "open PAWL_OK\n")
        return holder

    def say(self, holder, line):
        holder.stdin.write(line + "\n")
        holder.stdin.flush()

    def hear(self, holder, start):
        for line in holder.stdout:
            if line.startswith(start):
                return line.strip()
        self.fail("the helper ended")

    def contend(self, kind):
        path = os.path.join(self.folder, "log")
        failed = []
        threads = [threading.Thread(target=python_sections,
                                    args=(self.server, kind, path, failed)) for _ in range(3)]
        holders = [self.start_holder() for _ in range(2)]
        for thread in threads:
            thread.start()
        for holder in holders:
            self.say(holder, f"sections job {SECTIONS} {path}")
        for thread in threads:
            thread.join()
        for holder in holders:
            self.assertEqual(self.hear(holder, "done"), "done 0")
        self.assertEqual(failed, [])
        wrong, n = overlaps(path)
        self.assertEqual(wrong, [])
        self.assertEqual(n, 5 * SECTIONS)
        with self.server.client() as client:
            left = [key for key in client.command("KEYS", "*") if b"pawl:f:" not in key]
        self.assertEqual(left, [])

    def test_article_recipe_and_pawl_never_overlap(self):
        self.contend(ArticleLock)

    def test_set_nx_px_and_pawl_never_overlap(self):
        self.contend(StringLock)

    def test_each_respects_the_other_while_it_holds(self):
        holder = self.start_holder()
        with self.server.client() as client:
            for kind in (ArticleLock, StringLock):
                lock = kind(client, "job", "stranger:1", lease_ms=20000)
                self.assertTrue(lock.try_acquire())
                self.say(holder, "take job 1000 0")
                self.assertIn("PAWL_BUSY", self.hear(holder, "took"))
                self.assertEqual(lock.release(), 1)
            self.say(holder, "take job 1000 5000")
            self.assertIn("PAWL_OK", self.hear(holder, "took"))
            stranger = ArticleLock(client, "job", "stranger:1")
            self.assertFalse(stranger.try_acquire())
            self.assertFalse(stranger.renew())
            self.assertIsNone(stranger.release())
            self.assertFalse(StringLock(client, "job", "stranger:1").try_acquire())
            self.say(holder, "release")
            self.assertIn("PAWL_OK", self.hear(holder, "released"))
            self.assertEqual(client.command("EXISTS", "job"), 0)

    def test_renewed_recipe_keeps_pawl_out(self):
        holder = self.start_holder()
        with self.server.client() as client:
            lock = ArticleLock(client, "job", "stranger:1", lease_ms=600)
            self.assertTrue(lock.try_acquire())
            self.say(holder, "take job 1000 1500")
            for _ in range(12):
                time.sleep(0.2)
                if not lock.renew():
                    self.fail("the recipe lost its lock")
            self.assertIn("PAWL_TIMEOUT", self.hear(holder, "took"))
            self.say(holder, "take job 1000 10000")
            time.sleep(0.2)
            self.assertEqual(lock.release(), 1)
            start = time.monotonic()
            self.assertIn("PAWL_OK", self.hear(holder, "took"))
            self.assertLess(time.monotonic() - start, 10 if SLOW else 3)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    n_failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - n_failed} passed, {n_failed} failed, 0 skipped")
    sys.exit(n_failed != 0)
