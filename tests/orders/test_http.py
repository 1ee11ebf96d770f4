#!/usr/bin/env python3
"""Odd, hostile and slow HTTP: bytes on a socket instead of a client library."""
import http.client
import socket
import time

import harness

BODY = b'{"orderId":"1","userId":"u"}'


def request(*lines, body=b"", method=b"POST", target=b"/api/order/submit", host=b"Host: x"):
    head = [method + b" " + target + b" HTTP/1.1"] + ([host] if host else []) + list(lines)
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def good(order=b"1", *lines):
    body = BODY.replace(b'"1"', b'"' + order + b'"')
    return request(b"Content-Type: application/json", b"Content-Length: %d" % len(body), *lines,
                   body=body)


class Raw(harness.Case):
    def setUp(self):
        super().setUp()
        self.one = self.instance("--request-ms", "600", "--idle-ms", "1500",
                                 "--max-header", "4096", "--max-body", "2048")

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.one.port), timeout=harness.PATIENCE)
        self.addCleanup(s.close)
        return s

    def read_all(self, s):
        data = b""
        try:
            while True:
                part = s.recv(65536)
                if not part:
                    return data
                data += part
        except ConnectionResetError:
            return data

    def send(self, data):
        """Send bytes, read to the end of the stream; (status, whole answer)."""
        s = self.connect()
        s.sendall(data)
        answer = self.read_all(s)
        status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0
        return status, answer

    def assert_refused(self, data, status, code):
        got, answer = self.send(data)
        self.assertEqual(got, status, answer[:400])
        self.assertIn(b'"code":"' + code.encode() + b'"', answer)
        self.assertIn(b"application/problem+json", answer)
        self.assertIn(b"Connection: close", answer)

    def alive(self):
        self.assertEqual(self.one.get("/healthz").status, 200)

    def test_framing_that_evhttp_would_take(self):
        json = b"Content-Type: application/json"
        n = b"%d" % len(BODY)
        cases = {
            "plus sign": request(json, b"Content-Length: +" + n, body=BODY),
            "minus": request(json, b"Content-Length: -1", body=BODY),
            "hex": request(json, b"Content-Length: 0x1c", body=BODY),
            "blank inside": request(json, b"Content-Length: 2 8", body=BODY),
            "empty": request(json, b"Content-Length:", body=BODY),
            "list": request(json, b"Content-Length: " + n + b", " + n, body=BODY),
            "huge": request(json, b"Content-Length: 99999999999999999999", body=BODY),
            "twice": request(json, b"Content-Length: " + n, b"Content-Length: " + n, body=BODY),
            "no host": request(json, b"Content-Length: " + n, host=None, body=BODY),
            "two hosts": request(json, b"Host: y", b"Content-Length: " + n, body=BODY),
            "odd host": request(json, host=b"Host: a b", body=BODY),
            "host with user": request(json, host=b"Host: a@b", body=BODY),
            "blank before colon": request(json, b"Content-Length : " + n, body=BODY),
            "folded": request(json, b"X-A: 1", b" 2", b"Content-Length: " + n, body=BODY),
            "no name": request(json, b": x", body=BODY),
            "no colon": request(json, b"nonsense", body=BODY),
            "bare line feed": good().replace(b"\r\n", b"\n", 1),
            "bare return": good().replace(b"Host: x", b"Host: x\rX: y"),
            "control character": good().replace(b"Host: x", b"Host: x\x01"),
            "NUL": good().replace(b"Host: x", b"Host: x\r\nX-A: \x00"),
            "first an empty line": b"\r\n" + good(),
            "body with a GET": request(b"Content-Length: 5", method=b"GET", target=b"/healthz",
                                       body=b"GET /"),
            "two words": b"GET /healthz\r\n\r\n",
            "tab": b"GET\t/healthz\tHTTP/1.1\r\nHost: x\r\n\r\n",
            "three blanks": b"GET /healthz x HTTP/1.1\r\nHost: x\r\n\r\n",
            "absolute target": request(method=b"GET", target=b"http://x/healthz"),
            "target without slash": request(method=b"GET", target=b"healthz"),
            "binary": bytes(range(128, 256)) + b"\r\n\r\n",
        }
        for name, data in cases.items():
            with self.subTest(name):
                self.assert_refused(data, 400, "bad_request")
        self.assertEqual(self.one.stock(), 100)

    def test_transfer_codings_are_refused(self):
        for value in (b"chunked", b"xchunked", b"identity", b"gzip, chunked"):
            with self.subTest(value):
                self.assert_refused(request(b"Transfer-Encoding: " + value, body=b"0\r\n\r\n"),
                                    411, "length_required")
                self.assert_refused(request(b"Content-Length: 5", b"Transfer-Encoding: " + value,
                                            body=b"0\r\n\r\n"), 411, "length_required")
        self.assert_refused(request(b"Content-Type: application/json"), 411, "length_required")

    def test_versions_and_methods(self):
        self.assert_refused(b"GET /healthz HTTP/2.0\r\n\r\n", 505, "version_not_supported")
        self.assert_refused(b"GET /healthz HTTP/0.9\r\n\r\n", 505, "version_not_supported")
        self.assert_refused(b"GET /healthz HTTX/1.1\r\n\r\n", 400, "bad_request")
        self.assert_refused(request(method=b"BREW"), 501, "method_unknown")
        self.assert_refused(request(method=b"CONNECT"), 501, "method_unknown")
        self.assert_refused(request(method=b"get"), 501, "method_unknown")
        status, answer = self.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        self.assertEqual(status, 200, answer)

    def test_limits(self):
        self.assert_refused(request(b"X-A: " + b"a" * 5000), 431, "headers_too_large")
        self.assert_refused(request(*[b"X: y"] * 101), 431, "headers_too_large")
        self.assert_refused(b"GET /" + b"a" * 5000, 414, "uri_too_long")
        self.assert_refused(request(b"Content-Length: 2049"), 413, "body_too_large")
        self.assert_refused(request(b"Content-Length: 1073741824"), 413, "body_too_large")
        self.assert_refused(request(b"Content-Length: 1073741824", b"Expect: 100-continue"), 413,
                            "body_too_large")
        self.assert_refused(request(b"Expect: magic", b"Content-Length: 1"), 417,
                            "expectation_failed")

    def test_the_answer_arrives_though_the_client_goes_on_sending(self):
        s = self.connect()
        s.sendall(request(b"Content-Length: 1073741824"))
        try:
            for _ in range(200):
                s.sendall(b"x" * 65536)
        except OSError:
            pass
        self.assertIn(b" 413 ", self.read_all(s)[:40])
        self.alive()

    def test_expect_continue(self):
        s = self.connect()
        head, body = good(b"1", b"Expect: 100-continue", b"Connection: close").split(b"\r\n\r\n")
        s.sendall(head + b"\r\n\r\n")
        self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 100 "))
        s.sendall(body)
        self.assertIn(b"HTTP/1.1 200 ", self.read_all(s))

    def test_bytes_one_by_one(self):
        s = self.connect()
        for byte in good(b"1", b"Connection: close"):
            s.sendall(bytes([byte]))
        self.assertIn(b"HTTP/1.1 200 ", self.read_all(s))

    def test_a_pipelined_request_is_answered_or_cut_never_mixed(self):
        status, answer = self.send(good(b"1") + good(b"2"))
        self.assertEqual(status, 200)
        self.assertIn(b'"orderId":"1"', answer)
        self.assertIn(b"Connection: close", answer)
        self.assertEqual(answer.count(b"HTTP/1.1"), 1)
        self.alive()

    def test_a_dripping_client_is_cut(self):
        """In the header and in the body, though each pause is short."""
        head = good()
        for stop in (len(head) - len(BODY) - 10, len(head) - 5):
            s = self.connect()
            s.sendall(head[:1])
            begun = time.monotonic()
            s.sendall(head[1:stop - 20])
            s.settimeout(0.1)
            answer = b""
            sent = stop - 20
            while time.monotonic() - begun < 10:
                try:
                    s.sendall(head[sent:sent + 1] if sent < stop else b"")
                    sent += 1
                except OSError:
                    break
                try:
                    answer += s.recv(4096)
                    break
                except socket.timeout:
                    pass
            self.assertIn(b" 408 ", answer)
            self.assertLess(time.monotonic() - begun, 3)

    def test_an_idle_connection_is_closed(self):
        s = self.connect()
        begun = time.monotonic()
        self.assertEqual(self.read_all(s), b"")
        self.assertGreater(time.monotonic() - begun, 1.0)

    def test_a_silent_flood_does_not_shut_others_out(self):
        sockets = [self.connect() for _ in range(300)]
        for s in sockets:
            s.sendall(b"POST /api/order/submit HTTP/1.1\r\nHo")
        self.assertEqual(self.one.submit("1").status, 200)
        self.assertGreater(self.one.metric("pawl_orders_connections"), 300)
        harness.await_true(lambda: self.one.metric("pawl_orders_connections") < 10,
                           "slow connections are cut")

    def test_random_bytes(self):
        import random
        dice = random.Random(7)
        for i in range(200):
            data = bytearray(good(b"r%d" % i))
            for _ in range(dice.randrange(1, 8)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            s = self.connect()
            s.sendall(bytes(data[:dice.randrange(1, len(data) + 1)]))
            s.close()
        self.alive()


class Limits(harness.Case):
    def test_connections_have_a_limit(self):
        one = self.instance("--max-connections", "20")
        held = [socket.create_connection(("127.0.0.1", one.port)) for _ in range(20)]
        harness.await_true(lambda: b" 503 " in self.once(one), "the limit")
        for s in held:
            s.close()
        harness.await_true(lambda: b" 200 " in self.once(one), "room again")

    def test_a_flood_takes_no_descriptor_of_the_store(self):
        """Few descriptors, more clients than that, and the store's connection breaks."""
        one = self.instance("--request-ms", "60000", nofile=256)
        early = http.client.HTTPConnection("127.0.0.1", one.port, timeout=harness.PATIENCE)
        self.addCleanup(early.close)

        def submit():
            early.request("POST", "/api/order/submit", BODY, harness.JSON)
            reply = early.getresponse()
            reply.read()
            return reply.status
        self.assertEqual(submit(), 200)
        flood = []
        for _ in range(400):
            s = socket.socket()
            s.settimeout(1)
            s.connect(("127.0.0.1", one.port))
            s.sendall(b"POST /api")
            flood.append(s)
        self.redis.stop()
        self.redis.start()
        harness.await_true(lambda: submit() == 200, "an order in the middle of the flood")
        for s in flood:
            s.close()
        harness.await_true(lambda: b" 200 " in self.once(one), "room again")
        harness.await_true(lambda: one.submit("2").status == 200, "an order after the flood")
        self.assertNotIn("accept", one.log())

    def test_a_flood_costs_no_lock(self):
        """50 orders are held and renewed while slow and broken requests pour in."""
        one = self.instance("--lease-ms", "600", "--work-ms", "2000", "--request-ms", "1000")
        held = [lambda i=i: one.submit(f"h{i}") for i in range(50)]

        def flood():
            end = time.monotonic() + 2
            sockets = []
            while time.monotonic() < end:
                s = socket.create_connection(("127.0.0.1", one.port))
                s.sendall(b"POST /api/order/submit HTTP/1.1\r\n" + b"X: y\r\n" * 90)
                sockets.append(s)
                if len(sockets) > 500:
                    sockets.pop(0).close()
        answers = harness.in_parallel(held + [flood])
        self.assertEqual([a.status for a in answers[:50]], [200] * 50)
        self.assertEqual(one.stock(), 50)

    def once(self, one):
        with socket.create_connection(("127.0.0.1", one.port), timeout=5) as s:
            try:
                s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                return s.recv(100)
            except OSError:
                return b""


if __name__ == "__main__":
    harness.main()
