"""What the tests of the pawl command share: a private Redis, the command, jobs that log when they
are inside, and a terminal. run_tests() prints the line that ./dev test counts."""
import contextlib
import ctypes
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.realpath(os.path.join(__file__, "../../.."))
BUILD = os.environ.get("PAWL_BUILD") or os.path.join(SOURCE, "build")
PAWL = os.path.join(BUILD, "bin", "pawl")
if not os.path.exists(PAWL):
    PAWL = os.path.join(BUILD, "cli", "pawl")

# Who started the tests may have had signals ignored (nohup does), and a job would inherit that.
for ending in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
               signal.SIGALRM):
    signal.signal(ending, signal.SIG_DFL)

USAGE, BUSY, UNREACHABLE, DENIED, LOST, MAX_HOLD, REFUSED, UNKNOWN = range(245, 253)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for sig in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(sig, signal.SIG_DFL)


def await_true(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


class Redis:
    """A private redis-server on a unix socket, with a client of a few lines."""

    def __init__(self, *args, tcp=False):
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise Skip("no redis-server and no valkey-server here")
        self.folder = tempfile.mkdtemp(prefix="pawl-cli-")
        self.path = os.path.join(self.folder, "redis.sock")
        self.port = 0
        if tcp:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        self.args = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket",
                     self.path, "--save", "", "--dir", self.folder, *args]
        self.process = None
        self.sock = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        await_true(lambda: self._ping(), "redis-server answers")

    def _ping(self):
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(self.path)
            self.buffer = b""
            return True
        except OSError:
            self.sock.close()
            return False

    @property
    def url(self):
        return "redis+unix://" + self.path

    def __call__(self, *args):
        parts = [a if isinstance(a, bytes) else str(a).encode() for a in args]
        self.sock.sendall(b"*%d\r\n" % len(parts) +
                          b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self._reply()

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise OSError("redis-server closed the connection")
        self.buffer += data

    def _reply(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            while len(self.buffer) < size + 2:
                self._more()
            data, self.buffer = self.buffer[:size], self.buffer[size + 2:]
            return data
        return [self._reply() for _ in range(int(rest))]

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        if self.sock is not None:
            self.sock.close()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def environment(redis=None, **more):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("PAWL_", "LC_", "LANG", "NO_COLOR")) or name == "PAWL_SANITIZE"}
    env["PAWL_CONFIG"] = os.devnull
    if redis is not None:
        env["PAWL_URL"] = redis if isinstance(redis, str) else redis.url
    for name, value in more.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"code {self.code}\nout: {self.out}\nerr: {self.err}"


def pawl(redis, *args, stdin=None, env=None, seconds=20, **kwargs):
    """Run to the end; its code and what it printed."""
    process = subprocess.Popen([PAWL, *args], env=env or environment(redis),
                               stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=die_with_parent, **kwargs)
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"pawl {args} does not end; {out} {err}") from None
    return Result(process.returncode, out.decode(errors="surrogateescape"),
                  err.decode(errors="surrogateescape"))


def start(redis, *args, env=None, setsid=True, **kwargs):
    """In the background, in a session of its own as cron and CI do it."""
    def before():
        die_with_parent()
        if setsid:
            os.setsid()
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([PAWL, *args], env=env or environment(redis), preexec_fn=before,
                            **kwargs)


@contextlib.contextmanager
def started(redis, *args, **kwargs):
    process = start(redis, *args, **kwargs)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def alive(pid):
    """Exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def read_file(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def await_text(path, what="", seconds=10):
    return await_true(lambda: read_file(path), what or f"text in {path}", seconds)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="pawl-cli-") as path:
        yield path


class Terminal:
    """A program on a terminal of its own, as a login shell has it."""

    def __init__(self, *args, env=None, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            try:
                os.execvpe(args[0], args, env)
            finally:
                os._exit(127)
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.text = ""
        self.status = None

    def read(self, seconds=0.0):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.text += data.decode(errors="replace")
            seconds = 0
        return True

    def await_text(self, text, seconds=10):
        deadline = time.monotonic() + seconds
        while text not in self.text:
            if time.monotonic() > deadline or not self.read(0.05) and text not in self.text:
                raise AssertionError(f"no {text!r} on the terminal:\n{self.text}")
        at = self.text.index(text) + len(text)
        before, self.text = self.text[:at], self.text[at:]
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds=10):
        """Wait for the end; the exit status as a shell's."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                self.read()
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"the program on the terminal does not end:\n{self.text}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def in_a_namespace():
    """These tests try out how pawl ends processes. A mistake there must end nobody else's: go on
    in a PID namespace of our own, whose first process takes all others with it. Without the right
    to make one, nothing is tried."""
    if os.environ.get("PAWL_CLI_NAMESPACE") == str(os.stat("/proc/self/ns/pid").st_ino):
        return
    program = shutil.which("unshare")
    inner = 'export PAWL_CLI_NAMESPACE=$(stat -Lc %i /proc/self/ns/pid); exec "$@"'
    for rights in (["--user", "--map-root-user"], []):
        words = [program, *rights, "--fork", "--pid", "--mount-proc", "--kill-child"]
        if program and subprocess.run([*words, "true"], stderr=subprocess.DEVNULL,
                                      check=False).returncode == 0:
            os.execvp(program, [*words, "sh", "-c", inner, "sh", sys.executable, *sys.argv])
    print("no PID namespace of our own here")
    sys.exit(77)


def run_tests(names):
    """names: globals() of the test module. Arguments choose tests by name."""
    in_a_namespace()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in list(names.items()):
        if not name.startswith("test_") or not callable(test):
            continue
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        begun = time.monotonic()
        try:
            test()
            outcome = "passed"
        except Skip as why:
            outcome = "skipped"
            print(f"{name}: {why}")
        except Exception:  # pylint: disable=broad-except # every failure is one failed test
            outcome = "failed"
            traceback.print_exc()
        counts[outcome] += 1
        print(f"{outcome}: {name} ({time.monotonic() - begun:.1f} s)")
        sys.stdout.flush()
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    sys.exit(1 if counts["failed"] else 0)
