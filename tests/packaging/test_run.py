"""Tests of ./dev run and ./dev stop with the real order service: what is started ends, and nothing
else does."""
import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

from harness import BUILD, SOURCE, Skip, await_true, free_ports, run, run_tests, started, \
    temporary_folder

DEV = os.path.join(SOURCE, "dev")


def environment(folder):
    return dict(os.environ, PAWL_RUN_DIR=os.path.join(folder, "run"))


def pids(folder):
    """Name to pid, of what a run noted; empty after its end."""
    try:
        with open(os.path.join(folder, "run", "pids"), encoding="ascii") as noted:
            return {line.split()[0]: int(line.split()[1]) for line in noted}
    except FileNotFoundError:
        return {}


def alive(pid):
    """A zombie is not, unless other threads of it still end: until then it has its ports."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                return True
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except FileNotFoundError:
        return False


def get(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}",
                                     data=body and json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def need_service():
    if os.path.realpath(BUILD) != os.path.realpath(os.path.join(SOURCE, "build")):
        raise Skip("./dev run uses build/, and this is another build folder")


@contextlib.contextmanager
def running(name=""):
    """Three services, below a folder of this name; gives folder and port."""
    need_service()
    with temporary_folder() as outer:
        folder = os.path.join(outer, name)
        port = free_ports(4)
        try:
            run(DEV, "run", "--port", str(port), "--detach", env=environment(folder))
            yield folder, port
        finally:
            run(DEV, "stop", env=environment(folder))


def test_three_services_share_a_port_and_stop_ends_all():
    with running() as (folder, port):
        noted = pids(folder)
        assert sorted(noted) == ["orders-1", "orders-2", "orders-3", "redis"], noted
        for own in (1, 2, 3):
            assert get(port + own, "/readyz")[0] == 200
        order = {"orderId": "1001", "userId": "u001"}
        assert get(port, "/api/order/submit", order)[0] == 200
        assert '"duplicate":true' in get(port, "/api/order/submit", order)[1].replace(" ", "")
    for name, pid in noted.items():
        assert not alive(pid), name


def test_folders_may_have_any_name():
    for name in ("a b%41@ü", "deep/" * 20):
        with running(name) as (_, port):
            assert get(port + 1, "/readyz")[0] == 200


def test_a_second_run_is_refused():
    with running() as (folder, port):
        out = run(DEV, "run", "--detach", "--port", str(port), env=environment(folder), ok=False)
        assert "one is running already" in out, out
        with temporary_folder() as other:
            out = run(DEV, "run", "--detach", "--port", str(port), env=environment(other), ok=False)
            assert f"port {port} is in use" in out, out
            assert pids(other) == {}
        assert all(map(alive, pids(folder).values()))


def test_the_others_serve_when_one_is_killed():
    with running() as (folder, port):
        os.kill(pids(folder)["orders-2"], signal.SIGKILL)
        await_true(lambda: not alive(pids(folder)["orders-2"]), "the end of orders-2")
        for number in range(20):
            order = {"orderId": f"k{number}", "userId": "u001"}
            assert get(port, "/api/order/submit", order)[0] == 200


def test_interrupt_ends_everything():
    need_service()
    with temporary_folder() as folder:
        port = free_ports(4)
        with started(DEV, "run", "--port", str(port), env=environment(folder),
                     stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            for line in process.stdout:
                if "Ctrl-C" in line:
                    break
            noted = pids(folder)
            assert len(noted) == 4 and all(map(alive, noted.values())), noted
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            process.wait(timeout=20)
        for name, pid in noted.items():
            assert not alive(pid), name


def test_stop_leaves_a_process_that_only_has_the_number():
    with temporary_folder() as folder, started("sleep", "60") as stranger:
        os.makedirs(os.path.join(folder, "run"))
        with open(os.path.join(folder, "run", "pids"), "w", encoding="ascii") as noted:
            noted.write(f"orders-1 {stranger.pid} 1\nredis {stranger.pid} 1\n")
        assert "nothing is running" in run(DEV, "stop", env=environment(folder))
        assert alive(stranger.pid)


if __name__ == "__main__":
    run_tests(globals())
