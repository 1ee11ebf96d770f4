"""What the tests of waiting share: a private Redis, actors (actor.c), a relay between them.

Everything that is started is ended by its process id and dies with the test. Nothing sleeps where
it can wait for a condition. Limits that are the subject of a test are written in the test; what
merely waits for a test's own preparation uses PATIENCE."""
import os
import re
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
ACTOR = os.path.join(BUILD, "tests", "waiting", "actor")
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))

from redis_server import RedisServer, free_port  # noqa: E402,F401

PATIENCE = float(os.environ.get("PAWL_TEST_PATIENCE", "20"))
# A sanitized or valgrinded library is slower: limits that a test judges grow with it.
SLOW = 5 if os.environ.get("PAWL_SANITIZE") else 1
FULL = os.environ.get("PAWL_TEST_FULL") == "1"
CLAIM_S = 1.5
PERIOD_S = 0.5
BARGING = 2


def await_true(condition, what, limit=None):
    """The first true value of condition(); fails with what after the limit."""
    end = time.monotonic() + (limit or PATIENCE)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("in vain waited for: " + what)
        time.sleep(0.005)


class Event:
    """One line of an actor: kind name result time_ns ..."""

    def __init__(self, words):
        self.words = words
        self.kind = words[0]
        self.name = words[1] if len(words) > 1 else ""
        self.result = words[2] if len(words) > 2 else ""

    @property
    def at(self):
        """Seconds on time.monotonic()."""
        return int(self.words[3]) / 1e9

    @property
    def took(self):
        return int(self.words[4]) / 1e9

    @property
    def token(self):
        return int(self.words[5])

    def __repr__(self):
        return " ".join(self.words)


class Actor:
    def __init__(self, url, *options):
        self.events = []
        self.news = threading.Condition()
        self.sent = 0
        self.process = subprocess.Popen([ACTOR, url, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.wait("ready")

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.events.append(Event(line.split()))
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def send(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()

    def find(self, kind, name=None):
        with self.news:
            return [event for event in self.events
                    if event.kind == kind and name in (None, event.name)]

    def wait(self, kind, name=None, n=1, limit=None):
        """The n-th event of this kind and name."""
        end = time.monotonic() + (limit or PATIENCE)
        with self.news:
            while True:
                found = [event for event in self.events
                         if event.kind == kind and name in (None, event.name)]
                if len(found) >= n:
                    return found[n - 1]
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"no {kind} of {name or 'any'}; the last: "
                                         f"{self.events[-5:]}")
                self.news.wait(min(left, 0.5))

    def ask(self, *words):
        """A command that is answered by one line of the same kind."""
        n = len(self.find(words[0]))
        self.send(*words)
        return self.wait(words[0], n=n + 1).words[1:]

    def acq(self, name, key="k", lease=30000, wait=60000, hold=-1, flags=0, owner="-"):
        self.send("acq", name, key, lease, wait, hold, flags, owner)

    def hold(self, name, key="k", lease=30000, hold=-1, owner="-"):
        """Take a lock that is free."""
        self.acq(name, key, lease, 5000, hold, 0, owner)
        event = self.wait("got", name)
        assert event.result == "PAWL_OK", event
        return event

    def got(self, name, limit=None):
        return self.wait("got", name, limit=limit)

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdin.close()
        self.process.stdout.close()


class Relay:
    """Between clients and a server, on a unix socket. change(connection number, to server, data)
    may hold the data back, by sleeping, or answer what is to be passed on; None: cut."""

    def __init__(self, folder, target):
        self.path = os.path.join(folder, f"relay{id(self)}")
        self.target = target
        self.change = lambda number, to_server, data: data
        self.silent = False
        self.pairs = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return "redis+unix://" + self.path

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            number = len(self.pairs)
            try:
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.target)
            except OSError:
                client.close()
                self.pairs.append(())
                continue
            self.pairs.append((client, server))
            for source, sink, to_server in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.pump, args=(number, source, sink, to_server),
                                 daemon=True).start()

    def pump(self, number, source, sink, to_server):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                while self.silent:
                    time.sleep(0.01)
                data = self.change(number, to_server, data)
                if data is None:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for pair in self.pairs:
            for sock in pair:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
        self.cut()
        for pair in self.pairs:
            for sock in pair:
                sock.close()


