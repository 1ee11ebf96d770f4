"""A small RESP2 client for tests, on the standard library only."""
import os
import socket


class ReplyError(Exception):
    """An error reply; the text without the leading '-'."""


class Client:
    """One connection: command() sends and reads one reply, send() and read() do it apart.
    Bulk strings come as bytes, integers as int, arrays as lists, nil as None."""

    def __init__(self, address, timeout=10, context=None, server_hostname=None):
        """address: the path of a unix socket, or (host, port); context: an ssl.SSLContext."""
        if isinstance(address, (str, bytes)):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(timeout)
            self.sock.connect(os.fspath(address))
        else:
            self.sock = socket.create_connection(address, timeout)
        if context is not None:
            self.sock = context.wrap_socket(self.sock, server_hostname=server_hostname)
        self.sock.settimeout(timeout)
        self.file = self.sock.makefile("rb")

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def encode(*args):
        out = [b"*%d\r\n" % len(args)]
        for arg in args:
            if not isinstance(arg, bytes):
                arg = str(arg).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
        return b"".join(out)

    def send(self, *args):
        self.sock.sendall(self.encode(*args))

    def read(self, raise_errors=True):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            error = ReplyError(rest.decode(errors="replace"))
            if raise_errors:
                raise error
            return error
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self.file.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise ConnectionError("the server closed the connection")
            return data[:-2]
        if kind == b"*":
            if rest == b"-1":
                return None
            return [self.read(raise_errors=False) for _ in range(int(rest))]
        raise ValueError(f"not RESP2: {line!r}")

    def command(self, *args):
        self.send(*args)
        return self.read()

    def hgetall(self, key):
        flat = self.command("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2]))
