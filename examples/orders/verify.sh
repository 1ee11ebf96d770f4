#!/bin/sh
# verify.sh: 20 clients submit the same order at once over three instances; then the instances'
# logs tell whether the protected sections came strictly one after the other.
set -u

usage()
{
    cat <<'TEXT'
usage: verify.sh [--unsafe] [--requests N] [--work-ms N]
       verify.sh --port N --logs 'FILE FILE FILE' [--requests N]

Starts a private redis-server and three pawl-orders on one shared port, submits one order N (20)
times at once, and reads the logs: one order made, stock down by one, no two sections at a time.
  --unsafe  three instances without a lock and without a guard: shows the overselling
  --port, --logs  use instances that run already (./dev run) instead
  --work-ms  how long each section works (20; with --unsafe 300, so that slow clients meet too)
Exit code: 0 as it should be (with --unsafe: it was oversold), 1 not so, 2 could not run.
TEXT
}

fail()
{
    echo "verify: $*" >&2
    exit 2
}

unsafe=''
requests=20
work_ms=''
port=''
logs=''
while [ $# -gt 0 ]; do
    case $1 in
    --unsafe) unsafe=--unsafe ;;
    --requests | --work-ms | --port | --logs)
        [ $# -gt 1 ] || fail "$1 needs a value"
        case $1 in
        --requests) requests=$2 ;;
        --work-ms) work_ms=$2 ;;
        --port) port=$2 ;;
        --logs) logs=$2 ;;
        esac
        shift
        ;;
    --help | -h)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done
{ [ -z "$port" ] && [ -z "$logs" ]; } || { [ -n "$port" ] && [ -n "$logs" ]; } ||
    fail "--port and --logs go together"

if [ -z "$work_ms" ]; then
    work_ms=20
    [ -z "$unsafe" ] || work_ms=300
fi

here=$(cd "$(dirname "$0")" && pwd)
program=${PAWL_ORDERS:-$here/../../build/bin/pawl-orders}
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

# Wait up to ten seconds for a command to succeed.
await()
{
    n=0
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1))
        [ $n -lt 200 ] || return 1
        sleep 0.05
    done
}

start_instance()
{
    "$program" --port "$2" --own-port 0 --url "redis+unix://$dir/redis.sock" --db "$dir/orders.db" \
        --instance "orders-$1" --work-ms "$work_ms" --wait-ms 30000 $unsafe \
        >"$dir/orders-$1.out" 2>"$dir/orders-$1.log" &
    pids="$pids $!"
    await grep -q ' ready ' "$dir/orders-$1.out" ||
        fail "instance $1 did not start: $(cat "$dir/orders-$1.log")"
    logs="$logs $dir/orders-$1.log"
}

# The first instance takes any free port; the others share it.
start_all()
{
    [ -x "$program" ] || fail "$program is not built; run ./dev build"
    server=${PAWL_REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)} ||
        fail "there is no redis-server and no valkey-server; run ./dev install"
    cli=$(command -v redis-cli || command -v valkey-cli) ||
        fail "there is no redis-cli and no valkey-cli; run ./dev install"
    "$server" --port 0 --unixsocket "$dir/redis.sock" --save '' --appendonly no \
        --dir "$dir" >"$dir/redis.log" 2>&1 &
    pids=$!
    await "$cli" -s "$dir/redis.sock" ping || fail "$server did not start"
    start_instance 1 0
    port=$(sed -n 's/.* ready port=\([0-9]*\) .*/\1/p' "$dir/orders-1.out")
    start_instance 2 "$port"
    start_instance 3 "$port"
}

stock()
{
    curl -s "http://127.0.0.1:$port/api/stock/default" | sed -n 's/.*"quantity":\([0-9]*\).*/\1/p'
}

submit_all()
{
    clients=''
    n=0
    while [ $n -lt "$requests" ]; do
        n=$((n + 1))
        curl -s -o "$dir/answer-$n" -H 'Content-Type: application/json' \
            -d "{\"orderId\":\"$order\",\"userId\":\"u001\"}" \
            "http://127.0.0.1:$port/api/order/submit" &
        clients="$clients $!"
    done
    for client in $clients; do
        wait "$client"
    done
}

# Out of a log line: microseconds, instance, enter or leave, owner, token, outcome.
line_start="s/^[^ ]* us=\([0-9]*\) INFO \([^ ]*\)"
line_end="user=[^ ]* owner=\([^ ]*\) token=\([0-9]*\)"

# The sections of one order as a time line; the exit code says whether two overlapped.
time_line()
{
    read_enter="$line_start enter order=$order $line_end .*/\1 \2 enter \3 \4/p"
    outcome=".*outcome=\([^ ]*\)"
    read_leave="$line_start leave order=$order $line_end $outcome/\1 \2 leave \3 \4 \5/p"
    # shellcheck disable=SC2086 # logs is a list
    cat $logs | sed -n "$read_enter; $read_leave" |
        sort -n | awk '
        { us = $1; id = $2 " " $4; sub(/:.*/, "", id) }
        $3 == "enter" {
            if (!n) first = us
            n++
            name[n] = $2; from[n] = us; token[n] = $5; open[id] = n
            inside++
            if (inside > most) most = inside
        }
        $3 == "leave" && id in open {
            k = open[id]; to[k] = us; outcome[k] = $6; delete open[id]; inside--; last = us
        }
        END {
            if (!n) { print "no section was logged"; exit 1 }
            width = 48; span = last - first; if (span < 1) span = 1
            for (i = 1; i <= n; i++) {
                a = int((from[i] - first) * width / span)
                b = int((to[i] - first) * width / span); if (b <= a) b = a + 1
                line = ""
                for (c = 0; c < width; c++) line = line (c >= a && c < b ? "#" : ".")
                printf "%-9s %s %9.3f ms +%7.3f  token %s  %s\n", name[i], line,
                    (from[i] - first) / 1000, (to[i] - from[i]) / 1000, token[i], outcome[i]
            }
            printf "%d sections, at most %d at a time\n", n, most
            exit most > 1 || n != want
        }' want="$requests"
}

[ -n "$port" ] || start_all
order=verify-$$-$(date +%s)
before=$(stock)
[ -n "$before" ] || fail "no answer from port $port"
submit_all
after=$(stock)
made=$(cat "$dir"/answer-* | grep -o '"duplicate":false' | wc -l)
repeats=$(cat "$dir"/answer-* | grep -o '"duplicate":true' | wc -l)

echo "order $order, submitted $requests times at once on port $port:"
serial=yes
time_line || serial=no
echo "answers: $made made the order, $repeats were told it is a duplicate"
echo "stock: $before before, $after after"

if [ -n "$unsafe" ]; then
    sold=$((before - after))
    if [ "$made" -gt 1 ]; then
        echo "OVERSOLD: one order was made $made times, and the stock went down by $sold"
        exit 0
    fi
    echo "not oversold this time; try more --requests or a longer --work-ms"
    exit 1
fi
if [ "$serial" = yes ] && [ "$made" -eq 1 ] && [ $((made + repeats)) -eq "$requests" ] &&
    [ $((before - after)) -eq 1 ]; then
    echo "VERIFIED: one order, one piece, $requests sections strictly one after the other"
    exit 0
fi
echo "FAILED"
exit 1
