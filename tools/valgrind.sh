#!/bin/sh
# Runs one test program under valgrind; any error or leak ends it with 99. Scripts run as they are.
case $(head -c 4 "$1" | tr -d '\177') in
ELF)
    exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes \
        --suppressions="$(dirname "$0")/valgrind.supp" "$@"
    ;;
*)
    exec "$@"
    ;;
esac
