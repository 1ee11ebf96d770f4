"""Tests of the samples in examples/: they run against a real server and leave no lock behind."""
import os

from harness import BUILD, client_program, redis_server, run, run_tests


def sample(name):
    return os.path.join(BUILD, "examples", name, name)


def keys_left(url):
    socket = url.removeprefix("redis+unix://")
    return [key for key in run(client_program(), "-s", socket, "keys", "*").split()
            if not key.startswith("pawl:f:")]


def test_hello_takes_and_gives_back():
    path = sample("hello")
    with redis_server() as url:
        assert run(path, url).startswith("mine, with token ")
        assert keys_left(url) == []


def test_hello_without_a_server_says_why():
    out = run(sample("hello"), "redis+unix:///nonexistent/socket", ok=False)
    assert out.startswith("hello: ") and "/nonexistent/socket" in out, out


def test_epoll_jobs_work_one_after_the_other():
    path = sample("epoll")
    with redis_server() as url:
        lines = run(path, url, timeout=30).splitlines()
        assert sorted(line[:11] for line in lines) == ["job 1 works", "job 2 works", "job 3 works"]
        tokens = [int(line.split()[-1]) for line in lines]
        assert tokens == sorted(set(tokens)), lines
        assert keys_left(url) == []


if __name__ == "__main__":
    run_tests(globals())
