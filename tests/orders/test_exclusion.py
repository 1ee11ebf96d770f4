#!/usr/bin/env python3
"""No order twice, no piece twice: many clients, several instances, one shared port."""
import os
import subprocess

import harness


class Exclusion(harness.Case):
    def assert_serial(self, order, how_many):
        found = harness.sections(self.instances, order)
        self.assertEqual(len(found), how_many)
        for before, after in zip(found, found[1:]):
            self.assertLessEqual(before[1], after[0], f"overlap: {before} {after}")
            self.assertLess(before[4], after[4], "tokens rise")

    def test_200_submissions_of_one_order_make_one(self):
        for _ in range(2):
            self.instance("--wait-ms", "20000")
        calls = [lambda i=i: self.instances[i % 2].submit("1001") for i in range(200)]
        answers = harness.in_parallel(calls)
        self.assertEqual([a.status for a in answers], [200] * 200)
        self.assertEqual(sum(not a.json["duplicate"] for a in answers), 1)
        self.assertEqual(len({a.json["token"] for a in answers}), 1)
        self.assertEqual(self.instances[0].stock(), 99)
        self.assert_serial("1001", 200)
        self.lock_is_free("1001")

    def test_twenty_with_work_are_twenty_serial_sections_over_three_instances(self):
        port = harness.free_port()
        for _ in range(3):
            self.instance("--work-ms", "20", port=port)
        body = '{"orderId":"7","userId":"u"}'
        answers = harness.in_parallel([lambda: harness.fetch(
            port, "POST", "/api/order/submit", body, harness.JSON)] * 20)
        self.assertEqual([a.status for a in answers], [200] * 20)
        self.assertEqual(sum(not a.json["duplicate"] for a in answers), 1)
        self.assert_serial("7", 20)
        self.assertEqual(self.instances[0].stock(), 99)

    def test_flash_sale(self):
        """Each order has a lock of its own: the guarded deduction alone protects the stock."""
        for _ in range(3):
            self.instance("--stock", "hot=5")
        calls = [lambda i=i: self.instances[i % 3].submit(f"f{i}", user=f"u{i}", sku="hot")
                 for i in range(200)]
        answers = harness.in_parallel(calls)
        made = [a for a in answers if a.status == 200]
        self.assertEqual(len(made), 5)
        for answer in answers:
            if answer.status != 200:
                self.assert_problem(answer, 409, "out_of_stock")
        self.assertEqual(self.instances[0].stock("hot"), 0)

    def test_flash_sale_without_the_lock_is_safe_too(self):
        for _ in range(2):
            self.instance("--no-lock", "--stock", "hot=5")
        answers = harness.in_parallel(
            [lambda i=i: self.instances[i % 2].submit(f"f{i}", sku="hot") for i in range(60)])
        self.assertEqual(sum(a.status == 200 for a in answers), 5)
        self.assertEqual(self.instances[0].stock("hot"), 0)
        answers = harness.in_parallel([lambda: self.instances[0].submit("x")] * 20)
        self.assertEqual(sum(not a.json["duplicate"] for a in answers), 1)

    def test_unsafe_oversells(self):
        """The demonstration must show what it is for."""
        one = self.instance("--unsafe", "--work-ms", "100")
        answers = harness.in_parallel([lambda: one.submit("1001")] * 20)
        made = sum(a.status == 200 and not a.json["duplicate"] for a in answers)
        self.assertGreater(made, 1)
        self.assertGreater(made, 100 - one.stock())

    def test_the_section_is_reentered(self):
        one = self.instance("--work-ms", "300")
        call = harness.threading.Thread(target=one.submit, args=("1",))
        call.start()
        one.entered("1")

        def count():
            fields = self.redis.command("HGETALL", "order:1") or []
            owned = [v for k, v in zip(fields[::2], fields[1::2]) if not k.startswith("@")]
            return owned == ["2"]
        harness.await_true(count, "the owner holds the lock twice", 5)
        call.join()
        self.lock_is_free("1")

    def test_verify_script(self):
        script = os.path.join(harness.SOURCE, "examples", "orders", "verify.sh")
        environment = dict(os.environ, PAWL_ORDERS=harness.PROGRAM)
        for arguments, wanted in (([], "VERIFIED"), (["--unsafe"], "OVERSOLD")):
            with self.subTest(arguments=arguments):
                done = subprocess.run([script, *arguments], env=environment, capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(wanted, done.stdout)


if __name__ == "__main__":
    harness.main()
