#!/usr/bin/env python3
"""The peer comparison with pawl in it, and docs/benchmarks.md from its figures: ./dev bench peers

Sets up, once, under $PEERS_HOME (default ~/.cache/pawl-peers) what bench/peers/README.md lists, and
where the tools are there also the Go peers (go) and Redisson (javac and mvn); then runs all
workloads: about 30 minutes on an otherwise idle machine. The environment variables of
bench/peers/README.md choose parts; only a whole run writes docs/benchmarks.md."""
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys

SOURCE = os.path.realpath(os.path.join(__file__, "../.."))
PEERS = os.path.join(SOURCE, "bench", "peers")
HOME = os.environ.setdefault("PEERS_HOME", os.path.expanduser("~/.cache/pawl-peers"))
GO_MODULES = ["github.com/bsm/redislock@v0.9.4", "github.com/go-redsync/redsync/v4@v4.13.0",
              "github.com/redis/go-redis/v9@v9.7.0", "github.com/redis/rueidis@v1.0.54",
              "github.com/redis/rueidis/rueidislock@v1.0.54"]


def quiet(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"peers: {' '.join(command)} failed, so this peer is left out:\n{done.stderr[-600:]}",
              file=sys.stderr)
    return done.returncode == 0


def build_go():
    folder = os.path.join(HOME, "go")
    binary = os.path.join(folder, "godrv")
    if os.path.exists(binary) or shutil.which("go") is None:
        return
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(PEERS, "godriver", "main.go"), folder)
    ok = os.path.exists(os.path.join(folder, "go.mod")) or \
        quiet(["go", "mod", "init", "drv"], folder)
    ok = ok and all(quiet(["go", "get", module], folder) for module in GO_MODULES)
    if ok:
        quiet(["go", "build", "-o", "godrv", "."], folder)


def build_redisson():
    """The path of a driver, None if it cannot be had."""
    folder = os.path.join(HOME, "redisson")
    script = os.path.join(folder, "driver")
    if os.path.exists(script):
        return script
    if shutil.which("javac") is None or shutil.which("mvn") is None:
        return None
    os.makedirs(folder, exist_ok=True)
    for name in ("pom.xml", "Driver.java"):
        shutil.copy(os.path.join(PEERS, "redisson", name), folder)
    if not quiet(["mvn", "-q", "-B", "dependency:copy-dependencies",
                  f"-DoutputDirectory={folder}/lib"], folder) or \
            not quiet(["javac", "-cp", "lib/*", "Driver.java"], folder):
        return None
    with open(script, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec java -Xmx1g -cp "{folder}:{folder}/lib/*" Driver "$@"\n')
    os.chmod(script, 0o755)
    return script


def version_of(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "-"
    return out.strip().splitlines()[0]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def rivals(results, workload, column, best):
    """(name, value) of the best rival, by max or min."""
    rows = [(name, row[column]) for name, row in results.get(workload, {}).items()
            if name != "pawl" and row.get(column) is not None]
    return best(rows, key=lambda row: row[1]) if rows else ("-", None)


def ratios(results):
    """One line per aim: pawl's figure, the best rival's, and the ratio."""
    wanted = [("one caller, pairs/s", "w1", "pairs_s", max),
              ("64 callers, pairs/s", "w2", "pairs_s", max),
              ("hot lock, one process: hand-overs/s", "w3 1x16", "true_s", max),
              ("hot lock, 4 processes: hand-overs/s", "w3 4x4", "true_s", max),
              ("hot lock, 4 processes: longest wait, ms", "w3 4x4", "max_ms", min),
              ("hot lock, 4 processes: commands per hand-over", "w3 4x4", "cmds_true", min),
              ("hand-over latency p50, ms", "w4", "p50_ms", min),
              ("10,000 held locks for 30 s: client CPU, s", "w5", "cpu_s", min),
              ("10,000 held locks: memory, kB", "w5", "rss_kb", min)]
    lines = ["| what | pawl | best rival | pawl / rival |", "| --- | --- | --- | --- |"]
    for label, workload, column, best in wanted:
        ours = results.get(workload, {}).get("pawl", {}).get(column)
        name, theirs = rivals(results, workload, column, best)
        if ours is None or theirs is None:
            continue
        ratio = f"{ours / theirs:.3g}" if theirs > 0 else "-"
        lines.append(f"| {label} | {ours:.5g} | {theirs:.5g} ({name}) | {ratio} |")
    return "\n".join(lines)


def write_page(tables):
    with open(os.path.join(HOME, "results.json"), encoding="utf-8") as file:
        results = json.load(file)
    with open(os.path.join(SOURCE, "bench", "benchmarks.head.md"), encoding="utf-8") as file:
        head = file.read()
    facts = {"date": datetime.date.today().isoformat(), "cpu": processor(),
             "cores": os.cpu_count(), "kernel": platform.release(),
             "reps": os.environ.get("REPS", "3"),
             "redis": version_of(["redis-server", "--version"]), "ratios": ratios(results),
             "tables": tables.strip()}
    for name, value in facts.items():
        head = head.replace("{" + name + "}", str(value))
    with open(os.path.join(SOURCE, "docs", "benchmarks.md"), "w", encoding="utf-8") as file:
        file.write(head)


def main():
    build_go()
    redisson = build_redisson()
    own = "pawl=" + os.path.join(SOURCE, "build", "bin", "pawl-peer")
    if redisson:
        own += ",redisson=" + redisson
    env = dict(os.environ, OWN=own)
    done = subprocess.run(["sh", os.path.join(PEERS, "run.sh")], env=env, stdout=subprocess.PIPE,
                          text=True, check=True)
    print(done.stdout)
    if not any(os.environ.get(name) for name in ("PEERS", "WORK")):
        write_page(done.stdout)


main()
