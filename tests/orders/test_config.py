#!/usr/bin/env python3
"""Settings, their order, and the metrics."""
import os
import re
import subprocess

import harness


def run(*args, env=None, **kwargs):
    return subprocess.run([harness.PROGRAM, *args], capture_output=True, text=True, timeout=20,
                          env=dict(os.environ, **(env or {})), check=False, **kwargs)


def settings(text):
    found = {}
    for line in text.splitlines():
        name, rest = line.split(" = ", 1)
        value, _, source = rest.rpartition("# ")
        found[name] = (value.strip(), source)
    return found


class Config(harness.Case):
    def file(self, text):
        path = os.path.join(self.folder, "orders.conf")
        with open(path, "w", encoding="ascii") as config:
            config.write(text)
        return path

    def test_defaults(self):
        found = settings(run("--print-config").stdout)
        self.assertEqual(found["lease-ms"], ("30000", "default"))
        self.assertEqual(found["wait-ms"], ("5000", "default"))
        self.assertEqual(found["max-hold-ms"], ("180000", "default"))
        self.assertEqual(found["port"], ("5000", "default"))

    def test_file_environment_arguments_in_rising_weight(self):
        path = self.file("# a comment\n\nwork-ms = 1\nwait-ms=1\nlease-ms = 1000\n")
        found = settings(run("--config", path, "--work-ms=3", "--print-config",
                             env={"PAWL_ORDERS_WORK_MS": "2", "PAWL_ORDERS_WAIT_MS": "2"}).stdout)
        self.assertEqual(found["work-ms"], ("3", "argument"))
        self.assertEqual(found["wait-ms"], ("2", "environment"))
        self.assertEqual(found["lease-ms"], ("1000", "file"))
        self.assertEqual(found["grace-ms"], ("5000", "default"))
        again = settings(run("--print-config", env={"PAWL_ORDERS_CONFIG": path}).stdout)
        self.assertEqual(again["work-ms"], ("1", "file"))

    def test_bad_settings_name_the_value_and_the_range(self):
        for args, words in ((["--port", "70000"], "port .*70000.* 0 to 65535"),
                            (["--port", "x"], "port"), (["--port", ""], "port"),
                            (["--port"], "needs a value"), (["--nonsense"], "no option"),
                            (["nonsense"], "not an option"), (["--lease-ms", "99"], "100 to"),
                            (["--lease-ms", "1.5"], "lease-ms"),
                            (["--stock", "x"], "SKU=N"), (["--stock", "x=-1"], "SKU=N"),
                            (["--stock", "a b=1"], "SKU=N"), (["--log-level", "loud"], "log-level"),
                            (["--instance", "a b"], "instance"),
                            (["--lease-ms", "2000", "--max-hold-ms", "1000"], "below lease-ms"),
                            (["--config", "/nonexistent"], "/nonexistent"),
                            (["--config", self.file("nonsense = 1\n")], "line 1"),
                            (["--config", self.file("port\n")], "line 1"),
                            (["--db", "postgresql://x/y"], "driver"),
                            (["--url", "http://x"], "url"),
                            (["--bind", "nowhere", "--port", "0"], "port")):
            with self.subTest(args=args):
                done = run(*args)
                self.assertIn(done.returncode, (1, 2))
                self.assertRegex(done.stderr, words)

    def test_help_names_every_setting(self):
        text = run("--help").stdout
        for name in settings(run("--print-config").stdout):
            self.assertIn("--" + name, text)
        self.assertRegex(run("--version").stdout, r"^pawl-orders \S+\n$")

    def test_passwords_are_not_shown(self):
        url = "redis://joe:s3cret@127.0.0.1:1/0"
        done = run("--url", url, "--print-config")
        self.assertNotIn("s3cret", done.stdout + done.stderr)
        self.assertIn("redis://joe:******@127.0.0.1:1/0", done.stdout)
        one = self.instance("--url", url, "--wait-ms", "200")
        with open(f"/proc/{one.process.pid}/cmdline", "rb") as line:
            self.assertNotIn(b"s3cret", line.read())
        one.submit("1", timeout=30)
        self.assertNotIn("s3cret", one.log())

    def test_stock_is_set_at_the_start(self):
        one = self.instance("--stock", "a=7", "--stock", "b=8", "--stock", "a=9")
        self.assertEqual((one.stock("a"), one.stock("b"), one.stock()), (9, 8, 100))
        done = run("--stock", "a=1", "--db", "/nonexistent/x.db", "--port", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stock a", done.stderr)

    def test_a_taken_port_is_an_error(self):
        with harness.socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = run("--port", "0", "--own-port", str(taken.getsockname()[1]),
                       "--db", os.path.join(self.folder, "x.db"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("own-port", done.stderr)

    def test_log_file(self):
        path = os.path.join(self.folder, "some.log")
        one = self.instance("--log-file", path, "--log-level", "debug")
        one.submit("1")
        with open(path, encoding="utf-8") as log:
            text = log.read()
        self.assertRegex(text, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z us=\d+ INFO t1 enter "
                               r"order=1 ")
        self.assertIn("working -> storing", text)
        self.assertNotIn("enter", one.log())


class Metrics(harness.Case):
    def test_text_format_and_values(self):
        one = self.instance("--work-ms", "20", "--expected-hold-ms", "1")
        one.submit("1")
        one.submit("1")
        one.submit("1", user="other")
        one.submit("")
        answer = one.get("/metrics")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        text = answer.body.decode()
        seen = {}
        for line in text.splitlines():
            if line.startswith("#"):
                self.assertRegex(line, r"^# (HELP|TYPE) [a-z_]+ .+$")
                continue
            self.assertRegex(line, r'^[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+$')
            name, value = line.rsplit(" ", 1)
            self.assertNotIn(name, seen, "a series once")
            seen[name] = float(value)
        self.assertEqual(seen['pawl_orders_submits_total{outcome="made"}'], 1)
        self.assertEqual(seen['pawl_orders_submits_total{outcome="duplicate"}'], 1)
        self.assertEqual(seen['pawl_orders_submits_total{outcome="order_conflict"}'], 1)
        self.assertEqual(seen['pawl_orders_submits_total{outcome="bad_field"}'], 1)
        self.assertEqual(seen["pawl_orders_hold_seconds_count"], 3)
        self.assertGreaterEqual(seen["pawl_orders_hold_seconds_sum"], 0.06)
        self.assertEqual(seen["pawl_orders_holds_past_expected_total"], 3)
        self.assertEqual(seen["pawl_client_acquires_total"], 6)
        self.assertEqual(seen["pawl_client_reentries_total"], 3)
        self.assertEqual(seen['pawl_orders_hold_seconds_bucket{le="+Inf"}'], 3)

    def test_every_name_is_in_the_docs(self):
        one = self.instance()
        one.submit("1")
        names = set(re.findall(r"^# TYPE (\S+)", one.get("/metrics").body.decode(), re.M))
        with open(os.path.join(harness.SOURCE, "docs", "orders.md"), encoding="utf-8") as docs:
            text = docs.read()
        for name in names:
            self.assertIn("`" + name + "`", text)


if __name__ == "__main__":
    harness.main()
