#!/usr/bin/env python3
"""Very many waiters: on one lock, and on as many locks. PAWL_TEST_FULL=1 for the full size."""
import time

import harness
from harness import FULL, SLOW


class Crowd(harness.Case):
    def test_one_release_wakes_one_of_five_thousand(self):
        n = 5000 if FULL else 1000
        self.db.command("CONFIG", "SET", "slowlog-log-slower-than", 1000)
        holder = self.actor()
        holder.hold("h")
        waiters = [self.actor() for _ in range(5)]
        for i, actor in enumerate(waiters):
            actor.send("line", f"w{i}.", n // 5, "k", 30000, 600000, -1)
        self.await_queued(n)
        self.db.command("SLOWLOG", "RESET")
        before = self.stats()
        holder.send("rel", "h")
        holder.wait("rel", "h")
        harness.await_true(lambda: sum(len(a.find("got")) for a in waiters) == 1, "one is served")
        began = time.monotonic()
        harness.await_true(lambda: time.monotonic() > began + 1, "a second")
        self.assertEqual(sum(len(a.find("got")) for a in waiters), 1)
        after = self.stats()
        self.assertEqual(after.get("publish", 0) - before.get("publish", 0), 1)
        scripts = after["evalsha"] - before["evalsha"]
        slow = [entry[2] / 1000 for entry in self.db.command("SLOWLOG", "GET", 100)
                if entry[3][0].upper().startswith(b"EVAL")]
        self.report(f"{n} waiters: 1 message, {scripts} scripts in a second, longest "
                    f"{max(slow, default=0):.1f} ms")
        self.assertLess(scripts, 6 * 3 * SLOW)

    def test_waiters_on_as_many_locks_in_one_process(self):
        n = 10000 if FULL else 2000
        holder, waiter = self.actor(), self.actor()
        holder.send("each", "h", n, "k", 600000, 60000, -1)
        for i in range(n):
            self.assertEqual(holder.got(f"h{i}", limit=60).result, "PAWL_OK")
        # Some holds of the waiting process itself, renewed often.
        for i in range(20):
            waiter.hold(f"r{i}", f"renewed{i}", lease=1500)
        tries = [int(x) / 1e3 for x in waiter.ask("tries", "free", 1000)]
        extends = [int(x) / 1e3 for x in waiter.ask("extends", "r0", 1000)]
        clients = len(self.db.command("CLIENT", "LIST").splitlines())
        memory = int(waiter.ask("rss")[0])
        waiter.send("each", "w", n, "k", 30000, 600000, 0)
        harness.await_true(lambda: int(waiter.ask("stats")[1]) == n and len(
            self.db.command("KEYS", "pawl:q:*")) == n, f"{n} waiters", 60)
        began = time.monotonic()
        harness.await_true(lambda: time.monotonic() > began + 2, "a time")
        memory = int(waiter.ask("rss")[0]) - memory
        during = [int(x) / 1e3 for x in waiter.ask("tries", "free", 1000)]
        extending = [int(x) / 1e3 for x in waiter.ask("extends", "r0", 1000)]
        more = len(self.db.command("CLIENT", "LIST").splitlines()) - clients
        channels = self.db.command("PUBSUB", "CHANNELS")
        late = int(waiter.ask("stats")[3])
        self.report(f"{n} waiters: {memory / n:.0f} bytes each; zero-wait try p50/p99 "
                    f"{tries[0]:.0f}/{tries[1]:.0f} us before, {during[0]:.0f}/{during[1]:.0f} "
                    f"during; extend {extends[0]:.0f}/{extends[1]:.0f} before, "
                    f"{extending[0]:.0f}/{extending[1]:.0f} during; {late} late renewals")
        self.assertLessEqual(more, 1)  # one inbox
        self.assertEqual(len(channels), 1)
        self.assertLess(memory / n, 6000 * SLOW)
        self.assertLess(during[1], 50000 * SLOW)
        self.assertEqual(late, 0)
        for i in range(20):
            self.assertEqual(waiter.ask("check", f"r{i}")[1], "PAWL_OK")
        # All are served when all is released.
        for i in range(n):
            holder.send("rel", f"h{i}")
        for i in range(n):
            self.assertEqual(waiter.got(f"w{i}", limit=60).result, "PAWL_OK")

    def test_a_burst_leaves_the_rest_waiting_here(self):
        """So many requests may be unanswered, and no more; a release goes all the same."""
        relay = self.relay()
        actor = self.actor("command_ms=10000", url=relay.url)
        actor.hold("h")
        sent, held_back = bytearray(), [True]

        def change(number, to_server, data):
            if to_server:
                sent.extend(data)
            while held_back and not to_server:
                time.sleep(0.01)
            return data

        def n_sent():
            return sent.count(b"$7\r\nEVALSHA\r\n")

        relay.change = change
        actor.send("each", "w", 2000, "b", 30000, 60000, 0)
        harness.await_true(lambda: n_sent() == 512, "512 requests")
        actor.send("rel", "h")
        harness.await_true(lambda: n_sent() == 513, "a release")
        began = time.monotonic()
        harness.await_true(lambda: time.monotonic() > began + 0.2, "a while")
        self.assertEqual(n_sent(), 513)
        held_back.clear()
        for i in range(2000):
            self.assertEqual(actor.wait("rel", f"w{i}").result, "PAWL_OK")

    def test_the_queue_has_a_bound_with_its_own_error(self):
        holder, waiter, late = self.actor(), self.actor(), self.actor()
        holder.hold("h")
        self.acq_queued(waiter, "first", hold=0)
        queue = self.queue_key()
        # The rest of the 10,000 are written by hand.
        entry = self.db.command("ZRANGE", queue, 0, 0)[0]
        self.db.command("EVAL", """
            for i = 2, 10000 do
              redis.call('ZADD', KEYS[1], i, string.format('w%032x', i) ..
                         string.sub(ARGV[1], 34))
            end""", 1, queue, entry)
        late.acq("late", wait=10000)
        got = late.got("late")
        self.assertEqual(got.result, "PAWL_EQUEUEFULL")
        self.assertLess(got.took, 1 * SLOW)  # at once, not at the limit
        late.acq("try", wait=0)
        self.assertEqual(late.got("try").result, "PAWL_BUSY")
        self.db.command("ZREMRANGEBYRANK", queue, 9999, 9999)
        late.acq("again", wait=300)
        self.assertEqual(late.got("again").result, "PAWL_TIMEOUT")


if __name__ == "__main__":
    harness.main()
