"""Test of examples/nginx: one address in front of two order services, of which one is killed."""
import concurrent.futures
import contextlib
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request

from harness import BUILD, SOURCE, Skip, await_true, free_ports, redis_server, run_tests, \
    started, temporary_folder, write

ORDERS = os.path.join(BUILD, "bin", "pawl-orders")


def fetch(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}",
                                     data=body and json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def is_ready(port, path="/readyz"):
    try:
        return fetch(port, path)[0] == 200
    except OSError:
        return False


def configuration(folder, first, second, front):
    with open(os.path.join(SOURCE, "examples/nginx/nginx.conf"), encoding="utf-8") as sample:
        text = sample.read()
    for port, here in ((5001, first), (5002, second), (8080, front)):
        assert f":{port}" in text, port
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{here}")
    return write(folder, "nginx.conf", text)


@contextlib.contextmanager
def two_services_behind_nginx():
    """Gives the front port and the two services."""
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if nginx is None:
        raise Skip("no nginx here")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        url = stack.enter_context(redis_server())
        first = free_ports(3)
        log = stack.enter_context(open(os.path.join(folder, "log"), "w", encoding="utf-8"))
        services = [
            stack.enter_context(started(ORDERS, "--port", str(first + i), "--url", url, "--db",
                                        os.path.join(folder, "orders.db"), "--instance", f"s{i}",
                                        stdout=log, stderr=log))
            for i in (0, 1)]
        for i in (0, 1):
            await_true(lambda port=first + i: is_ready(port), f"service {i}")
        front = stack.enter_context(started(
            nginx, "-p", folder, "-c", configuration(folder, first, first + 1, first + 2),
            "-g", "daemon off;", stdout=subprocess.DEVNULL, stderr=log))
        stack.callback(front.terminate)
        await_true(lambda: is_ready(first + 2, "/healthz"), "nginx")
        yield first + 2, services
        front.terminate()
        front.wait(timeout=10)


def test_one_order_through_nginx_and_on_when_a_service_dies():
    order = {"orderId": "1001", "userId": "u001"}
    with two_services_behind_nginx() as (port, services):
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: fetch(port, "/api/order/submit", order), range(10)))
        assert [status for status, _ in answers] == [200] * 10, answers
        first = [text for _, text in answers if not json.loads(text).get("duplicate")]
        assert len(first) == 1, answers
        assert fetch(port, "/metrics")[0] == 404
        services[0].kill()
        services[0].wait()
        for number in range(6):
            body = {"orderId": f"later-{number}", "userId": "u001"}
            status, text = fetch(port, "/api/order/submit", body)
            assert status == 200, (status, text)


if __name__ == "__main__":
    run_tests(globals())
