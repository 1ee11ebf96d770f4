#!/usr/bin/env python3
"""Very many requests that wait for a lock and are closed around their grant or time-out.

PAWL_TEST_CLOSINGS sets how many; the default fits into the suite."""
import json
import os
import random
import resource
import select
import socket
import struct
import time

import harness

COUNT = int(os.environ.get("PAWL_TEST_CLOSINGS", "3000"))


def post_bytes(order, version="1.1"):
    body = json.dumps({"orderId": order, "userId": "u001"}).encode()
    return (b"POST /api/order/submit HTTP/%s\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % (version.encode(), len(body))) + body


class Closings(harness.Case):
    def memory_kb(self, instance):
        with open(f"/proc/{instance.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return 0

    def descriptors(self, instance):
        return len(os.listdir(f"/proc/{instance.process.pid}/fd"))

    def round(self, instance, count, dice):
        """Open @count waits for busy and free locks, close each at some moment."""
        open_sockets = []
        for i in range(count):
            s = socket.create_connection(("127.0.0.1", instance.port))
            if dice.random() < 0.1:
                s.sendall(b"GET /api/order/busy HTTP/1.1\r\nHost: x\r\n\r\n")
            else:
                order = "busy" if dice.random() < 0.8 else f"free{i % 7}"
                s.sendall(post_bytes(order, dice.choice(("1.0", "1.1"))))
            open_sockets.append(s)
            while len(open_sockets) > 200 or (open_sockets and dice.random() < 0.3):
                s = open_sockets.pop(dice.randrange(len(open_sockets)))
                if dice.random() < 0.5:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif dice.random() < 0.5:
                    select.select([s], [], [], 0.002)
                s.close()
        for s in open_sockets:
            s.close()
        harness.await_true(lambda: instance.metric("pawl_orders_connections") <= 1, "all closed")
        harness.await_true(lambda: instance.metric("pawl_orders_waiting") == 0, "none waits")
        harness.await_true(lambda: instance.metric("pawl_orders_held") == 0, "none holds")

    def test_waits_that_are_closed_leave_nothing(self):
        dice = random.Random(5)
        one = self.instance("--wait-ms", "60", "--log-level", "error", "--stock", "default=100000")
        self.redis.command("HSET", "order:busy", "somebody", 1)
        self.redis.command("PEXPIRE", "order:busy", 600000)
        self.round(one, COUNT // 3, dice)
        memory, descriptors = self.memory_kb(one), self.descriptors(one)
        self.round(one, COUNT - COUNT // 3, dice)
        self.assertLessEqual(self.descriptors(one), descriptors + 2)
        if not harness.is_sanitized():
            self.assertLess(self.memory_kb(one) - memory, 4000 + COUNT // 10)
        self.assertEqual(one.submit("after").status, 200)

    def test_many_wait_at_once(self):
        """Thousands of open waits, no thread per request, and others are served meanwhile."""
        want = min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
        one = self.instance("--wait-ms", "4000", "--log-level", "error")
        self.redis.command("HSET", "order:busy", "somebody", 1)
        self.redis.command("PEXPIRE", "order:busy", 600000)
        sockets = []
        for _ in range(want):
            s = socket.create_connection(("127.0.0.1", one.port))
            s.sendall(post_bytes("busy"))
            sockets.append(s)
        begun = time.monotonic()
        self.assertEqual(one.submit("other").status, 200)
        self.assertLess(time.monotonic() - begun, 2)
        self.assertLess(len(os.listdir(f"/proc/{one.process.pid}/task")), 12)
        for s in sockets:
            s.settimeout(harness.PATIENCE)
            self.assertIn(b" 409 ", s.recv(4096)[:20])
            s.close()


if __name__ == "__main__":
    harness.main()
