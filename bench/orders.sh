#!/bin/sh
# orders.sh: what the lock costs the order API. One run, interleaved: with the lock and with
# locking turned off (the database's guards stay), for distinct orders and for one hot order.
set -u

usage()
{
    cat <<'TEXT'
usage: orders.sh [--seconds N] [--connections N] [--rounds N] [--sync full|normal] [--work-ms N]
Starts a private redis-server and two groups of three pawl-orders, one group with the lock and one
without, and drives them in turn with wrk. Prints the median requests/s and p99 of the rounds and
their ratios. Rates of this machine move: compare ratios of one run, not numbers of two.
TEXT
}

fail()
{
    echo "bench orders: $*" >&2
    exit 2
}

seconds=4
connections=32
rounds=3
sync=normal
work_ms=0
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --connections | --rounds | --sync | --work-ms)
        [ $# -gt 1 ] || fail "$1 needs a value"
        case $1 in
        --seconds) seconds=$2 ;;
        --connections) connections=$2 ;;
        --rounds) rounds=$2 ;;
        --sync) sync=$2 ;;
        --work-ms) work_ms=$2 ;;
        esac
        shift
        ;;
    *)
        usage
        exit 2
        ;;
    esac
    shift
done

here=$(cd "$(dirname "$0")" && pwd)
program=${PAWL_ORDERS:-$here/../build/bin/pawl-orders}
[ -x "$program" ] || fail "$program is not built; run ./dev build"
command -v wrk >/dev/null || fail "wrk is not installed"
dir=$(mktemp -d) || fail "no temporary folder"
pids=''

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
    for pid in $pids; do
        kill "$pid" 2>/dev/null
    done
    for pid in $pids; do
        wait "$pid" 2>/dev/null
    done
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

await()
{
    n=0
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1))
        [ $n -lt 200 ] || return 1
        sleep 0.05
    done
}

# start NAME PORT DB OPTION...
start()
{
    name=$1
    shift
    "$program" --instance "$name" --port "$1" --db "$dir/$2.db" --db-sync "$sync" \
        --url "redis+unix://$dir/redis.sock" --log-level error --work-ms "$work_ms" \
        --stock default=1000000000 "$3" "$4" >"$dir/$name.out" 2>"$dir/$name.log" &
    pids="$pids $!"
    await grep -q ' ready ' "$dir/$name.out" || fail "$name: $(cat "$dir/$name.log")"
}

start_group()
{
    start "$1-1" 0 "$1" "$2" "$3"
    port=$(sed -n 's/.* ready port=\([0-9]*\) .*/\1/p' "$dir/$1-1.out")
    start "$1-2" "$port" "$1" "$2" "$3"
    start "$1-3" "$port" "$1" "$2" "$3"
    echo "$port" >"$dir/$1.port"
}

cat >"$dir/load.lua" <<'LUA'
local threads = 0
function setup(thread)
    thread:set("id", threads)
    threads = threads + 1
end
function init(args)
    mode, run, n = args[1], args[2], 0
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
end
function request()
    n = n + 1
    local id = mode == "hot" and "hot" or id .. "-" .. n
    return wrk.format(nil, "/api/order/submit", nil,
        '{"orderId":"b' .. run .. "-" .. id .. '","userId":"u001"}')
end
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("RESULT %.1f %.3f %d\n", summary.requests / summary.duration * 1e6,
        latency:percentile(99) / 1000,
        errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
LUA

# one MODE GROUP ROUND: a line "requests/s p99-ms errors" is added to MODE-GROUP.
one()
{
    wrk -t 2 -c "$connections" -d "$seconds" --timeout 20 -s "$dir/load.lua" \
        "http://127.0.0.1:$(cat "$dir/$2.port")/" -- "$1" "$3-$2" >"$dir/wrk.out" 2>&1 ||
        fail "wrk: $(cat "$dir/wrk.out")"
    sed -n 's/^RESULT //p' "$dir/wrk.out" >>"$dir/$1-$2"
    [ -s "$dir/$1-$2" ] || fail "wrk: $(cat "$dir/wrk.out")"
}

# median FILE COLUMN
median()
{
    sort -n -k "$2,$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print v[int((NR + 1) / 2)] }'
}

errors()
{
    awk '{ n += $3 } END { print n + 0 }' "$1"
}

redis-server --port 0 --unixsocket "$dir/redis.sock" --save '' --appendonly no --dir "$dir" \
    >"$dir/redis.log" 2>&1 &
pids=$!
await redis-cli -s "$dir/redis.sock" ping || fail "redis-server did not start"
start_group lock --wait-ms 20000
start_group free --no-lock=1 --wait-ms=20000

round=1
while [ "$round" -le "$rounds" ]; do
    for mode in distinct hot; do
        one $mode lock "$round"
        one $mode free "$round"
    done
    round=$((round + 1))
done

echo "3 instances, $connections connections, $rounds rounds of $seconds s, db-sync $sync," \
    "work $work_ms ms"
printf '%-16s %12s %10s %8s\n' orders requests/s 'p99 ms' errors
for mode in distinct hot; do
    for group in lock free; do
        what=$mode,$([ $group = lock ] && echo 'lock' || echo 'no lock')
        printf '%-16s %12.0f %10.2f %8d\n' "$what" "$(median "$dir/$mode-$group" 1)" \
            "$(median "$dir/$mode-$group" 2)" "$(errors "$dir/$mode-$group")"
    done
    awk -v a="$(median "$dir/$mode-lock" 1)" -v b="$(median "$dir/$mode-free" 1)" \
        -v c="$(median "$dir/$mode-lock" 2)" -v d="$(median "$dir/$mode-free" 2)" \
        -v m="$mode" 'BEGIN {
            printf "%-16s %11.2fx %9.2fx   with the lock over without\n", m, a / b, c / d
        }'
done
