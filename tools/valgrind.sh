#!/bin/sh
# Runs one test under valgrind; any error or leak ends it with 99. Only what the build made is
# looked at: interpreters, and what they run, go as they are.
case $1 in
"${PAWL_BUILD:?}"/*)
    exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes \
        --suppressions="$(dirname "$0")/valgrind.supp" "$@"
    ;;
*)
    exec "$@"
    ;;
esac
