#!/usr/bin/env python3
"""Waiters that died, are stopped, or were granted and never came: what they cost the others."""
import time

import harness
from harness import CLAIM_S, PERIOD_S, SLOW


class Dead(harness.Case):
    def longest_script_ms(self):
        return max((entry[2] for entry in self.db.command("SLOWLOG", "GET", 1000)
                    if entry[3][0].upper().startswith(b"EVAL")), default=0) / 1000

    def test_a_hundred_ghosts_and_a_dead_holder(self):
        holder, ghosts, live = self.actor(), self.actor(), self.actor()
        holder.hold("h", lease=2000)
        ghosts.send("line", "g", 100, "k", 30000, 60000, -1)
        self.await_queued(100)
        ghosts.kill()
        holder.kill()
        left = self.db.command("PTTL", "k") / 1000
        began = time.monotonic()
        live.acq("w", wait=30000)
        got = live.got("w")
        self.assertEqual(got.result, "PAWL_OK")
        self.report(f"{got.at - began - left:.3f} s after the lease")
        self.assertLess(got.at - began, left + CLAIM_S + PERIOD_S * SLOW)

    def test_five_thousand_ghosts_cost_less_than_a_second(self):
        n = 5000
        self.db.command("CONFIG", "SET", "slowlog-log-slower-than", 1000)
        holder = self.actor()
        holder.hold("h")
        ghosts = [self.actor() for _ in range(5)]
        for i, actor in enumerate(ghosts):
            actor.send("line", f"g{i}.", n // 5, "k", 30000, 60000, -1)
        self.await_queued(n)
        live = self.actor()
        self.acq_queued(live, "w")
        for actor in ghosts:
            actor.kill()
        self.db.command("SLOWLOG", "RESET")
        holder.send("rel", "h")
        got = live.got("w")
        took = got.at - holder.wait("out", "h").at
        longest = self.longest_script_ms()
        self.report(f"served after {took * 1000:.0f} ms, longest script {longest:.1f} ms")
        self.assertEqual(got.result, "PAWL_OK")
        self.assertLess(took, 1 * SLOW)
        self.assertLess(longest, 50 * SLOW)

    def test_more_dead_waiters_than_one_call_passes_over(self):
        # Each with an inbox of its own: every one must be told to be found dead.
        holder, live = self.actor(), self.actor()
        holder.hold("h")
        owner = "f" * 32
        self.acq_queued(live, "before")
        queue = self.queue_key()
        entry = self.db.command("ZRANGE", queue, 0, 0)[0].split(b"\n")
        self.db.command("ZREM", queue, b"\n".join(entry))
        now_s = time.time()
        for i in range(70):
            words = [b"w%032x" % i, b"pawl:i:%032x" % i, b"30000", b"0", b"0",
                     b"%d" % (now_s * 1000), owner.encode(), b"host 1 2 3"]
            self.db.command("ZADD", queue, i + 1, b"\n".join(words), 1e15 + now_s * 1000,
                            b"i" + words[1])
        self.acq_queued(live, "w")
        holder.send("rel", "h")
        got = live.got("w")
        took = got.at - holder.wait("out", "h").at
        self.report(f"{took * 1000:.0f} ms")
        self.assertEqual(got.result, "PAWL_OK")
        self.assertLess(took, PERIOD_S + 0.25 * SLOW)

    def test_a_stopped_client_with_many_waiters_costs_one_claim(self):
        holder, frozen, live = self.actor(), self.actor(), self.actor()
        holder.hold("h")
        for i in range(5):
            self.acq_queued(frozen, f"f{i}", wait=20000)
        self.acq_queued(live, "w", hold=300)
        frozen.stop()
        holder.send("rel", "h")
        got = live.got("w")
        took = got.at - holder.wait("out", "h").at
        self.report(f"{took:.2f} s for all five")
        self.assertEqual(got.result, "PAWL_OK")
        self.assertLess(took, CLAIM_S + PERIOD_S * SLOW)
        # On waking it knows that its turn is over, and takes its place again.
        live.wait("rel", "w")
        frozen.go_on()
        first = frozen.wait("got")
        self.assertEqual(first.result, "PAWL_OK")
        self.assertGreater(first.token, got.token)
        self.assertGreater(first.at, live.wait("out", "w").at)
        self.assertEqual(frozen.ask("check", first.name)[1], "PAWL_OK")
        self.assertEqual(self.db.command("HEXISTS", "k", "@t"), 1)
        self.assert_no_overlap()

    def test_a_client_stopped_after_its_grant_believes_nothing_on_waking(self):
        holder, frozen, live = self.actor(), self.actor(), self.actor()
        holder.hold("h")
        self.acq_queued(frozen, "f", lease=3000)
        self.acq_queued(live, "w", hold=1500)
        frozen.stop()
        holder.send("rel", "h")  # handed over and told, but never confirmed
        got = live.got("w")
        self.assertLess(got.at - holder.wait("out", "h").at, CLAIM_S + PERIOD_S * SLOW)
        frozen.go_on()
        began = time.monotonic()
        while time.monotonic() < began + 0.7:
            self.assertFalse(frozen.find("got", "f"))  # the other holds it
        self.assertEqual(frozen.got("f").result, "PAWL_OK")
        self.assert_no_overlap()

    def test_granted_and_killed_before_the_claim(self):
        relay = self.relay()
        holder, doomed, live = self.actor(), self.actor(url=relay.url), self.actor()
        holder.hold("h")
        self.acq_queued(doomed, "d")
        self.acq_queued(live, "w")
        relay.silent = True
        holder.send("rel", "h")
        holder.wait("rel", "h")
        doomed.kill()
        got = live.got("w")
        took = got.at - holder.wait("out", "h").at
        self.report(f"{took:.2f} s")
        self.assertEqual(got.result, "PAWL_OK")
        self.assertLess(took, CLAIM_S + PERIOD_S * SLOW)

    def test_a_releaser_dies_before_its_answer_that_carries_a_grant(self):
        relay = self.relay()
        holder, live = self.actor(url=relay.url), self.actor()
        holder.hold("warm", hold=0)  # the server knows the scripts
        holder.wait("rel", "warm")
        holder.hold("h")
        self.acq_queued(holder, "own")
        self.acq_queued(live, "w")
        relay.change = lambda number, to_server, data: data if to_server else time.sleep(60)
        holder.send("rel", "h")
        # To the releaser's own waiter, in an answer that nobody reads.
        harness.await_true(lambda: self.n_queued() == 1, "the hand-over")
        holder.kill()
        began = time.monotonic()
        got = live.got("w")
        self.report(f"{got.at - began:.2f} s")
        self.assertEqual(got.result, "PAWL_OK")
        self.assertLess(got.at - began, CLAIM_S + PERIOD_S * SLOW)

    def test_a_releaser_that_is_cut_before_its_answer_finds_its_own_grant(self):
        relay = self.relay()
        holder, live = self.actor(url=relay.url), self.actor()
        holder.hold("warm", hold=0)  # the server knows the scripts
        holder.wait("rel", "warm")
        holder.hold("h")
        self.acq_queued(holder, "own")
        self.acq_queued(live, "w")
        cut = []
        relay.change = lambda number, to_server, data: (
            data if to_server or cut or number != 0 else cut.append(1))
        holder.send("rel", "h")
        own = holder.got("own")
        self.assertEqual(own.result, "PAWL_OK")
        self.assertEqual(holder.wait("rel", "h").result, "PAWL_OK")  # by the one that was cut
        self.assertEqual(holder.ask("check", "own")[1], "PAWL_OK")
        self.assertFalse(live.find("got", "w"))
        holder.send("rel", "own")
        self.assertEqual(live.got("w").result, "PAWL_OK")

    def test_nothing_of_a_queue_outlives_its_waiters(self):
        holder, waiter, ghost = self.actor(), self.actor(), self.actor()
        holder.hold("h", lease=1000)
        self.acq_queued(waiter, "w", wait=700)
        self.acq_queued(ghost, "g")
        queue = self.queue_key()
        waiter.got("w")
        ghost.kill()
        holder.kill()
        began = time.monotonic()
        while time.monotonic() < began + 3:
            left = self.db.command("PTTL", queue)
            self.assertNotEqual(left, -1)
            self.assertLessEqual(left, 10000)
        harness.await_true(lambda: self.db.command("EXISTS", queue) == 0, "no queue", 12)
        names = self.db.command("KEYS", "*")
        self.assertEqual([name for name in names if not name.startswith(b"pawl:f:")], [])
        waiter.kill()
        harness.await_true(lambda: self.db.command("PUBSUB", "CHANNELS") == [], "no inbox")

    def test_every_write_leaves_the_queue_with_an_expiry(self):
        """Seen after every command of some traffic: no key without an expiry but counters."""
        actors = [self.actor() for _ in range(3)]
        for i, actor in enumerate(actors):
            actor.send("loop", f"l{i}", "k", 1000, 1, time.monotonic_ns() + 10**9)
        end = time.monotonic() + 0.8
        n = 0
        while time.monotonic() < end:
            bad = self.db.command("EVAL", """
                local bad = {}
                for _, key in ipairs(redis.call('KEYS', '*')) do
                  if string.sub(key, 1, 7) ~= 'pawl:f:' and redis.call('PTTL', key) == -1 then
                    bad[#bad + 1] = key
                  end
                end
                return bad""", 0)
            self.assertEqual(bad, [])
            n += 1
        self.assertGreater(n, 100 / SLOW)
        for i, actor in enumerate(actors):
            actor.wait("looped", f"l{i}")


if __name__ == "__main__":
    harness.main()
