# SPDX-License-Identifier: Apache-2.0
"""Any bytes make a reader return or raise a documented error. The mutations are the same in each run; `make fuzz` runs
the same readers guided by coverage."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from reader_targets import TARGETS, ReaderTarget

from sonde.model.errors import UserError

LARGEST = 16 << 10  # of a seed that is mutated, so that many fit into a second
TOKENS = (
    *(b"null", b"true", b"[]", b"{}", b'""', b"-1", b"0", b"1e999", b"NaN", b"9" * 400, b"[" * 200, b'{"a":' * 200),
    *(b"\x00", b"\xff\xfe", b"\n", b",", b":", b"=", b"\xd9\xa3", b"1970-01-01", b"99999-01-01"),
)
PIECE = re.compile(rb'"[^"\n]*"|[\w.+-]+')


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One to three changes: values replaced, pieces cut, doubled or exchanged, bits flipped."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        position = rng.randrange(len(changed) + 1)
        end = min(len(changed), position + rng.choice((1, 4, 40, 400)))
        match rng.randrange(6):
            case 0 | 1:
                pieces = list(PIECE.finditer(changed))
                if pieces:
                    piece = rng.choice(pieces)
                    changed[piece.start() : piece.end()] = rng.choice(TOKENS)
            case 2:
                del changed[position:end]
            case 3:
                changed[position:position] = changed[position:end]
            case 4:
                changed[position:position] = rng.choice(TOKENS)
            case _:
                if position < len(changed):
                    changed[position] ^= 1 << rng.randrange(8)
    return bytes(changed)


def inputs(target: ReaderTarget) -> Iterator[bytes]:
    """The seeds, hardly any text at all, and mutations of the seeds."""
    rng = random.Random(target.name)
    seeds = [seed for seed in target.seeds() if len(seed) <= LARGEST] or [target.seeds()[0][:LARGEST]]
    yield from (b"", b"\n", b"[]", b"{}", b"null", b"[1]", b'"a"', b"\x00" * 100, *target.seeds())
    for _ in range(target.mutations):
        yield mutate(rng.choice(seeds), rng)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_any_bytes_are_read_or_refused(target: ReaderTarget, tmp_path: Path) -> None:
    path = tmp_path / target.file
    sentences: list[str] = []
    for content in inputs(target):
        path.write_bytes(content)
        try:
            target.read(path)
        except target.errors as reason:
            sentences.append(str(reason))
        except Exception as reason:
            raise AssertionError(f"{target.name} raises {reason!r} on {content[:2000]!r}") from reason
    if target.errors == (UserError,):
        assert [sentence for sentence in sentences if not sentence.isprintable()] == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_each_reader_accepts_a_seed(target: ReaderTarget, tmp_path: Path) -> None:
    path = tmp_path / target.file
    accepted = 0
    for content in target.seeds():
        path.write_bytes(content)
        try:
            target.read(path)
            accepted += 1
        except target.errors:
            continue
    assert accepted, "no seed is valid, so mutations test little"


def zip_without_name() -> bytes:
    """A zip with one member whose name is empty."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", b"content")
    content = packed.getvalue()
    position = content.index(b"PK\x01\x02")
    # The name is one byte behind 46 of the entry; its length is at 28.
    entry = content[position : position + 28] + b"\x00\x00" + content[position + 30 : position + 46]
    end = bytearray(content[position + 47 :])
    end[12:16] = (46).to_bytes(4, "little")
    return content[:position] + entry + bytes(end)


# Inputs on which a reader once raised another error.
EARLIER_FAILURES = {
    "trace": b'{"type":"process","schema":"sonde-trace/1","started_unix_s":1,"seconds":1}\n'
    b'{"type":"file","path":"/a","read":{"slowest_s":null}}\n',
    "tool-output": b"Filesystem magic number:  0xEF53\nBlock count:              4\nBlock size:               4k\n",
    "pack": zip_without_name(),
    "routes": b"nexthop dev eth0 via 10.0.0.1\n",
}


@pytest.mark.parametrize("name", EARLIER_FAILURES)
def test_an_earlier_defect_is_read_or_refused(name: str, tmp_path: Path) -> None:
    target = next(target for target in TARGETS if target.name.replace(" ", "-") == name)
    path = tmp_path / target.file
    path.write_bytes(EARLIER_FAILURES[name])
    with suppress(*target.errors):
        target.read(path)
