#!/usr/bin/env python3
"""Hand-over latency beside the raw limit: ./dev bench handover

One pawl process holds a lock and releases it at known times, another waits for it; measured from
the return of the release to the return of the acquire, as the peer comparison does (the message is
on its way while the release still waits for its answer). In the same run a raw publisher and
subscriber measure publish-to-message; rounds of both take turns, so that noise hits both."""
import json
import os
import statistics
import subprocess
import sys
import time

SOURCE = os.path.realpath(os.path.join(__file__, "../.."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))

from redis_server import RedisServer  # noqa: E402

BUILD = os.path.join(SOURCE, "build")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
REPS = int(os.environ.get("REPS", "20"))
PERIOD_MS = 320


def raw(port):
    out = subprocess.run([os.path.join(BUILD, "bench", "rawpub"), str(port), str(REPS * 3), "20"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["p50"]


def pawl(port, key):
    start = time.monotonic_ns() + 500 * 10**6
    args = [f"key={key}", f"reps={REPS}", f"period={PERIOD_MS}", f"t0={start}"]
    peers = [subprocess.Popen([os.path.join(BUILD, "bin", "pawl-peer"), "pawl",
                               f"127.0.0.1:{port}", mode, *args],
                              stdout=subprocess.PIPE, text=True)
             for mode in ("w4hold", "w4wait")]
    released, acquired = (json.loads(peer.communicate()[0])["t"] for peer in peers)
    return statistics.median((b - a) / 1000 for a, b in zip(released, acquired))


def main():
    rows = []
    with RedisServer(tcp=True) as server:
        for number in range(ROUNDS):
            rows.append((raw(server.port), pawl(server.port, f"handover{number}")))
    print("round   raw publish-to-message p50 us   release returned to acquire returned p50 us")
    for number, (limit, ours) in enumerate(rows):
        print(f"{number:5}   {limit:31.1f}   {ours:47.1f}")
    limit, ours = (statistics.median(column) for column in zip(*rows))
    print(f"ratio of medians: {ours / limit:.2f}")


main()
