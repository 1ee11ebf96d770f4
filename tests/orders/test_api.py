#!/usr/bin/env python3
"""Every answer of the API to well-formed HTTP."""
import json
import time

import harness


class Submit(harness.Case):
    def setUp(self):
        super().setUp()
        self.one = self.instance("--stock", "few=2")

    def post(self, body, headers=None):
        if isinstance(body, dict):
            body = json.dumps(body)
        return harness.fetch(self.one.port, "POST", "/api/order/submit", body,
                             dict(harness.JSON, **(headers or {})))

    def test_an_order_is_made(self):
        answer = self.one.submit("1001")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json; charset=utf-8")
        done = answer.json
        self.assertEqual(done["message"], "提交成功")
        self.assertEqual((done["orderId"], done["userId"], done["sku"], done["quantity"]),
                         ("1001", "u001", "default", 1))
        self.assertIs(done["duplicate"], False)
        self.assertEqual(done["instance"], "t1")
        self.assertGreater(done["token"], 0)
        self.assertEqual(self.one.stock(), 99)
        self.lock_is_free("1001")

    def test_sku_and_quantity_are_taken(self):
        self.assertEqual(self.one.submit("1", sku="few", quantity=2).status, 200)
        self.assertEqual(self.one.stock("few"), 0)
        self.assertEqual(self.one.stock(), 100)

    def test_the_same_again_is_a_duplicate_without_deduction(self):
        first = self.one.submit("1001").json
        answer = self.one.submit("1001")
        self.assertEqual(answer.status, 200, answer)
        self.assertIs(answer.json["duplicate"], True)
        self.assertEqual(answer.json["token"], first["token"])
        self.assertEqual(self.one.stock(), 99)
        self.assertEqual(len(harness.sections([self.one], "1001")), 2)

    def test_members_in_another_order_are_the_same_content(self):
        self.assertEqual(self.post('{"orderId":"1","userId":"u","quantity":1}').status, 200)
        answer = self.post('{ "quantity":1, "userId":"u", "sku":"default", "orderId":"1" }')
        self.assertIs(answer.json["duplicate"], True)

    def test_other_content_or_user_is_a_conflict(self):
        self.assertEqual(self.one.submit("1").status, 200)
        self.assert_problem(self.one.submit("1", user="u002"), 409, "order_conflict")
        self.assert_problem(self.one.submit("1", quantity=2), 409, "order_conflict")
        self.assert_problem(self.one.submit("1", sku="few"), 409, "order_conflict")
        self.assertEqual(self.one.stock(), 99)

    def test_out_of_stock_has_its_own_code_and_may_be_retried(self):
        self.assert_problem(self.one.submit("1", sku="few", quantity=3), 409, "out_of_stock")
        self.assertEqual(self.one.get("/api/order/1").status, 404)
        self.assertEqual(self.one.submit("1", sku="few", quantity=2).status, 200)

    def test_unknown_sku(self):
        self.assert_problem(self.one.submit("1", sku="none"), 409, "sku_unknown")

    def test_busy_lock_is_answered_at_the_wait_limit(self):
        two = self.instance("--wait-ms", "300")
        self.redis.command("HSET", "order:7", "somebody", 1)
        self.redis.command("PEXPIRE", "order:7", 60000)
        begun = time.monotonic()
        answer = two.submit("7")
        self.assertGreater(time.monotonic() - begun, 0.29)
        self.assertLess(time.monotonic() - begun, 1.5)
        self.assert_problem(answer, 409, "order_in_progress")
        self.assertEqual(answer.json["message"], "当前订单正在处理中，请勿重复提交")
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertEqual(two.get("/api/order/7").status, 404)

    def test_bad_fields_are_named(self):
        good = {"orderId": "1", "userId": "u"}
        bad_names = ["", "x" * 65, "a b", "a/b", "ü", "a\n", "a\u0000b", "'; --", 1, None, True,
                     [], {}]
        for field in ("orderId", "userId", "sku"):
            for value in bad_names:
                with self.subTest(field=field, value=value):
                    answer = self.post(dict(good, **{field: value}))
                    self.assertEqual(answer.status, 400, answer)
                    if answer.code != "bad_json":  # NUL is refused by the parser
                        self.assert_problem(answer, 400, "bad_field")
                        self.assertEqual(answer.json["field"], field)
        for value in (0, -1, 1001, 10 ** 30, 1.0, 1.5, "1", None, True, [1]):
            with self.subTest(quantity=value):
                answer = self.post(dict(good, quantity=value))
                self.assertEqual(answer.status, 400, answer)
        for field in ("orderId", "userId"):
            with self.subTest(missing=field):
                answer = self.post({k: v for k, v in good.items() if k != field})
                self.assert_problem(answer, 400, "bad_field")
                self.assertEqual(answer.json["field"], field)
        self.assertEqual(self.one.stock(), 100)

    def test_names_at_their_limits_are_taken(self):
        for name in ("x", "x" * 64, "A-Z_a.z:0-9"):
            with self.subTest(name=name):
                self.assertEqual(self.one.submit(name, user=name).status, 200)
                self.assertEqual(self.one.get("/api/order/" + name).json["userId"], name)

    def test_unknown_fields_are_refused_and_named(self):
        answer = self.post({"orderId": "1", "userId": "u", "quantitty": 5})
        self.assert_problem(answer, 400, "unknown_field")
        self.assertEqual(answer.json["field"], "quantitty")

    def test_bodies_that_are_no_object(self):
        for body in ("", "null", "[]", "1", '"x"', "{", '{"orderId":"1"', "{'a':1}", "\xff",
                     '{"orderId":"1","orderId":"2","userId":"u"}', "{}x", "[" * 5000):
            with self.subTest(body=body[:40]):
                self.assert_problem(self.post(body.encode("latin-1")), 400, "bad_json")

    def test_content_type(self):
        body = '{"orderId":"1","userId":"u"}'
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
            with self.subTest(kind=kind):
                self.assert_problem(self.post(body, {"Content-Type": kind}), 415,
                                    "unsupported_media_type")
        for kind in ("application/json; charset=utf-8", "Application/JSON"):
            with self.subTest(kind=kind):
                self.assertEqual(self.post(body, {"Content-Type": kind}).status, 200)


