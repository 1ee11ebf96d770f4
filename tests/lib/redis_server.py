"""A private redis-server for tests: its own folder, a unix socket, gone when the test is."""
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from resp import Client
from server_choice import server_program

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent):
    """Runs in the child before exec: the server must not outlive the test."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(126)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def free_cluster_port():
    """One whose cluster bus, 10000 above, is free as well."""
    while True:
        port = random.randrange(20000, 32000)
        try:
            with socket.socket() as data, socket.socket() as bus:
                data.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10000))
                return port
        except OSError:
            continue


def make_certificates(folder):
    """ca.crt, server.crt (localhost, 127.0.0.1) and client.crt with their keys, below folder."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, cwd=folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl("req", "-x509", *key, "-subj", "/CN=test ca", "-keyout", "ca.key", "-out", "ca.crt")
    for name, alt in (("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client")):
        openssl("req", "-x509", *key, "-subj", f"/CN={name}", "-addext", f"subjectAltName={alt}",
                "-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", f"{name}.key",
                "-out", f"{name}.crt")


class RedisServer:
    """with RedisServer(...) as server: server.client(), server.socket, server.port, server.pid.

    tcp: also listen on a free port of 127.0.0.1 (server.port).
    tls: also listen with TLS on a free port (server.tls_port; files in server.folder).
    cluster: cluster mode with all slots on this one server.
    appendonly, maxmemory: as in redis.conf.  users: texts as after "user" in redis.conf.
    more: further words of the command line.  env: variables added to the environment."""

    def __init__(self, tcp=False, tls=False, cluster=False, appendonly=False, maxmemory=None,
                 users=(), more=(), env=None, program=None):
        self.folder = tempfile.mkdtemp(prefix="pawl-test-")
        self.socket = os.path.join(self.folder, "s")
        self.port = free_cluster_port() if cluster else free_port() if tcp else None
        self.tls_port = free_port() if tls else None
        self.cluster = cluster
        self.env = dict(os.environ, **(env or {}))
        self.process = None
        self.words = [program or server_program() or "redis-server",
                      "--port", str(self.port or 0), "--bind", "127.0.0.1",
                      "--unixsocket", self.socket, "--dir", self.folder, "--save", "",
                      "--appendonly", "yes" if appendonly else "no"]
        if maxmemory is not None:
            self.words += ["--maxmemory", str(maxmemory)]
        if tls:
            make_certificates(self.folder)
            self.words += ["--tls-port", str(self.tls_port),
                           "--tls-ca-cert-file", self.path("ca.crt"),
                           "--tls-cert-file", self.path("server.crt"),
                           "--tls-key-file", self.path("server.key")]
        if cluster:
            self.words += ["--cluster-enabled", "yes"]
        for user in users:
            self.words += ["--user", *user.split()]
        self.words += [str(word) for word in more]

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        parent = os.getpid()
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                preexec_fn=lambda: die_with_parent(parent))
        self.wait_ready()
        if self.cluster:
            self.take_all_slots()
        return self

    def wait_ready(self):
        end = time.monotonic() + 20
        while True:
            try:
                self.client().close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    with open(self.path("log"), encoding="utf-8", errors="replace") as log:
                        raise RuntimeError(f"redis-server did not start:\n{log.read()}") from None
                time.sleep(0.01)

    def take_all_slots(self):
        with self.client() as client:
            if b"cluster_slots_assigned:16384" not in client.command("CLUSTER", "INFO"):
                client.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            end = time.monotonic() + 20
            while b"cluster_state:ok" not in client.command("CLUSTER", "INFO"):
                if time.monotonic() > end:
                    raise RuntimeError("the cluster does not come up")
                time.sleep(0.02)

    def client(self, **kwargs):
        return Client(self.socket, **kwargs)

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)

    def kill(self):
        """End it as by a crash; start() begins anew on the same folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()
