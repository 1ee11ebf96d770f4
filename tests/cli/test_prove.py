#!/usr/bin/env python3
"""pawl lease, verify, bench."""
import json

from clitest import UNREACHABLE, USAGE, Redis, pawl, run_tests, started


def test_verify_finds_nothing_wrong_with_a_lock():
    with Redis() as redis:
        done = pawl(redis, "verify", "--clients", "4", "--seconds", "1", "--json", "k")
        report = json.loads(done.out)
        assert done.code == 0 and report["excludes"], done
        assert report["sections"] > 20 and report["overlaps"] == 0 and report["disorders"] == 0
        assert len(report["per_client"]) == 4 and min(report["per_client"]) > 0, report
        done = pawl(redis, "verify", "--seconds", "1", "k")
        assert done.code == 0 and "it excludes" in done.out and "#" in done.out, done


def test_verify_finds_a_lock_that_is_taken_away():
    # A saboteur lets everybody in: what verify must not call exclusion.
    with Redis() as redis, started(redis, "verify", "--clients", "4", "--seconds", "2", "--hold",
                                   "20ms", "--json", "k") as verify:
        while verify.poll() is None:
            redis("DEL", "k")
        report = json.loads(verify.stdout.read())
        assert verify.returncode == 1 and report["overlaps"] > 0, report


def test_verify_without_a_store():
    assert pawl("redis://127.0.0.1:1", "verify", "--seconds", "1", "k").code == UNREACHABLE
    assert pawl("redis://127.0.0.1:1", "verify").code == USAGE


def test_bench_measures_beside_the_raw_limits():
    with Redis() as redis:
        done = pawl(redis, "bench", "--seconds", "1", "--locks", "200", "--json")
        rows = {row["what"]: row for row in json.loads(done.out)}
        assert done.code == 0 and set(rows) == {"ping", "set-del", "pair", "hand-over", "many"}
        assert all(row["n"] > 10 and row["p50_ms"] <= row["p99_ms"] for row in rows.values())
        assert rows["many"]["n"] == 200
        done = pawl(redis, "bench", "--seconds", "1", "--locks", "10")
        assert done.code == 0 and "#" in done.out and "WARNING" not in done.err
        assert not [key for key in redis("KEYS", "*") if b":f:" not in key]
    done = pawl("redis://192.0.2.1", "bench", "--connect-timeout", "200ms")
    assert "WARNING" in done.err and done.code == UNREACHABLE


def test_lease_from_what_is_seen():
    with Redis() as redis:
        with started(redis, "run", "k", "--", "sleep", "0.8"):
            done = pawl(redis, "lease", "--for", "1500ms", "--every", "50ms", "--json", "k")
        report = json.loads(done.out)
        assert done.code == 0 and report["holds"] == 1 and report["open"] == 0, report
        assert 600 < report["p99_ms"] < 1200 and report["lease_ms"] == 3000 or \
            report["lease_ms"] == 2000, report
        assert report["takeover_ms"] == report["lease_ms"]
        assert pawl(redis, "lease", "--for", "100ms", "k").code == 1


def test_lease_from_metrics():
    text = "".join(f'pawld_hold_seconds_bucket{{le="{le}"}} {n}\n'
                   for le, n in (("0.1", 50), ("1", 99), ("10", 100), ("+Inf", 100)))
    done = pawl(None, "lease", "--metrics", "-", "--json", stdin=text.encode())
    report = json.loads(done.out)
    assert done.code == 0 and report["holds"] == 100, done
    assert report["p50_ms"] == 1000 and report["p99_ms"] == 1000 and report["longest_ms"] == 10000
    done = pawl(None, "lease", "--metrics", "-", stdin=text.encode())
    assert "2 to 3 times" in done.out and "crash" in done.out, done


if __name__ == "__main__":
    run_tests(globals())