class Others(harness.Case):
    def setUp(self):
        super().setUp()
        self.one = self.instance()

    def test_get_order(self):
        made = self.one.submit("1001", quantity=3).json
        found = self.one.get("/api/order/1001").json
        for field in ("orderId", "userId", "sku", "quantity", "token", "instance"):
            self.assertEqual(found[field], made[field])
        self.assertGreater(found["createdUs"], 10 ** 15)
        self.assert_problem(self.one.get("/api/order/1002"), 404, "order_not_found")
        self.assert_problem(self.one.get("/api/order/%20"), 404, "order_not_found")

    def test_get_stock(self):
        self.assertEqual(self.one.get("/api/stock/default").json,
                         {"sku": "default", "quantity": 100})
        self.assert_problem(self.one.get("/api/stock/none"), 404, "sku_not_found")

    def test_a_name_may_be_percent_encoded(self):
        self.one.submit("a:b")
        self.assertEqual(self.one.get("/api/order/a%3Ab").status, 200)

    def test_unknown_paths(self):
        for path in ("/", "/api", "/api/order", "/api/order/", "/api/order/1/x", "/api/stock/",
                     "/healthz/", "/Healthz", "/api/order/a%00b", "/" + "x" * 2000):
            with self.subTest(path=path[:30]):
                self.assert_problem(self.one.get(path), 404, "not_found")

    def test_wrong_methods(self):
        for method, path, allowed in (("GET", "/api/order/submit", "POST"),
                                      ("POST", "/api/order/1", "GET, HEAD"),
                                      ("DELETE", "/api/stock/default", "GET, HEAD"),
                                      ("PUT", "/metrics", "GET, HEAD"),
                                      ("PATCH", "/readyz", "GET, HEAD"),
                                      ("OPTIONS", "/healthz", "GET, HEAD")):
            with self.subTest(method=method, path=path):
                body = "" if method in ("POST", "PUT", "PATCH") else None
                answer = harness.fetch(self.one.port, method, path, body)
                self.assert_problem(answer, 405, "method_not_allowed")
                self.assertEqual(answer.headers["Allow"], allowed)

    def test_head_has_no_body(self):
        answer = harness.fetch(self.one.port, "HEAD", "/healthz")
        self.assertEqual((answer.status, answer.body), (200, b""))

    def test_health(self):
        self.assertEqual(self.one.get("/healthz").status, 200)
        self.assertEqual(self.one.get("/readyz").status, 200)

    def test_accept_language(self):
        zh, en = "订单不存在", "There is no such order."
        for value, message in ((None, zh), ("", zh), ("en", en), ("en-US,en;q=0.9", en),
                               ("zh-CN,zh;q=0.9,en;q=0.8", zh), ("en;q=0.5, zh;q=0.8", zh),
                               ("fr, en;q=0.2", en), ("fr", zh), ("*", zh), ("en;q=0", zh),
                               ("EN-gb", en), ("enm", zh), ("zh;q=0.1,en;q=0.2", en), (";;,,", zh)):
            with self.subTest(value=value):
                headers = {} if value is None else {"Accept-Language": value}
                answer = self.one.get("/api/order/none", headers=headers)
                self.assertEqual(answer.json["message"], message)
                self.assertEqual(answer.code, "order_not_found")
        answer = self.one.submit("1", headers={"Accept-Language": "en"})
        self.assertEqual(answer.json["message"], "Order submitted")

    def test_request_id_goes_into_answer_label_and_log(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        for headers, wanted in (
                ({"X-Request-Id": "req-1"}, "req-1"),
                ({"traceparent": f"00-{trace}-00f067aa0ba902b7-01", "X-Request-Id": "x"}, trace)):
            answer = self.one.submit("o-" + wanted, headers=headers)
            self.assertEqual(answer.headers["X-Request-Id"], wanted)
            self.assertEqual(answer.json["requestId"], wanted)
            self.assertRegex(self.one.log(), f"enter .* owner=[0-9a-f]{{32}}:u001/{wanted} "
                                             f"token=\\d+ request={wanted} ")
        for odd in ("a b", "x" * 65, 'a"b'):
            answer = self.one.get("/healthz", headers={"X-Request-Id": odd})
            self.assertRegex(answer.headers["X-Request-Id"], "^[0-9a-f]{16}$")

    def test_a_connection_serves_many_requests(self):
        import http.client
        connection = http.client.HTTPConnection("127.0.0.1", self.one.port)
        for i in range(20):
            connection.request("POST", "/api/order/submit",
                               json.dumps({"orderId": f"k{i}", "userId": "u"}), harness.JSON)
            self.assertEqual(json.loads(connection.getresponse().read())["orderId"], f"k{i}")
        connection.close()
        self.assertEqual(self.one.stock(), 80)


if __name__ == "__main__":
    harness.main()
