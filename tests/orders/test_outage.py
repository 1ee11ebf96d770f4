#!/usr/bin/env python3
"""The store or the database is away: no order is made, and everybody is told why."""
import os
import signal
import sqlite3
import time

import harness


class LockStore(harness.Case):
    def test_down_means_no_order_and_back_means_orders(self):
        one = self.instance("--wait-ms", "500")
        self.assertEqual(one.submit("1").status, 200)
        self.redis.stop()
        self.assert_problem(one.submit("2"), 503, "lock_unavailable")
        self.assert_problem(one.get("/readyz"), 503, "lock_unavailable")
        self.assertIn("database: fine", one.get("/readyz").json["detail"])
        self.assertEqual(one.get("/healthz").status, 200)
        self.assertEqual(one.get("/api/order/2").status, 404)
        self.assertEqual(one.stock(), 99)
        self.redis.start()
        harness.await_true(lambda: one.get("/readyz").status == 200, "ready again")
        self.assertEqual(one.submit("2").status, 200)

    def test_down_at_the_start(self):
        self.redis.stop()
        one = self.instance("--wait-ms", "300")
        self.assert_problem(one.submit("1"), 503, "lock_unavailable")
        self.redis.start()
        harness.await_true(lambda: one.submit("1").status == 200, "the first order")

    def test_frozen_is_down(self):
        one = self.instance("--wait-ms", "500")
        self.assertEqual(one.submit("1").status, 200)
        self.redis.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        self.assert_problem(one.submit("2"), 503, "lock_unavailable")
        self.assertLess(time.monotonic() - begun, 4)
        self.assert_problem(one.get("/readyz"), 503, "lock_unavailable")
        self.redis.send_signal(signal.SIGCONT)
        harness.await_true(lambda: one.submit("2").status == 200, "the order after all")
        self.assertEqual(one.stock(), 98)

    def test_a_key_of_another_kind(self):
        one = self.instance("--wait-ms", "300")
        self.redis.command("RPUSH", "order:1", "x")
        answer = one.submit("1")
        self.assert_problem(answer, 503, "lock_unavailable")
        self.assertEqual(one.get("/api/order/1").status, 404)

    def test_refused_writes(self):
        one = self.instance("--wait-ms", "300")
        self.assertEqual(one.submit("1").status, 200)
        self.redis.command("CONFIG", "SET", "maxmemory", "1")
        self.assert_problem(one.submit("2"), 503, "lock_unavailable")
        self.redis.command("CONFIG", "SET", "maxmemory", "0")
        harness.await_true(lambda: one.submit("2").status == 200, "memory again")


class Database(harness.Case):
    def test_locked_database(self):
        one = self.instance("--db-busy-ms", "200")
        self.assertEqual(one.submit("1").status, 200)
        other = sqlite3.connect(one.db, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = one.submit("2")
        self.assert_problem(answer, 503, "database_unavailable")
        self.assertIn("locked", answer.json["detail"])
        other.execute("ROLLBACK")
        other.close()
        self.assertEqual(one.submit("2").status, 200)
        self.assertEqual(one.stock(), 98)

    def test_moved_away_and_back(self):
        one = self.instance()
        self.assertEqual(one.submit("1").status, 200)
        os.rename(one.db, one.db + ".away")
        self.assert_problem(one.submit("2"), 503, "database_unavailable")
        self.assert_problem(one.get("/readyz"), 503, "database_unavailable")
        self.assert_problem(one.get("/api/order/1"), 503, "database_unavailable")
        self.assertFalse(os.path.exists(one.db), "no empty one is begun")
        os.rename(one.db + ".away", one.db)
        harness.await_true(lambda: one.get("/readyz").status == 200, "ready again")
        self.assertEqual(one.submit("2").status, 200)
        self.assertEqual(one.get("/api/order/1").status, 200)
        self.assertEqual(one.stock(), 98)

    def test_missing_at_the_start(self):
        folder = os.path.join(self.folder, "later")
        one = self.instance("--db", os.path.join(folder, "o.db"))
        self.assert_problem(one.submit("1"), 503, "database_unavailable")
        self.assert_problem(one.get("/readyz"), 503, "database_unavailable")
        os.mkdir(folder)
        harness.await_true(lambda: one.get("/readyz").status == 200, "ready")
        self.assertEqual(one.submit("1").status, 200)

    def test_not_a_database(self):
        path = os.path.join(self.folder, "text.db")
        with open(path, "w", encoding="ascii") as text:
            text.write("this is not a database, however often one looks at it\n" * 100)
        one = self.instance("--db", path)
        self.assert_problem(one.submit("1"), 503, "database_unavailable")

    def test_both_down(self):
        one = self.instance("--db", "/nonexistent/o.db", "--wait-ms", "200")
        self.redis.stop()
        answer = one.get("/readyz")
        self.assertEqual(answer.status, 503)
        self.assertNotIn("fine", answer.json["detail"])


if __name__ == "__main__":
    harness.main()
