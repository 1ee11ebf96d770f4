# dev-install.sh: the part of ./dev that installs packages; read by it, not run. The packages are
# listed in packages.list. Touches the network only if something is missing.
# shellcheck shell=sh disable=SC2154 # top, build: set by dev

packages_of()
{
    for group in "$@"; do
        sed -n "s/^$group  *//p" "$top/tools/packages.list"
    done | sort -u
}

is_installed()
{
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

is_offered()
{
    apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# choose A|B|C: the first that is offered; nothing if none is.
choose()
{
    for name in $(echo "$1" | tr '|' ' '); do
        if is_offered "$name"; then
            echo "$name"
            return 0
        fi
    done
}

any_installed()
{
    for name in $(echo "$1" | tr '|' ' '); do
        is_installed "$name" && return 0
    done
    return 1
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        fail "this needs root and there is no sudo: $*" "Run it as root, then come back."
    fi
}

apt_update()
{
    [ -n "${apt_is_fresh:-}" ] && return 0
    say "apt-get update"
    as_root apt-get update -q >&2 ||
        fail "apt-get update failed; its message is above" \
            "If it was sudo that failed: run './dev install' as root once." \
            "Else check the network, the proxy and /etc/apt/sources.list, then try again."
    apt_is_fresh=1
}

# Services that come with packages (redis-server, nginx) must not start on this machine by
# themselves: ./dev starts its own, private ones.
apt_install()
{
    policy=/usr/sbin/policy-rc.d
    guard=''
    if [ ! -e "$policy" ]; then
        guard=$policy
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
    fi
    status=0
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=120 install -q -y --no-install-recommends "$@" \
        </dev/null >&2 || status=$?
    [ -z "$guard" ] || as_root rm -f "$guard"
    return "$status"
}

# Prints what of stdin's lines "PACKAGE[|...] [optional]" is to be installed; a line that no offered
# package satisfies is printed as "?LINE".
resolve()
{
    while read -r names optional; do
        any_installed "$names" && continue
        chosen=$(choose "$names")
        if [ -n "$chosen" ]; then
            echo "$chosen"
        elif [ -z "$optional" ]; then
            echo "?$names"
        fi
    done
}

# install_groups GROUP...: see packages.list.
install_groups()
{
    if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
        say "no apt here: taking for granted that what tools/packages.list names is installed"
        return 0
    fi
    missing=$(packages_of "$@" | resolve)
    [ -n "$missing" ] || return 0
    case $missing in
    *\?*)
        apt_update
        missing=$(packages_of "$@" | resolve)
        ;;
    esac
    case $missing in
    *\?*)
        fail "apt offers none of: $(echo "$missing" | sed -n 's/^?//p' | tr '\n' ' ')" \
            "If apt could not fetch its lists (above): check network and /etc/apt/sources.list." \
            "pawl is built on Debian 12 and 13; Ubuntu 24.04 (with universe) should do." \
            "On another system install them by hand and list the names in tools/packages.list."
        ;;
    esac
    missing=$(echo "$missing" | tr '\n' ' ')
    say "installing $missing"
    # shellcheck disable=SC2086 # a list of words
    apt_install $missing && return 0
    # Most often the lists are older than the mirror.
    apt_update
    # shellcheck disable=SC2086
    apt_install $missing ||
        fail "apt-get install failed; its message is above. Wanted: $missing" \
            "Check network and disk space; if apt says that dpkg was interrupted," \
            "run 'dpkg --configure -a' as root; then run ./dev again."
}