MESSAGE = re.compile(rb"\*3\r\n\$7\r\nmessage\r\n.*", re.S)


class Case(unittest.TestCase):
    """A test with a server of its own, self.redis, and a connection to it, self.db."""
    server_args = {}

    def setUp(self):
        self.redis = RedisServer(**self.server_args)
        self.redis.start()
        self.addCleanup(self.redis.stop)
        self.db = self.redis.client(timeout=60)
        self.addCleanup(self.db.close)
        self.actors = []

    @property
    def url(self):
        return "redis+unix://" + self.redis.socket

    def actor(self, *options, url=None):
        actor = Actor(url or self.url, *options)
        self.actors.append(actor)
        self.addCleanup(actor.end)
        return actor

    def relay(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-test-")
        self.addCleanup(folder.cleanup)
        relay = Relay(folder.name, self.redis.socket)
        self.addCleanup(relay.close)
        return relay

    def queue_key(self, key="k"):
        if not hasattr(self, "queue_keys"):
            self.queue_keys = {}
        if key not in self.queue_keys:
            end = b":" + (key if isinstance(key, bytes) else key.encode())
            found = [name for name in self.db.command("KEYS", "pawl:q:*") if name.endswith(end)]
            if not found:
                return None
            self.queue_keys[key] = found[0]
        return self.queue_keys[key]

    def n_queued(self, key="k"):
        queue = self.queue_key(key)
        return self.db.command("ZCOUNT", queue, 1, "1e12") if queue else 0

    def await_queued(self, n, key="k"):
        await_true(lambda: self.n_queued(key) == n, f"{n} waiters in the queue of {key}")

    def acq_queued(self, actor, name, key="k", **kwargs):
        """Ask, and see it in the queue before going on."""
        n = self.n_queued(key)
        actor.acq(name, key, **kwargs)
        await_true(lambda: self.n_queued(key) == n + 1, f"{name} in the queue of {key}")

    def stats(self):
        """Calls by command, and messages published."""
        calls = {}
        for line in self.db.command("INFO", "commandstats").decode().splitlines():
            match = re.match(r"cmdstat_(\S+?):calls=(\d+)", line)
            if match:
                calls[match[1]] = int(match[2])
        return calls

    def grants(self, kind="got"):
        """All grants of all actors in the order of their tokens."""
        found = [event for actor in self.actors for event in actor.find(kind)
                 if event.result == "PAWL_OK"]
        return sorted(found, key=lambda event: event.token)

    def assert_no_overlap(self):
        """Between grant and the asking for its release nobody else is granted."""
        spans = []
        for actor in self.actors:
            outs = {}
            for event in actor.find("out"):
                outs.setdefault(event.name, []).append(event.at)
            seen = {}
            for event in actor.find("got"):
                if event.result == "PAWL_OK":
                    n = seen.get(event.name, 0)
                    seen[event.name] = n + 1
                    end = outs.get(event.name, [])
                    spans.append((event.at, end[n] if n < len(end) else None, event))
        spans.sort(key=lambda span: span[0])
        for (_, end, one), (begin, _, other) in zip(spans, spans[1:]):
            if end is not None:
                self.assertLessEqual(end, begin, f"{one} and {other} overlap")

    def report(self, text):
        print(f"    {self.id().rpartition('.')[2]}: {text}", file=sys.stderr, flush=True)


def main():
    """Run the tests of the calling file; the last line counts them."""
    if not os.path.exists(ACTOR):
        print(f"{ACTOR} is not built")
        sys.exit(77)
    module = sys.modules["__main__"]
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:], module)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    bad = len({getattr(test, "test_case", test).id()
               for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed, {skipped} skipped",
          flush=True)
    sys.exit(1 if bad else 0)
