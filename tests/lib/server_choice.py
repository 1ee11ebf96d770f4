"""Which server the tests run on: PAWL_REDIS_SERVER, else redis-server, else valkey-server."""
import os
import shutil
import subprocess
import sys

told = set()


def server_program():
    """Its path, or None if there is none here. Says once, for ./dev test to show, what it is."""
    program = os.environ.get("PAWL_REDIS_SERVER") or shutil.which("redis-server") or \
        shutil.which("valkey-server")
    if program and program not in told:
        told.add(program)
        sys.stdout.flush()
        subprocess.run([program, "--version"], check=True, stdin=subprocess.DEVNULL)
    return program


def client_program():
    """redis-cli, or what it is called elsewhere."""
    return shutil.which("redis-cli") or shutil.which("valkey-cli") or "redis-cli"
