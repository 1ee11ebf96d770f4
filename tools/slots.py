#!/usr/bin/env python3
"""Write the table of hash tags, one per Redis Cluster slot, as C: slots.py OUTPUT.c

Tags are tried by length, then in the order 0-9a-z; each slot gets the first one that falls into it,
so the table never changes. Declared in src/core/slot_tags.h."""
import itertools
import sys

N_SLOTS = 16384
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def crc16_table():
    """CRC16-XMODEM (polynomial 0x1021, start 0): what Redis Cluster uses."""
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        table.append(crc & 0xFFFF)
    return table


def slot_of(data, table=crc16_table()):
    crc = 0
    for byte in data:
        crc = ((crc << 8) & 0xFFFF) ^ table[(crc >> 8) ^ byte]
    return crc % N_SLOTS


def make_tags():
    tags = [None] * N_SLOTS
    left = N_SLOTS
    for length in itertools.count(1):
        for digits in itertools.product(DIGITS, repeat=length):
            tag = "".join(digits)
            slot = slot_of(tag.encode())
            if tags[slot] is None:
                tags[slot] = tag
                left -= 1
                if left == 0:
                    return tags


def main():
    tags = make_tags()
    assert max(map(len, tags)) <= 4
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("/* Made by tools/slots.py; not to be edited. */\n")
        out.write('#include "core/slot_tags.h"\n\n')
        out.write("const char pawli_slot_tags[PAWLI_N_SLOTS][5] = {\n")
        for start in range(0, N_SLOTS, 8):
            row = ", ".join(f'"{tag}"' for tag in tags[start:start + 8])
            out.write(f"    {row},\n")
        out.write("};\n")


if __name__ == "__main__":
    main()
