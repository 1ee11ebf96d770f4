#!/usr/bin/env python3
"""pawl run: the lock is lost, the store goes, the maximum is reached, processes are killed or
frozen: the job is gone before anybody else can be in."""
import os
import signal
import time

from clitest import (LOST, MAX_HOLD, Redis, alive, await_text, await_true, folder, pawl, read_file,
                     run_tests, started, state_of)

# Trees that get away from whoever kills one process or one group only.
TREES = {
    "program in a shell": "sleep 300 & echo $! >>{pids}; wait",
    "pipeline": "sleep 300 | sleep 300 & echo $! >>{pids}; jobs -p >>{pids}; wait",
    "new session": "setsid sh -c 'echo $$ >>{pids}; exec sleep 300' & wait",
    "double fork": "(sh -c 'echo $$ >>{pids}; exec sleep 300' &) ; sleep 300",
    "ignores TERM": "trap '' TERM; echo $$ >>{pids}; while :; do sleep 0.05; done",
}


def keeper_of(redis, key="k"):
    return int(redis("HGET", key, "@w").split()[1])


def pids_in(path):
    return [int(pid) for pid in read_file(path).split()]


def each_tree(redis, *options):
    """Runs every tree under the lock; gives the process, the file of pids, and its name."""
    for name, line in TREES.items():
        with folder() as top:
            pids = os.path.join(top, "pids")
            with started(redis, "run", *options, "k", "--", "bash", "-c",
                         line.format(pids=pids)) as run:
                await_text(pids)
                yield run, pids, name


def test_a_deleted_lock_stops_the_whole_tree():
    with Redis() as redis:
        for run, pids, name in each_tree(redis, "--lease", "600ms", "--grace", "200ms"):
            begun = time.monotonic()
            redis("DEL", "k")
            assert run.wait(5) == LOST, name
            assert time.monotonic() - begun < 1.5, name
            assert not [pid for pid in pids_in(pids) if alive(pid)], name


def test_the_whole_tree_goes_before_the_lease_when_the_store_does():
    for name, line in TREES.items():
        with Redis() as redis, folder() as top:
            pids = os.path.join(top, "pids")
            with started(redis, "run", "--lease", "1s", "--grace", "200ms", "k", "--", "bash",
                         "-c", line.format(pids=pids)) as run:
                await_text(pids)
                time.sleep(0.4)
                os.kill(redis.process.pid, signal.SIGSTOP)
                stopped = time.monotonic()
                await_true(lambda: not [pid for pid in pids_in(pids) if alive(pid)], name, 3)
                assert time.monotonic() - stopped < 1.0, name
                assert run.wait(5) == LOST, name


def test_max_hold_stops_the_job_before_the_lock_passes_on():
    with Redis() as redis:
        options = ("--lease", "900ms", "--max-hold", "1s", "--grace", "250ms")
        for run, pids, name in each_tree(redis, *options):
            while redis("EXISTS", "k"):
                time.sleep(0.001)
            assert not [pid for pid in pids_in(pids) if alive(pid)], f"free before gone: {name}"
            assert run.wait(5) == MAX_HOLD, name


def test_no_renew_ends_with_the_lease():
    with Redis() as redis:
        begun = time.monotonic()
        done = pawl(redis, "run", "--no-renew", "--lease", "1s", "k", "--", "sleep", "30")
        assert done.code == LOST and time.monotonic() - begun < 1.0, done
        done = pawl(redis, "run", "--no-renew", "--lease", "5s", "k", "--", "true")
        assert done.code == 0


def test_renewed_for_longer_than_the_lease():
    with Redis() as redis:
        done = pawl(redis, "run", "--lease", "300ms", "k", "--", "sh", "-c", "sleep 1.5; exit 4")
        assert done.code == 4, done


def test_an_ending_job_is_not_called_lost_after_a_restart():
    with Redis() as redis:
        with started(redis, "run", "--lease", "10s", "k", "--", "sleep", "1") as run:
            await_true(lambda: redis("EXISTS", "k"), "held")
            redis.stop()
            redis.start()
            assert run.wait(10) in (0, LOST)


def test_sigkill_of_pawl_takes_the_whole_tree():
    with Redis() as redis:
        for run, pids, name in each_tree(redis):
            run.kill()
            await_true(lambda: not [pid for pid in pids_in(pids) if alive(pid)], name, 3)
            await_true(lambda: not redis("EXISTS", "k"), "the lock is given back", 3)


def test_sigkill_of_the_keeper_takes_the_whole_tree():
    with Redis() as redis:
        for run, pids, name in each_tree(redis):
            os.kill(keeper_of(redis), signal.SIGKILL)
            assert run.wait(5) == LOST, name
            assert not [pid for pid in pids_in(pids) if alive(pid)], name
            redis("DEL", "k")


def test_sigkill_of_both_takes_the_job():
    with Redis() as redis, folder() as top:
        pids = os.path.join(top, "pids")
        with started(redis, "run", "k", "--", "sh", "-c",
                     f"echo $$ >{pids}; exec sleep 300") as run:
            await_text(pids)
            keeper = keeper_of(redis)
            os.kill(run.pid, signal.SIGSTOP)
            os.kill(keeper, signal.SIGKILL)
            run.kill()
            await_true(lambda: not alive(pids_in(pids)[0]), "the job went", 3)


def test_pawl_stopped_the_lock_stays_held():
    with Redis() as redis, folder() as top:
        pids = os.path.join(top, "pids")
        with started(redis, "run", "--lease", "600ms", "k", "--", "sh", "-c",
                     f"echo $$ >{pids}; exec sleep 300") as run:
            await_text(pids)
            os.kill(run.pid, signal.SIGSTOP)
            await_true(lambda: state_of(run.pid) == "T", "stopped")
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                assert redis("EXISTS", "k")
                time.sleep(0.02)
            os.kill(run.pid, signal.SIGCONT)
            run.send_signal(signal.SIGTERM)
            assert run.wait(5) == 143


def test_keeper_frozen_the_job_goes_before_the_next_one_starts():
    with Redis() as redis, folder() as top:
        pids, log = os.path.join(top, "pids"), os.path.join(top, "log")
        with started(redis, "run", "--lease", "1s", "k", "--", "bash", "-c",
                     TREES["new session"].format(pids=pids)) as run:
            await_text(pids)
            with started(redis, "run", "k", "--", "sh", "-c", f"echo in >{log}; sleep 60"):
                time.sleep(0.2)
                os.kill(keeper_of(redis), signal.SIGSTOP)
                while not read_file(log):
                    left = [pid for pid in pids_in(pids) if alive(pid)]
                    time.sleep(0.002)
                assert not left, "the next job started beside the first"
                assert run.wait(5) == LOST


def test_revoked_by_an_operator():
    with Redis() as redis:
        with started(redis, "run", "--lease", "900ms", "k", "--", "sleep", "60") as run:
            await_true(lambda: redis("EXISTS", "k"), "held")
            redis("HSET", "k", "@r", "1")
            assert run.wait(5) == LOST


if __name__ == "__main__":
    run_tests(globals())
