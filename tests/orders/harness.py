"""What the tests of the order API share: a private Redis, instances on free ports, requests.

Everything that is started dies with the test (PR_SET_PDEATHSIG) and is ended by its process id;
every folder is temporary. Nothing sleeps where it can wait for a condition."""
import ctypes
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PAWL_BUILD") or os.path.join(SOURCE, "build")
PROGRAM = os.environ.get("PAWL_ORDERS") or os.path.join(BUILD, "examples", "orders",
                                                        "pawl-orders")
sys.path.append(os.path.join(SOURCE, "tests", "lib"))
from server_choice import server_program  # noqa: E402

JSON = {"Content-Type": "application/json"}
# A slow or sanitized machine gets more time; limits that are the subject of a test do not use it.
PATIENCE = float(os.environ.get("PAWL_TEST_PATIENCE", "20"))

def is_sanitized():
    """Sanitizers keep freed memory: its size says nothing then."""
    with open(PROGRAM, "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(1, signal.SIGKILL)


def await_true(condition, what, limit=None):
    """The first true value of condition(); fails with @what after the limit."""
    end = time.monotonic() + (limit or PATIENCE)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("in vain waited for: " + what)
        time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis:
    """A private server on a unix socket."""

    def __init__(self, folder, *args):
        self.folder = folder
        self.socket = os.path.join(folder, "redis.sock")
        self.url = "redis+unix://" + self.socket
        self.args = args
        self.start()

    def start(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.process = subprocess.Popen(
            [server_program() or "redis-server", "--port", "0", "--unixsocket", self.socket,
             "--save", "", "--appendonly", "no", "--dir", self.folder, *self.args],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        await_true(lambda: self.command("PING") == "PONG", "redis-server")

    def command(self, *words):
        """The reply as Python: text, int, None or list. None as well while it is down."""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(5)
                s.connect(self.socket)
                parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
                s.sendall(b"*%d\r\n" % len(parts) +
                          b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
                return self._reply(s.makefile("rb"))
        except OSError:
            return None

    def _reply(self, stream):
        line = stream.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise AssertionError("redis: " + rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            data = stream.read(int(rest) + 2)
            return data[:-2].decode("utf-8", "replace")
        return [self._reply(stream) for _ in range(int(rest))]

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json.get("code")

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def fetch(port, method, path, body=None, headers=None, timeout=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout or PATIENCE)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        reply = connection.getresponse()
        return Answer(reply.status, reply.headers, reply.read())
    finally:
        connection.close()


class Instance:
    """One pawl-orders."""

    def __init__(self, folder, redis, name, *args, port=0, env=None, nofile=None):
        self.nofile = nofile
        self.name = name
        self.db = os.path.join(folder, "orders.db")
        self.log_path = os.path.join(folder, name + ".log")
        self.command = [PROGRAM, "--port", str(port), "--own-port", "0", "--url", redis.url,
                        "--db", self.db, "--instance", name, *[str(a) for a in args]]
        self.env = env
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=log, preexec_fn=self.prepare,
                env=dict(os.environ, **(self.env or {})))
        line = self.process.stdout.readline().decode()
        found = re.search(r" port=(\d+) own-port=(\d+) ", line)
        if not found:
            self.process.wait()
            raise AssertionError(f"{self.name} did not start: {line!r} {self.log()[-2000:]}")
        self.shared_port = int(found.group(1))
        self.port = int(found.group(2))

    def prepare(self):
        die_with_parent()
        if self.nofile:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.nofile, self.nofile))

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def get(self, path, **kwargs):
        return fetch(self.port, "GET", path, **kwargs)

    def submit(self, order, user="u001", headers=None, timeout=None, **fields):
        body = json.dumps(dict({"orderId": order, "userId": user}, **fields))
        return fetch(self.port, "POST", "/api/order/submit", body, dict(JSON, **(headers or {})),
                     timeout)

    def stock(self, sku="default"):
        return self.get("/api/stock/" + sku).json["quantity"]

    def metric(self, name):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return 0.0

    def entered(self, order, times=1):
        """Wait until the order's section was entered so often."""
        return await_true(lambda: self.log().count(f" enter order={order} ") >= times,
                          f"{order} enters {self.name}")

    def send_signal(self, number):
        self.process.send_signal(number)

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """TERM; it must end well, which also asks a sanitizer for its opinion."""
        if self.process.poll() is not None:
            self.process.stdout.close()
            return
        self.process.send_signal(signal.SIGCONT)
        try:
            code = self.terminate()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} does not end:\n{self.log()[-3000:]}") from None
        self.process.stdout.close()
        if code != 0:
            raise AssertionError(f"{self.name} ended with {code}:\n{self.log()[-3000:]}")

    def terminate(self, limit=None):
        """TERM, then its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(limit or PATIENCE)


SECTION = re.compile(r"us=(\d+) INFO (\S+) (enter|leave) order=(\S+) .*? ?token=(\d+)(.*)")


def sections(instances, order=None):
    """Every (enter_us, leave_us, instance, order, token, rest of the leave line), by time."""
    events = []
    for instance in instances:
        for line in instance.log().splitlines():
            found = SECTION.search(line)
            if found and (order is None or found.group(4) == order):
                events.append((int(found.group(1)), found.group(2), found.group(3),
                               found.group(4), int(found.group(5)), found.group(6)))
    whole, begun = [], {}
    for us, name, what, about, token, rest in sorted(events):
        if what == "enter":
            begun[name, about, token] = us
        elif (name, about, token) in begun:
            whole.append((begun.pop((name, about, token)), us, name, about, token, rest))
    return sorted(whole)


def in_parallel(calls):
    """Run all calls at once; their results in order. An exception stands for its result."""
    results = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(i):
        gate.wait()
        try:
            results[i] = calls[i]()
        except Exception as error:  # a cut connection is a result here
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Case(unittest.TestCase):
    """A test with a private Redis (self.redis) and a folder of its own."""

    redis_args = ()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pawl-orders-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.redis = Redis(self.folder, *self.redis_args)
        self.addCleanup(self.redis.stop)
        self.instances = []

    def instance(self, *args, name=None, **kwargs):
        name = name or "t%d" % (len(self.instances) + 1)
        made = Instance(self.folder, self.redis, name, *args, **kwargs)
        self.instances.append(made)
        self.addCleanup(made.end)
        return made

    def lock_is_free(self, order, limit=None):
        await_true(lambda: self.redis.command("EXISTS", "order:" + order) == 0,
                   f"the lock of {order} is free", limit)

    def assert_problem(self, answer, status, code):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json", answer)
        self.assertEqual(answer.code, code, answer)
        self.assertTrue(answer.json["message"], answer)
        self.assertEqual(answer.json["status"], status, answer)


def main():
    """Run the tests of the calling file; the last line counts them."""
    if not os.path.exists(PROGRAM):
        print(f"{PROGRAM} is not built")
        sys.exit(77)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:],
                                                              sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    # A test may fail in its body, in each of its parts and in its clean-up, and is one failed test.
    bad = len({getattr(test, "test_case", test).id()
               for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed, {skipped} skipped",
          flush=True)
    sys.exit(1 if bad else 0)
