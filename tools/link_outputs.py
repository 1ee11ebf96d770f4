#!/usr/bin/env python3
"""Link programs and libraries into build/bin and build/lib.

link_outputs.py STAMP BUILD_ROOT --lib FILE... --bin FILE...

Links, not copies: a program finds its library relative to where it really lies."""
import glob
import os
import sys


def link(folder, target):
    name = os.path.join(folder, os.path.basename(target))
    text = os.path.relpath(target, folder)
    if os.path.islink(name) and os.readlink(name) == text:
        return
    temporary = name + ".new"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(text, temporary)
    os.replace(temporary, name)


def main():
    stamp, root = sys.argv[1:3]
    folder = None
    for arg in sys.argv[3:]:
        if arg.startswith("--"):
            folder = os.path.join(root, arg[2:])
            os.makedirs(folder, exist_ok=True)
            continue
        path = os.path.abspath(arg)
        names = [path]
        if ".so" in os.path.basename(path):
            stem = path[:path.index(".so", len(os.path.dirname(path))) + 3]
            names = [name for name in glob.glob(glob.escape(stem) + "*")
                     if not name.endswith((".p", ".symbols"))]
        for name in names:
            link(folder, name)
    with open(stamp, "w", encoding="ascii"):
        pass


if __name__ == "__main__":
    main()
