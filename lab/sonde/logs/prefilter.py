# SPDX-License-Identifier: Apache-2.0
"""Finds the lines that a rule may match in whole blocks of a file, before any line is parsed.

Each text that a rule requires is searched in the block by `bytes.find`, which is several times as fast as one regular
expression of all texts: Python tries the alternatives of an expression one after the other at every byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from sonde.logs.rule_files import CompiledRule

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 10  # a longer line is cut
TAIL_BYTES = 256
# journald writes messages that are not UTF-8 as lists of bytes, in which no text can be searched.
_JOURNAL_BYTES = ('"MESSAGE":[', '"MESSAGE" : [')


@dataclass(frozen=True)
class LinePrefilter:
    """Texts and expressions; each line that a rule matches contains at least one of them."""

    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes] | None

    def find_lines(self, text_block: bytes) -> list[tuple[int, int]]:
        """Begin and end of the lines of `text_block` that a rule may match, in their order."""
        lines: dict[int, int] = {}
        for literal in self.literals:
            position = text_block.find(literal)
            while position >= 0:
                position = text_block.find(literal, _add_line_around(lines, text_block, position))
        position = 0
        while self.expression and (match := self.expression.search(text_block, position)):
            position = _add_line_around(lines, text_block, match.start())
        return sorted(lines.items())


def _add_line_around(lines_by_begin: dict[int, int], text_block: bytes, position: int) -> int:
    """Adds the line around `position`; returns the begin of the next."""
    end = text_block.find(b"\n", position)
    end = len(text_block) if end < 0 else end
    lines_by_begin[text_block.rfind(b"\n", 0, position) + 1] = end
    return end + 1


def build_prefilter(rules: Iterable[CompiledRule]) -> LinePrefilter:
    """The prefilter of all rules together."""
    literals: set[str] = set(_JOURNAL_BYTES)
    expressions: list[str] = []
    for compiled in rules:
        if compiled.literals:
            literals.update(compiled.literals)
            continue
        ending = re.sub(r"\{\w+\}", ".*", compiled.rule.end_pattern)
        expressions += [
            _remove_group_names_and_anchors(pattern) for pattern in (compiled.rule.pattern, ending) if pattern
        ]
    shortest = [text for text in literals if not any(other != text and other in text for other in literals)]
    expression = "|".join(f"(?:{text})" for text in expressions).encode()
    return LinePrefilter(
        tuple(text.encode() for text in sorted(shortest)), re.compile(expression) if expressions else None
    )


def _remove_group_names_and_anchors(rule_pattern: str) -> str:
    """Group names may occur in several rules, so they are removed; `^` is of the message, not of the line."""
    unnamed = re.sub(r"\(\?P<\w+>", "(?:", rule_pattern)
    return unnamed.removeprefix("^").removesuffix("$")


class BlockReader:
    """Reads a file in blocks and yields the lines in which the prefilter matches, with their line numbers.

    `lines` and `cut_lines` count all lines and the lines that were longer than MAX_LINE_BYTES. With `keeps_rest` a last
    line without an end is not used: it is in `rest`. `tail` are the last bytes that were used.
    """

    def __init__(self, log_file: BinaryIO, prefilter: LinePrefilter, keeps_rest: bool = False) -> None:
        self._file = log_file
        self._prefilter = prefilter
        self._keeps_rest = keeps_rest
        self.lines = 0
        self.cut_lines = 0
        self.bytes = 0
        self.rest = b""
        self.tail = b""

    def read_matching_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yields (line number, line). Raises OSError, EOFError or the error of a decompressor."""
        remainder = b""
        while block := self._file.read(BLOCK_BYTES):
            self.bytes += len(block)
            block = remainder + block
            end = block.rfind(b"\n") + 1
            remainder = block[end:]
            if end:
                yield from self._iterate_lines_of_block(block[:end])
                self.tail = (self.tail + block[max(0, end - TAIL_BYTES) : end])[-TAIL_BYTES:]
            if len(remainder) > BLOCK_BYTES:  # no line end in a whole block: garbage
                self.cut_lines += 1
                yield from self._iterate_lines_of_block(remainder[:MAX_LINE_BYTES])
                remainder = self._skip_line(remainder)
        complete = remainder.rfind(b"\n") + 1 if self._keeps_rest else len(remainder)
        if complete:
            yield from self._iterate_lines_of_block(remainder[:complete])
            self.lines += not remainder[:complete].endswith(b"\n")  # after an overlong line whole lines may be left
            self.tail = (self.tail + remainder[:complete])[-TAIL_BYTES:]
        self.rest = remainder[complete:]

    def _skip_line(self, first_block: bytes) -> bytes:
        """Reads to the end of an overlong line, of which `first_block` was read, and returns what follows it."""
        self.tail = first_block[-TAIL_BYTES:]
        while first_block := self._file.read(BLOCK_BYTES):
            self.bytes += len(first_block)
            skipped, newline, remainder = first_block.partition(b"\n")
            self.tail = (self.tail + skipped[-TAIL_BYTES:] + newline)[-TAIL_BYTES:]
            if newline:
                self.lines += 1
                return remainder
        return b""

    def _iterate_lines_of_block(self, text_block: bytes) -> Iterator[tuple[int, bytes]]:
        counted = 0
        for start, end in self._prefilter.find_lines(text_block):
            self.lines += text_block.count(b"\n", counted, start)
            counted = start
            if end - start > MAX_LINE_BYTES:
                self.cut_lines += 1
            yield self.lines + 1, text_block[start : min(end, start + MAX_LINE_BYTES)]
        self.lines += text_block.count(b"\n", counted)
