"""Tests of tools/slots.py: the table against a second way to compute it."""
import itertools
import os
import re

from harness import run_tests, run_tool, temporary_folder

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def slot_of(text):
    """CRC16-XMODEM bit by bit, modulo 16384."""
    crc = 0
    for byte in text.encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc % 16384


def generate():
    with temporary_folder() as folder:
        path = os.path.join(folder, "tags.c")
        run_tool("slots.py", path)
        with open(path, encoding="ascii") as source:
            return re.findall(r'"(\w+)"', source.read())


TAGS = generate()


def test_known_slots():
    # What CLUSTER KEYSLOT answers.
    for text, slot in (("foo", 12182), ("bar", 5061), ("hello", 866), ("123456789", 12739)):
        assert slot_of(text) == slot, text


def test_one_tag_per_slot():
    assert len(TAGS) == 16384
    assert len(set(TAGS)) == 16384
    for slot, tag in enumerate(TAGS):
        assert slot_of(tag) == slot, (slot, tag)


def test_tags_are_short_and_plain():
    for tag in TAGS:
        assert 1 <= len(tag) <= 4 and set(tag) <= set(DIGITS), tag


def test_each_tag_is_the_first_of_its_slot():
    first = {}
    for length in (1, 2, 3):
        for digits in itertools.product(DIGITS, repeat=length):
            tag = "".join(digits)
            first.setdefault(slot_of(tag), tag)
    for slot, tag in enumerate(TAGS):
        if len(tag) <= 3:
            assert first[slot] == tag, (slot, tag)
        else:
            assert slot not in first, (slot, tag)


if __name__ == "__main__":
    run_tests(globals())
