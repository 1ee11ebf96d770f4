# dev-run.sh: the part of ./dev that starts and ends the order services; read by it, not run. Ends
# only processes that it started: by pid, and only if the start time is still the one noted.
# shellcheck shell=sh disable=SC2154 # top, build: set by dev

run_dir=${PAWL_RUN_DIR:-$top/.run}
run_pids=$run_dir/pids

# start_time PID: field 22 of its stat, counted behind the name, which may hold anything.
start_time()
{
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

note_pid()
{
    echo "$1 $2 $(start_time "$2")" >>"$run_pids"
}

# is_noted PID START: that very process lives. It does not as a zombie, unless other threads of it
# still end: until then it has its ports.
is_noted()
{
    [ -n "$2" ] && [ "$(start_time "$1")" = "$2" ] || return 1
    [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)" = Z ] || return 0
    set -- "/proc/$1/task"/*
    [ $# -gt 1 ]
}

run_is_alive()
{
    [ -f "$run_pids" ] || return 1
    while read -r _name pid start; do
        is_noted "$pid" "$start" && return 0
    done <"$run_pids"
    return 1
}

# end_one PID START: TERM, ten seconds to finish what it holds, then KILL.
end_one()
{
    is_noted "$1" "$2" || return 0
    kill -TERM "$1" 2>/dev/null || return 0
    tries=0
    while is_noted "$1" "$2"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            say "process $1 did not end by itself within 10 s; killed"
            kill -KILL "$1" 2>/dev/null || true
            return 0
        fi
        sleep 0.05
    done
}

# The services first, all told at once, so that they can still release; Redis last.
end_all()
{
    [ -f "$run_pids" ] || return 0
    while read -r name pid start; do
        case $name in
        orders-*)
            if is_noted "$pid" "$start"; then
                kill -TERM "$pid" 2>/dev/null || true
            fi
            ;;
        esac
    done <"$run_pids"
    for kind in orders- redis; do
        while read -r name pid start; do
            case $name in
            "$kind"*) end_one "$pid" "$start" ;;
            esac
        done <"$run_pids"
    done
    rm -f "$run_pids"
    [ ! -f "$run_dir/socket" ] || rm -rf "$(cat "$run_dir/socket")"
    rm -f "$run_dir/socket"
}

# Does anything listen on this TCP port?
port_in_use()
{
    hex=$(printf '%04X' "$1")
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v port=":$hex\$" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }'
}

# until_true PID COMMAND...: polls; fails after 10 s, or if that process ends before.
until_true()
{
    waited_pid=$1
    shift
    left=200
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] && kill -0 "$waited_pid" 2>/dev/null || return 1
        sleep 0.05
    done
}

run_failed()
{
    what=$1
    log=$2
    say "$what; the last lines of $log:"
    tail -n 20 "$log" >&2 || true
    end_all
    exit 1
}

redis_answers()
{
    [ "$("$run_cli" -s "$run_socket" ping 2>/dev/null)" = PONG ]
}

service_answers()
{
    curl -fsS -m 2 -o /dev/null "http://127.0.0.1:$1/readyz" 2>/dev/null
}

# A socket path may have 107 bytes, and in a URL no blank or other special character; a checkout in
# a deep or strangely named folder has its socket under /tmp.
choose_socket()
{
    run_socket=$run_dir/redis.sock
    plain=$(printf %s "$run_socket" | LC_ALL=C tr -cd 'A-Za-z0-9/._-')
    if [ "${#run_socket}" -gt 100 ] || [ "$plain" != "$run_socket" ]; then
        folder=$(mktemp -d "${TMPDIR:-/tmp}/pawl-run.XXXXXX")
        echo "$folder" >"$run_dir/socket"
        run_socket=$folder/redis.sock
    fi
}

start_redis()
{
    choose_socket
    mkdir -p "$run_dir/redis"
    server=${PAWL_REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)} ||
        fail "there is no redis-server and no valkey-server" "./dev install"
    run_cli=$(command -v redis-cli || command -v valkey-cli) ||
        fail "there is no redis-cli and no valkey-cli" "./dev install"
    setsid "$server" --port 0 --unixsocket "$run_socket" --unixsocketperm 700 \
        --dir "$run_dir/redis" --appendonly yes --save '' --maxmemory-policy noeviction \
        --daemonize no </dev/null >"$run_dir/redis.log" 2>&1 9>&- &
    pid=$!
    note_pid redis "$pid"
    until_true "$pid" redis_answers || run_failed "Redis does not answer" "$run_dir/redis.log"
}

start_service()
{
    number=$1
    log=$run_dir/orders-$number.log
    setsid "$build/bin/pawl-orders" --port "$port" --own-port $((port + number)) \
        --url "redis+unix://$run_socket" --db "$run_dir/orders.db" \
        --instance "orders-$number" </dev/null >"$log" 2>&1 9>&- &
    pid=$!
    note_pid "orders-$number" "$pid"
}

await_service()
{
    until_true "$2" service_answers $((port + $1)) ||
        run_failed "order service $1 does not get ready" "$run_dir/orders-$1.log"
}

print_next()
{
    api=http://127.0.0.1:$port/api
    json="-H 'Content-Type: application/json'"
    cat <<TEXT
Three order services share port $port; each alone: $((port + 1)), $((port + 2)), $((port + 3)).
Logs: $run_dir/orders-1.log, orders-2.log, orders-3.log, redis.log
Try next:
  curl -s $json -d '{"orderId":"1001","userId":"u001"}' $api/order/submit
  curl -s $api/order/1001
  curl -s $api/stock/default
TEXT
}

# Stay until the user wants the end or nothing is left. One that ends by itself is reported, and
# the others go on: killing one to see what happens is what this is for.
watch_all()
{
    told=' '
    while [ -f "$run_pids" ] && run_is_alive; do
        while read -r name pid start; do
            is_noted "$pid" "$start" && continue
            case $told in
            *" $name "*) continue ;;
            esac
            told="$told$name "
            [ ! -f "$run_dir/stopping" ] || return 0 # ./dev stop, elsewhere
            say "$name ended; the others go on. Its log: $run_dir/$name.log"
        done <"$run_pids"
        sleep 0.5
    done
}

parse_run_options()
{
    port=5000
    detach=''
    while [ $# -gt 0 ]; do
        case $1 in
        --port)
            [ $# -gt 1 ] || fail "run: --port needs a number"
            port=$2
            shift
            ;;
        --port=*) port=${1#--port=} ;;
        --detach) detach=1 ;;
        *) fail "run: '$1' is no option" "./dev run [--port N] [--detach]" ;;
        esac
        shift
    done
    case $port in
    '' | *[!0-9]* | ??????*) fail "run: '$port' is no port number" ;;
    esac
    if [ "$port" -lt 1 ] || [ "$port" -gt 65532 ]; then
        fail "run: the port must be from 1 to 65532, since three more above it are used"
    fi
}

do_run()
{
    parse_run_options "$@"
    install_groups build run
    do_build
    [ -x "$build/bin/pawl-orders" ] || fail "build/bin/pawl-orders was not built"
    mkdir -p "$run_dir"
    exec 9>"$run_dir/lock"
    flock -n 9 || fail "another ./dev run is just starting here"
    if run_is_alive; then
        fail "one is running already: $run_dir" "End it with Ctrl-C there, or with ./dev stop."
    fi
    for number in 0 1 2 3; do
        if port_in_use $((port + number)); then
            fail "port $((port + number)) is in use by another program" \
                "Perhaps a ./dev run of another checkout. Take others: ./dev run --port N"
        fi
    done
    rm -f "$run_dir/stopping"
    : >"$run_pids"
    trap 'trap "" INT TERM HUP; end_all; exit 130' INT TERM HUP
    start_redis
    start_service 1
    pid_1=$pid
    start_service 2
    pid_2=$pid
    start_service 3
    await_service 1 "$pid_1"
    await_service 2 "$pid_2"
    await_service 3 "$pid"
    exec 9>&-
    print_next
    [ -z "$detach" ] || return 0
    echo "Ctrl-C ends them."
    watch_all
    [ -f "$run_dir/stopping" ] || end_all
    say "all have ended"
}

do_stop()
{
    if ! run_is_alive; then
        say "nothing is running"
        rm -f "$run_pids"
        return 0
    fi
    : >"$run_dir/stopping"
    end_all
    rm -f "$run_dir/stopping"
}
