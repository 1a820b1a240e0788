# SPDX-License-Identifier: Apache-2.0
"""Settings for the buffer: from a trace, and from the words of Cray's and SGI's FFIO."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from sonde.model.errors import UserError
from sonde.model.trace import Trace, TracedFile, TransferCounters

# Pages are counted in blocks of 512 bytes, as where "cachea:4096:8:8" is 8 pages of 2 MB; the other defaults are those
# of the published sources, whose pages of 8 blocks of 4096 bytes are 64 blocks here.
_FFIO_BLOCK_BYTES = 512
_FFIO_CACHEA_DEFAULTS = {"page_size": 64, "num_pages": 4, "max_lead": 0, "shared_cache": 0}
_FFIO_CACHE_DEFAULTS = {"page_size": 64, "num_pages": 4, "bypass_size": 0}

# The rules by which the library itself chooses with option auto (preload/model/choice.cpp), there from the first 200
# calls on a file. Below this a file costs too little to be worth a setting of its own.
_MIN_BUFFERED_CALLS = 200
_SMALL_CALL_BYTES = 1 << 20
_MIN_PAGE_BYTES, _MAX_PAGE_BYTES = 1 << 20, 1 << 24
_MAX_READ_PAGE_BYTES = 1 << 20
# Storage that is faster answers from memory; there calls of this size and more gain nothing.
MEMORY_BYTES_PER_S, MIN_BYPASS_BYTES = 1.5e9, 8 << 10
# A file that is opened often needs so many calls after each opening; fewer where calls are slow.
_MIN_CALLS_PER_OPEN, _MIN_SLOW_CALLS_PER_OPEN, SLOW_CALL_S = 200, 24, 10e-6


@dataclass(frozen=True)
class FileBuffer:
    """The buffer of one traced file. `prefetch` is the number of pages read ahead."""

    file: TracedFile
    page_bytes: int
    pages: int
    prefetch: int

    @property
    def transferred_page_bytes(self) -> int:
        """Files that are only read get the same memory in pages of 1 MiB at most."""
        return self.page_bytes if self.file.write.calls else min(self.page_bytes, _MAX_READ_PAGE_BYTES)

    @property
    def entry(self) -> str:
        """The entry of IOBUF_PARAMS."""
        pattern = escape_path_as_pattern(self.file.path)
        return f"{pattern}:size={self.page_bytes}:count={self.pages}:prefetch={self.prefetch}"


def choose_iobuf_params(trace: Trace) -> str:
    """IOBUF_PARAMS with one entry for each file that a buffer would have helped, and nothing for the others.

    Raises UserError when there is none: buffering everything without a reason costs memory and gains nothing.
    """
    buffers = choose_file_buffers(trace)
    if not buffers:
        raise UserError(
            "Nothing in this trace would gain from buffering: no file has many small accesses that follow each other."
        )
    return ",".join(buffer.entry for buffer in buffers)


def choose_file_buffers(trace: Trace) -> list[FileBuffer]:
    """A buffer for each file with many small accesses that follow each other, the most expensive file first."""
    return [
        _choose_file_buffer(file)
        for file in sorted(trace.files.values(), key=lambda file_use: -file_use.call_seconds)
        if file.read.calls + file.write.calls >= _MIN_BUFFERED_CALLS
        and _has_enough_calls_per_open(file)
        and _compute_mean_transfer_bytes(_get_busier_direction(file)) < _SMALL_CALL_BYTES
        and _has_sequential_or_short_strides(file)
        and not _has_large_calls_from_memory(file)
    ]


def _has_enough_calls_per_open(file: TracedFile) -> bool:
    calls = file.read.calls + file.write.calls
    is_slow = file.read.s + file.write.s > calls * SLOW_CALL_S
    return calls >= file.calls["open"] * (_MIN_SLOW_CALLS_PER_OPEN if is_slow else _MIN_CALLS_PER_OPEN)


def _has_large_calls_from_memory(file: TracedFile) -> bool:
    """Whether storage answered from memory, where a second copy costs about what a call of 8 KiB costs: with option
    auto such calls bypass the buffer. Bytes that the call before had already do not count for the rate."""
    moves = _get_busier_direction(file)
    return moves.bytes >= moves.calls * MIN_BYPASS_BYTES and count_new_bytes(file, moves) > moves.s * MEMORY_BYTES_PER_S


def count_new_bytes(file: TracedFile, moves: TransferCounters) -> int:
    """Bytes of one direction without those that overlap with the call before."""
    return min(moves.bytes, moves.calls * (find_constant_stride(file, moves) or moves.bytes))


def find_constant_stride(file: TracedFile, moves: TransferCounters) -> int:
    """The distance that most calls keep from the one before, forward or backward; 0 where there is none."""
    return next((abs(step) for step, count in file.strides.items() if count * 2 > moves.calls), 0)


def _get_busier_direction(file: TracedFile) -> TransferCounters:
    return file.write if file.write.calls > file.read.calls else file.read


def _choose_file_buffer(file: TracedFile) -> FileBuffer:
    moves = _get_busier_direction(file)
    calls = file.read.calls + file.write.calls
    reads_on = file.read.consecutive * 2 > file.read.calls or _count_calls_with_short_constant_stride(file) * 2 > calls
    reads_ahead = 2 if file.read.calls and reads_on else 0
    # Streams that take turns (several variables of one file) each need a page of their own.
    pages = 4 if file.switches * 8 < calls and moves.consecutive * 4 > moves.calls * 3 else 16
    return FileBuffer(file, _choose_page_bytes(moves, file), pages, reads_ahead)


def _compute_mean_transfer_bytes(transfers: TransferCounters) -> float:
    return transfers.bytes / transfers.calls if transfers.calls else 0.0


def _has_sequential_or_short_strides(file: TracedFile) -> bool:
    """More than half of the calls follow each other or move by a short, constant distance (backward too)."""
    near = file.read.consecutive + file.write.consecutive
    return max(near, _count_calls_with_short_constant_stride(file)) * 2 > file.read.calls + file.write.calls


def _count_calls_with_short_constant_stride(file: TracedFile) -> int:
    """Counts calls whose distance from the previous call is short and is shared by a quarter of all calls."""
    calls = file.read.calls + file.write.calls
    return sum(count for stride, count in file.strides.items() if 0 < abs(stride) <= 65536 and count * 4 > calls)


def _choose_page_bytes(transfers: TransferCounters, file: TracedFile) -> int:
    """A power of two with room for what at least 64 calls do not share with the call before, and no less than what
    the file system calls best."""
    wanted = max(64 * count_new_bytes(file, transfers) / max(1, transfers.calls), file.block_bytes, 1)
    page = _MIN_PAGE_BYTES
    while page < wanted and page < _MAX_PAGE_BYTES:
        page *= 2
    return page


def escape_path_as_pattern(file_path: str) -> str:
    """Returns `file_path` as a pattern that matches only this file; characters that the grammar cannot express become
    wildcards."""
    return re.sub(r"[,:\n]", "?", re.sub(r"([*?\[\\])", r"\\\1", file_path))


def convert_ffio_specification(ffio_text: str) -> str:
    """IOBUF_PARAMS for an ``assign`` line or a bare FFIO specification.

    ``cachea:4096:8:8`` is 8 pages of 2 MiB with up to 8 read ahead; ``-B on`` is direct I/O; the object ``f:name``,
    ``p:pattern`` or ``u:unit`` becomes the pattern, all files without one.
    """
    try:
        arguments = shlex.split(ffio_text)
    except ValueError as reason:
        raise UserError(f'--ffio "{ffio_text}" cannot be split into words: {reason}.') from None
    arguments = arguments[1:] if arguments[:1] == ["assign"] else arguments
    specification, pattern, direct = "", "*", False
    while arguments:
        word = arguments.pop(0)
        if word in ("-F", "-B") and not arguments:
            raise UserError(f'--ffio "{ffio_text}": {word} needs a value.')
        if word == "-F":
            specification = arguments.pop(0)
        elif word == "-B":
            direct = arguments.pop(0) == "on"
        elif word[:2] in ("f:", "p:"):
            pattern = word[2:].replace("%", "*") if word[0] == "p" else word[2:]
        elif word[:2] == "u:":
            pattern = f"fort.{word[2:]}"
        elif not specification and not word.startswith("-"):
            specification = word
        else:
            raise UserError(
                f'--ffio "{ffio_text}": "{word}" is not understood; write cachea:PAGE:PAGES:LEAD [-B on] [p:PATTERN].'
            )
    return f"{pattern}{_convert_cache_layer_to_iobuf_options(specification, ffio_text)}{':direct' if direct else ''}"


def _convert_cache_layer_to_iobuf_options(specification: str, ffio_text: str) -> str:
    for layer in specification.split(","):
        head, _, options = layer.partition(":")
        name, *flags = head.split(".")
        if name not in ("cachea", "cache"):
            continue  # event, system, ...: what they do is done anyway
        values = dict(_FFIO_CACHEA_DEFAULTS if name == "cachea" else _FFIO_CACHE_DEFAULTS)
        for flag in flags:
            key, _, value = flag.partition("=")
            values[key] = _parse_whole_number(value, ffio_text) if value else values.get(key, 0)
        for key, value in zip(list(values), options.split(":") if options else [], strict=False):
            values[key] = _parse_whole_number(value, ffio_text) if value else values[key]
        lead = values.get("max_lead", 0)
        return f":size={values['page_size'] * _FFIO_BLOCK_BYTES}:count={values['num_pages']}:prefetch={lead}"
    raise UserError(f'--ffio "{ffio_text}" names no cache; write cachea:PAGE:PAGES:LEAD, PAGE in blocks of 512 bytes.')


def _parse_whole_number(number_text: str, ffio_text: str) -> int:
    if not number_text.isdecimal():
        raise UserError(f'--ffio "{ffio_text}": "{number_text}" is not a whole number.')
    return int(number_text)
