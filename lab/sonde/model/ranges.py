# SPDX-License-Identifier: Apache-2.0
"""Names in ranges: ``oss[001-036]`` is 36 names. Several brackets multiply, the last one runs fastest.

``ssu[1-2]-d[00-83]`` is ssu1-d00, ssu1-d01 … ssu2-d83. A bracket may list, ``[1,3,5-7]``, and step, ``[0-10:2]``.
Numbers keep the width of the first one written: ``[08-11]`` is 08, 09, 10, 11.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from sonde.model.errors import UserError

MOST_NAMES = 4_000_000
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_PIECE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18})(?::([0-9]{1,9}))?)?", re.ASCII)


class RangeError(UserError):
    """A range that names nothing, or too much."""


def expand(text: str) -> tuple[str, ...]:
    """The names that `text` stands for, in order. Text without brackets is one name. Raises RangeError."""
    parts = _BRACKET.split(text)
    if any(sign in fixed for fixed in parts[::2] for sign in "[]"):
        raise RangeError(f'"{text}" has a bracket without its partner; a range is written like oss[001-036].')
    if len(parts) == 1:
        return (text,)
    numbers = [_numbers(bracket, text) for bracket in parts[1::2]]
    total = 1
    for one in numbers:
        total *= len(one)
    if total > MOST_NAMES:
        raise RangeError(f'"{text}" stands for {total:,} names; more than {MOST_NAMES:,} cannot be meant.')
    if len(numbers) == 1:
        return tuple(f"{parts[0]}{number}{parts[2]}" for number in numbers[0])
    fixed = parts[::2]
    return tuple(
        fixed[0] + "".join(number + after for number, after in zip(chosen, fixed[1:], strict=True))
        for chosen in itertools.product(*numbers)
    )


def _numbers(bracket: str, text: str) -> list[str]:
    found: list[str] = []
    for piece in bracket.split(","):
        match = _PIECE.fullmatch(piece.strip())
        if match is None:
            raise RangeError(
                f'"{text}": "{piece.strip()}" is not a number or a range of them; write it like [001-036] or [1,3,5].'
            )
        first, last = match[1], match[2] or match[1]
        step = int(match[3] or 1)
        if step == 0:
            raise RangeError(f'"{text}" has a step of 0; a step is 1 or more.')
        if int(last) < int(first):
            raise RangeError(f'"{text}" runs from {first} down to {last}; write the smaller number first.')
        if (int(last) - int(first)) // step >= MOST_NAMES:
            raise RangeError(f'"{text}" stands for more than {MOST_NAMES:,} names, which cannot be meant.')
        found += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1, step)]
    return found


def fold(names: Iterable[str]) -> str:
    """The shortest usual way to write `names`, in their order: oss001 oss002 oss003 is ``oss[001-003]``.

    Only the last number of each name is folded; ``expand`` of each part of the answer, split at ``", "``, gives the
    names back.
    """
    return ", ".join(_folded(names))


def _folded(names: Iterable[str]) -> Iterator[str]:
    run: list[tuple[str, str, str]] = []
    for name in names:
        match = re.fullmatch(r"(.*?)([0-9]{1,15})([^0-9]*)", name, re.ASCII | re.DOTALL)
        parts = (match[1], match[2], match[3]) if match and "[" not in name and "]" not in name else (name, "", "")
        if run and not _follows(run[-1], parts, len(run[0][1])):
            yield _one(run)
            run = []
        run.append(parts)
    if run:
        yield _one(run)


def _follows(before: tuple[str, str, str], here: tuple[str, str, str], width: int) -> bool:
    if not before[1] or not here[1] or before[0] != here[0] or before[2] != here[2]:
        return False
    return int(here[1]) == int(before[1]) + 1 and here[1] == f"{int(here[1]):0{width}d}"


def _one(run: list[tuple[str, str, str]]) -> str:
    head, first, tail = run[0]
    return f"{head}{first}{tail}" if len(run) == 1 else f"{head}[{first}-{run[-1][1]}]{tail}"
