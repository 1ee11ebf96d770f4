#!/bin/sh
# lint.sh SOURCE BUILD: every check of ./dev lint; all of them run, then the exit code tells.
# shellcheck disable=SC2086,SC2046 # lists of files are words
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
# bench/peers measures others' libraries and is kept as it came.
files=$(for file in $files; do
    case $file in
    bench/peers/*) ;;
    *) [ ! -f "$file" ] || echo "$file" ;;
    esac
done)
c_files=$(echo "$files" | grep -E '\.[ch]$')
sh_files=$(for file in $files; do
    case $file in
    *.sh | dev | .ci/run) echo "$file" ;;
    esac
done)

text_files=$(for file in $files; do
    case $file in
    *.[ch] | *.py | *.sh | *.lua | *.build | *.sym | dev | .ci/run) echo "$file" ;;
    esac
done)

run_format()
{
    python3 tools/check_format.py $c_files
}

run_rules()
{
    python3 tools/check_source.py $text_files
}

run_shellcheck()
{
    shellcheck -x $sh_files
}

run_python()
{
    python3 - $(echo "$text_files" | grep '\.py$') <<'PYTHON'
import sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as source:
        compile(source.read(), path, "exec")
PYTHON
}

# Those C files that the build compiles, since only for them the flags are known; or, with "not",
# the others.
compiled_files()
{
    python3 - "$1" "$build/compile_commands.json" $c_files <<'PYTHON'
import json
import os
import sys
with open(sys.argv[2], encoding="utf-8") as database:
    compiled = {os.path.realpath(os.path.join(entry["directory"], entry["file"]))
                for entry in json.load(database)}
wanted = sys.argv[1] != "not"
print("\n".join(path for path in sys.argv[3:]
                if (os.path.realpath(path) in compiled) == wanted))
PYTHON
}

# A source file that no meson.build names is forgotten code.
run_built()
{
    forgotten=$(compiled_files not | grep -E '^(src|cli|service|examples/orders)/.*[.]c$') ||
        return 0
    echo "not built by any meson.build:" $forgotten
    return 1
}

# A file that has not changed since it passed, with all headers and settings, is not read again.
run_tidy()
{
    mkdir -p "$build/tidy"
    state=$(cat .clang-tidy tests/.clang-tidy "$build/compile_commands.json" \
        $(echo "$c_files" | grep '\.h$') | cksum | tr ' ' '-')
    # shellcheck disable=SC2016 # expanded by the inner shell
    compiled_files those | xargs -r -P "${JOBS:-2}" -n 1 sh -c '
        mark=$1/tidy/$(cksum <"$3" | tr " " "-")-$2
        [ -e "$mark" ] && exit 0
        out=$(clang-tidy -p "$1" --quiet "$3" 2>&1) && { : >"$mark"; exit 0; }
        # The findings; the analyzer'"'"'s way to them is shown by: clang-tidy -p build FILE
        printf "%s\n" "$out" | grep -A 2 "error: "
        exit 1' tidy "$build" "$state"
}

run_cppcheck()
{
    cppcheck -q -j "${JOBS:-2}" --std=c11 --language=c --error-exitcode=1 --inline-suppr \
        --enable=warning,performance,portability \
        --suppress=missingIncludeSystem --suppress=unknownMacro \
        --suppress=normalCheckLevelMaxBranches --suppress=nullPointerOutOfMemory \
        -D__linux__ -D_GNU_SOURCE -I include -I src $(echo "$c_files" | grep '\.c$')
}

run_symbols()
{
    python3 tools/check_symbols.py include/pawl.h "$build/lib/libpawl.so" "$build/lib/libpawl.a"
}

check rules run_rules
check format run_format
check shellcheck run_shellcheck
check python run_python
check built run_built
check symbols run_symbols
check cppcheck run_cppcheck
check clang-tidy run_tidy

[ -z "$failed" ] || {
    echo "lint: failed:$failed" >&2
    exit 1
}
echo "lint: all ok"
