#!/usr/bin/env python3
"""PAWL_INTEROP_REDISSON: pawl and Redisson's RLock on one key wake each other, neither starves."""
import threading
import time

import harness
import redisson
from harness import PERIOD_S, SLOW

FLAG = "flags=2"


class Redisson(harness.Case):
    def rlock(self, name="k", **kwargs):
        lock = redisson.RLock(self.redis, name, **kwargs)
        self.addCleanup(lock.close)
        return lock

    def in_thread(self, function, *args):
        thread = threading.Thread(target=function, args=args, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 30)
        return thread

    def await_subscribed(self, name, n):
        channel = redisson.channel_of(name)
        harness.await_true(lambda: self.db.command("PUBSUB", "NUMSUB", channel)[1] == n,
                           f"{n} subscribers of {channel}")

    def test_a_release_by_pawl_wakes_redisson(self):
        for key in ("k", "a{b}c"):
            holder, other = self.actor(FLAG), self.rlock(key)
            holder.hold("h", key)
            thread = self.in_thread(other.lock, 20)
            self.await_subscribed(key, 1)
            holder.send("rel", "h")
            thread.join(10)
            took = other.spans[0][0] - holder.wait("out", "h").at
            self.report(f"{took * 1000:.1f} ms")
            self.assertLess(took, 0.15 * SLOW)
            self.assertEqual(other.unlock(), 1)

    def test_a_release_by_redisson_wakes_pawl(self):
        for key in ("k", "a{b}c", "{x}"):
            waiter, other = self.actor(FLAG), self.rlock(key)
            self.assertTrue(other.lock(1))
            self.acq_queued(waiter, "w", key, hold=0)
            self.await_subscribed(key, 1)
            other.unlock()
            took = waiter.got("w").at - other.spans[0][1]
            self.report(f"{took * 1000:.1f} ms")
            self.assertEqual(waiter.got("w").result, "PAWL_OK")
            self.assertLess(took, 0.15 * SLOW)
            waiter.wait("rel", "w")
            self.await_subscribed(key, 0)  # nobody waits any more

    def test_a_release_by_pawl_wakes_pawl(self):
        holder, waiter = self.actor(FLAG), self.actor(FLAG)
        holder.hold("h")
        self.acq_queued(waiter, "w0", hold=0)
        self.acq_queued(holder, "w1", hold=0)
        self.acq_queued(waiter, "w2", hold=0)
        holder.send("rel", "h")
        took = waiter.wait("rel", "w2").at - holder.wait("out", "h").at
        self.report(f"three hand-overs in {took * 1000:.1f} ms")
        self.assertLess(took, 0.3 * SLOW)
        self.assertEqual([event.name for event in self.grants()], ["h", "w0", "w1", "w2"])

    def test_a_forced_release_wakes_redisson(self):
        holder, other = self.actor(FLAG), self.rlock()
        holder.hold("h")
        thread = self.in_thread(other.lock, 20)
        self.await_subscribed("k", 1)
        began = time.monotonic()
        holder.ask("force", "k")
        thread.join(10)
        self.assertLess(other.spans[0][0] - began, 0.15 * SLOW)

    def test_after_a_reconnect_the_channel_is_heard_again(self):
        waiter, other = self.actor(FLAG), self.rlock()
        self.assertTrue(other.lock(1))
        self.acq_queued(waiter, "w")
        self.await_subscribed("k", 1)
        self.db.command("CLIENT", "KILL", "TYPE", "pubsub")
        self.await_subscribed("k", 1)
        other.unlock()
        self.assertLess(waiter.got("w").at - other.spans[0][1], 0.15 * SLOW)

    def test_a_release_while_the_channel_is_not_heard_costs_one_recheck(self):
        relay = self.relay()
        relay.change = lambda number, to_server, data: (
            data if to_server or b"redisson" not in data else b"")
        waiter, other = self.actor(FLAG, url=relay.url), self.rlock()
        self.assertTrue(other.lock(1))
        self.acq_queued(waiter, "w")
        other.unlock()
        self.assertLess(waiter.got("w").at - other.spans[0][1], PERIOD_S + 0.25 * SLOW)

    def test_without_the_flag_nothing_is_published(self):
        holder, waiter, other = self.actor(), self.actor(), self.rlock()
        holder.hold("h")
        self.acq_queued(waiter, "w")
        self.await_subscribed("k", 0)
        other.sub.command("SUBSCRIBE", redisson.channel_of("k"))
        holder.send("rel", "h")
        waiter.got("w")
        waiter.send("rel", "w")
        waiter.wait("rel", "w")
        self.assertEqual(other.messages, 0)
        with self.assertRaises(TimeoutError):
            other.sub.sock.settimeout(0.1)
            other.sub.read()

    def test_neither_starves_and_nothing_overlaps(self):
        seconds = 4
        actors = [self.actor(FLAG) for _ in range(2)]
        others = [self.rlock() for _ in range(2)]
        end = time.monotonic() + seconds

        def work(lock):
            while time.monotonic() < end:
                if lock.lock(20):
                    time.sleep(0.003)
                    lock.unlock()

        threads = [self.in_thread(work, lock) for lock in others]
        for i, actor in enumerate(actors):
            actor.send("loop", f"l{i}", "k", 30000, 3, int(end * 1e9))
        for i, actor in enumerate(actors):
            actor.wait("looped", f"l{i}", limit=seconds + 20)
        for thread in threads:
            thread.join(20)
            self.assertFalse(thread.is_alive())
        mine = [len(actor.find("got")) for actor in actors]
        theirs = [len(lock.spans) for lock in others]
        self.report(f"pawl {mine}, Redisson's way {theirs}")
        self.assertGreater(min(mine), 20 / SLOW)
        self.assertGreater(min(theirs), 20 / SLOW)
        spans = [span for lock in others for span in lock.spans]
        for actor in actors:
            spans += [[got.at, out.at]
                      for got, out in zip(actor.find("got"), actor.find("out"))]
        spans.sort()
        for (_, out), (got, _) in zip(spans, spans[1:]):
            self.assertLessEqual(out, got)


if __name__ == "__main__":
    harness.main()
