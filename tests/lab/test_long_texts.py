# SPDX-License-Identifier: Apache-2.0
"""A text of 64 KiB that repeats one piece holds up no reader: its time grows with the size, not with its square."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from reader_targets import TARGETS, ReaderTarget

SIZE = 64 << 10
PIECES = (b"\n", b" ", b"a", b"0", b"[", b'"', b"a = 1\n", b" \n\t", b"a b ")
CPU_SECONDS = 8  # of a reader that hangs; all texts together take less than one


@contextmanager
def interrupted_after(seconds: int) -> Iterator[None]:
    """Ends the block with TimeoutError when it uses more time of the processor."""

    def interrupt(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_repeated_piece_does_not_hold_up_a_reader(target: ReaderTarget, tmp_path: Path) -> None:
    path = tmp_path / target.file
    beginnings = {b"", *(seed[:4096] for seed in sorted(target.seeds(), key=len)[:2])}
    with interrupted_after(CPU_SECONDS):
        for beginning in beginnings:
            for piece in PIECES:
                path.write_bytes(beginning + piece * (SIZE // len(piece)))
                with suppress(*target.errors):
                    target.read(path)
