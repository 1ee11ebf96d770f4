#!/bin/sh
# lint.sh SOURCE BUILD: every check of ./dev lint; all of them run, then the exit code tells.
set -u
cd "$1" || exit 1
build=$2
failed=''

check()
{
    name=$1
    shift
    if "$@"; then
        echo "lint: $name ok"
    else
        echo "lint: $name FAILED"
        failed="$failed $name"
    fi
}

files=$(git ls-files 2>/dev/null || find . -type f -not -path './build*' | sed 's|^\./||')
files=$(for file in $files; do [ -f "$file" ] && echo "$file"; done)
c_files=$(echo "$files" | grep -E '\.[ch]$')
sh_files=$(for file in $files; do
    case $file in
    *.sh | dev | .ci/run) echo "$file" ;;
    esac
done)

# shellcheck disable=SC2086 # a list of words
check shellcheck shellcheck -x $sh_files

[ -z "$failed" ] || {
    echo "lint: failed:$failed" >&2
    exit 1
}
