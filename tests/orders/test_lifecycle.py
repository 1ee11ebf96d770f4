#!/usr/bin/env python3
"""The lock's life follows the work: hang-ups, TERM, pauses, losses, deaths.

PAWL_TEST_KILLED_ORDERS sets how many orders are submitted while instances are killed."""
import json
import os
import random
import signal
import socket
import struct
import threading
import time

import harness

KILLED_ORDERS = int(os.environ.get("PAWL_TEST_KILLED_ORDERS", "60"))


def post_bytes(order):
    body = json.dumps({"orderId": order, "userId": "u001"}).encode()
    return (b"POST /api/order/submit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)) + body


class Later:
    """A submission on a thread of its own."""

    def __init__(self, instance, order, **kwargs):
        self.result = None
        self.thread = threading.Thread(target=self._run, args=(instance, order, kwargs))
        self.thread.start()

    def _run(self, instance, order, kwargs):
        try:
            self.result = instance.submit(order, **kwargs)
        except OSError as error:
            self.result = error

    def answer(self):
        self.thread.join()
        return self.result


class Base(harness.Case):
    def open(self, instance, order):
        s = socket.create_connection(("127.0.0.1", instance.port))
        self.addCleanup(s.close)
        s.sendall(post_bytes(order))
        return s


class HangUp(Base):
    def hang_up(self, s, how):
        if how == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        elif how == "half":
            s.shutdown(socket.SHUT_WR)
        else:
            s.close()

    def test_while_waiting_gives_up_the_place(self):
        one = self.instance("--work-ms", "1500", "--wait-ms", "10000")
        first = Later(one, "1")
        one.entered("1")
        for how in ("close", "reset", "half"):
            s = self.open(one, "1")
            harness.await_true(lambda: one.metric("pawl_orders_waiting") == 1, "it waits")
            self.hang_up(s, how)
            harness.await_true(lambda: one.metric("pawl_orders_waiting") == 0, how, 1.0)
        self.assertEqual(first.answer().status, 200)
        self.lock_is_free("1", 2)
        self.assertEqual(len(harness.sections([one], "1")), 1)
        self.assertEqual(one.metric("pawl_orders_hangups_waiting_total"), 3)

    def test_after_the_grant_the_order_is_finished(self):
        one = self.instance("--work-ms", "300")
        for order, how in (("1", "close"), ("2", "reset"), ("3", "half")):
            s = self.open(one, order)
            one.entered(order)
            self.hang_up(s, how)
            harness.await_true(lambda: one.get(f"/api/order/{order}").status == 200,
                               "the order is made")
            self.lock_is_free(order)
        self.assertEqual(one.stock(), 97)
        self.assertEqual(one.metric("pawl_orders_hangups_held_total"), 3)

    def test_at_random_instants(self):
        dice = random.Random(3)
        one = self.instance("--work-ms", "3")
        for i in range(300):
            s = socket.create_connection(("127.0.0.1", one.port))
            s.sendall(post_bytes(f"h{i % 40}"))
            if dice.random() < 0.5:
                time.sleep(dice.random() * 0.012)
            self.hang_up(s, dice.choice(("close", "reset")))
        harness.await_true(lambda: one.metric("pawl_orders_connections") <= 1, "all closed")
        harness.await_true(lambda: one.metric("pawl_orders_held") == 0, "all finished")
        for i in range(40):
            self.assertEqual(one.submit(f"h{i}").status, 200)
        self.assertEqual(one.stock(), 60)


class Term(Base):
    def test_what_is_held_is_finished_and_who_waits_is_told(self):
        one = self.instance("--work-ms", "700", "--wait-ms", "20000")
        held = Later(one, "1")
        one.entered("1")
        waiting = Later(one, "1")
        harness.await_true(lambda: one.metric("pawl_orders_waiting") == 1, "it waits")
        one.send_signal(signal.SIGTERM)
        self.assert_problem(waiting.answer(), 503, "shutting_down")
        self.assertEqual(held.answer().status, 200)
        self.assertEqual(one.process.wait(5), 0)
        self.assertEqual(self.redis.command("EXISTS", "order:1"), 0)
        self.assertIn("stopped", one.log())

    def test_new_connections_are_refused_and_idle_ones_closed(self):
        one = self.instance("--work-ms", "800")
        idle = socket.create_connection(("127.0.0.1", one.port))
        self.addCleanup(idle.close)
        held = Later(one, "1")
        one.entered("1")
        one.send_signal(signal.SIGTERM)
        idle.settimeout(5)
        self.assertEqual(idle.recv(1), b"")
        with self.assertRaises(ConnectionRefusedError):
            one.get("/healthz")
        self.assertEqual(held.answer().status, 200)
        self.assertEqual(one.process.wait(5), 0)

    def test_idle_instance_ends_at_once(self):
        one = self.instance()
        begun = time.monotonic()
        self.assertEqual(one.terminate(), 0)
        self.assertLess(time.monotonic() - begun, 2)

    def test_second_signal_ends_at_once(self):
        one = self.instance("--work-ms", "60000")
        held = Later(one, "1")
        one.entered("1")
        one.send_signal(signal.SIGINT)
        harness.await_true(lambda: "stopping" in one.log(), "the first is heard")
        one.send_signal(signal.SIGINT)
        self.assertEqual(one.process.wait(5), 130)
        held.answer()


class Pause(Base):
    def paused_past_its_lease(self, *args):
        """The first holder sleeps in mid-section, a second one makes the order, it wakes."""
        one = self.instance("--lease-ms", "600", "--work-ms", "300", *args)
        two = self.instance("--wait-ms", "10000")
        first = Later(one, "1")
        one.entered("1")
        one.send_signal(signal.SIGSTOP)
        self.assertEqual(two.submit("1").status, 200)
        one.send_signal(signal.SIGCONT)
        answer = first.answer()
        found = two.get("/api/order/1").json
        self.assertEqual(found["instance"], two.name)
        self.assertEqual(two.stock(), 99)
        return answer, one

    def test_the_worker_notices_and_writes_nothing(self):
        answer, _ = self.paused_past_its_lease()
        self.assertEqual(answer.status, 503, answer)
        self.assertIn(answer.code, ("lock_lost", "stale_token"))

    def test_the_database_refuses_the_stale_token(self):
        """The worker is made blind to its loss: only the database is left."""
        answer, one = self.paused_past_its_lease("--ignore-loss")
        self.assert_problem(answer, 503, "stale_token")
        self.assertIn("refused by the database", one.log())

    def test_paused_without_a_successor(self):
        """Nobody came meanwhile: without its lock the worker still writes nothing."""
        one = self.instance("--lease-ms", "500", "--work-ms", "300")
        first = Later(one, "1")
        one.entered("1")
        one.send_signal(signal.SIGSTOP)
        harness.await_true(lambda: self.redis.command("EXISTS", "order:1") == 0, "it expires")
        one.send_signal(signal.SIGCONT)
        self.assert_problem(first.answer(), 503, "lock_lost")
        self.assertEqual(one.get("/api/order/1").status, 404)
        self.assertEqual(one.submit("1").status, 200)


class Loss(Base):
    def test_long_work_is_renewed(self):
        one = self.instance("--lease-ms", "300", "--work-ms", "1200")
        self.assertEqual(one.submit("1").status, 200)
        self.assertGreaterEqual(one.metric("pawl_client_renewals_total"), 2)

    def test_deleted_lock_rolls_back(self):
        one = self.instance("--lease-ms", "600", "--work-ms", "1500")
        first = Later(one, "1")
        one.entered("1")
        self.redis.command("DEL", "order:1")
        self.assert_problem(first.answer(), 503, "lock_lost")
        self.assertEqual(one.get("/api/order/1").status, 404)
        self.assertEqual(one.stock(), 100)
        self.assertEqual(one.metric('pawl_client_losses_total{reason="taken"}'), 1)
        self.assertEqual(one.submit("2").status, 200)

    def test_unreachable_store_in_mid_section(self):
        one = self.instance("--lease-ms", "800", "--work-ms", "3000")
        first = Later(one, "1")
        one.entered("1")
        self.redis.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        self.assert_problem(first.answer(), 503, "lock_lost")
        self.assertLess(time.monotonic() - begun, 1.5)
        self.redis.send_signal(signal.SIGCONT)
        self.assertEqual(one.get("/api/order/1").status, 404)

    def test_max_hold(self):
        one = self.instance("--lease-ms", "600", "--max-hold-ms", "900", "--work-ms", "5000")
        begun = time.monotonic()
        self.assert_problem(one.submit("1"), 503, "max_hold_reached")
        self.assertLess(time.monotonic() - begun, 2.5)
        self.assertEqual(one.get("/api/order/1").status, 404)
        self.assertEqual(one.stock(), 100)
        self.lock_is_free("1")


class Death(Base):
    def test_killed_at_random_instants_and_retried(self):
        """Exactly one order per id, whatever was killed when; answers and orders agree."""
        dice = random.Random(11)
        one = self.instance("--lease-ms", "300", "--work-ms", "5", "--wait-ms", "3000",
                            "--stock", "default=1000")
        two = self.instance("--lease-ms", "300", "--work-ms", "5", "--wait-ms", "3000")
        orders = [f"k{i}" for i in range(KILLED_ORDERS)]
        done = {}

        def customer(mine):
            for order in mine:
                while order not in done:
                    try:
                        answer = dice.choice((one, two)).submit(order, timeout=10)
                        if answer.status == 200:
                            done[order] = answer.json
                    except (OSError, ValueError, harness.http.client.HTTPException):
                        time.sleep(0.01)

        threads = [threading.Thread(target=customer, args=(orders[i::6],)) for i in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(KILLED_ORDERS // 8):
            time.sleep(dice.random() * 0.25)
            victim = dice.choice((one, two))
            victim.kill()
            victim.command = [word for word in victim.command
                              if word not in ("--stock", "default=1000")]
            victim.start()
        for thread in threads:
            thread.join()
        self.assertEqual(one.stock(), 1000 - len(orders))
        for order in orders:
            found = one.get("/api/order/" + order).json
            self.assertEqual((found["token"], found["instance"]),
                             (done[order]["token"], done[order]["instance"]))


if __name__ == "__main__":
    harness.main()
