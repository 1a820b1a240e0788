# SPDX-License-Identifier: Apache-2.0
"""Ranges of names: ``oss[001-036]`` is 36 names. Several brackets multiply; the last one varies fastest.

``ssu[1-2]-d[00-83]`` is ssu1-d00, ssu1-d01 … ssu2-d83. A bracket may list, ``[1,3,5-7]``, and step, ``[0-10:2]``.
Numbers keep the width of the first one written: ``[08-11]`` is 08, 09, 10, 11.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from sonde.model.errors import UserError

MAX_EXPANDED_NAMES = 4_000_000
_BRACKETED_RANGE_PATTERN = re.compile(r"\[([^\[\]]*)\]")
_NUMBER_RANGE_PATTERN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18})(?::([0-9]{1,9}))?)?", re.ASCII)


class RangeError(UserError):
    """A range that is malformed or too large."""


def expand_name_range(range_text: str) -> tuple[str, ...]:
    """Returns the names of a range in order. Text without brackets is one name. Raises RangeError."""
    parts = _BRACKETED_RANGE_PATTERN.split(range_text)
    if any(character in fixed for fixed in parts[::2] for character in "[]"):
        raise RangeError(f'"{range_text}" has a bracket without its partner; a range is written like oss[001-036].')
    if len(parts) == 1:
        return (range_text,)
    brackets = [_expand_bracket(bracket, range_text) for bracket in parts[1::2]]
    total = 1
    for alternatives in brackets:
        total *= len(alternatives)
    if total > MAX_EXPANDED_NAMES:
        raise RangeError(
            f'"{range_text}" stands for {total:,} names; more than {MAX_EXPANDED_NAMES:,} cannot be meant.'
        )
    if len(brackets) == 1:
        return tuple(f"{parts[0]}{number}{parts[2]}" for number in brackets[0])
    fixed = parts[::2]
    return tuple(
        fixed[0] + "".join(number + suffix for number, suffix in zip(combination, fixed[1:], strict=True))
        for combination in itertools.product(*brackets)
    )


def cut_name_range(range_text: str, begin: int, end: int) -> str:
    """The names `begin` to `end` of a range as a range. Empty where several brackets or none cannot list them alone."""
    parts = _BRACKETED_RANGE_PATTERN.split(range_text)
    if len(parts) != 3:
        return ""
    numbers = _expand_bracket(parts[1], range_text)[begin:end]
    first, last = numbers[0], numbers[-1]
    is_run = len(numbers) > 1 and [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)] == numbers
    listed_text = f"{first}-{last}" if is_run else ",".join(numbers)
    return f"{parts[0]}{listed_text if len(numbers) == 1 else f'[{listed_text}]'}{parts[2]}"


def _expand_bracket(bracket: str, range_text: str) -> list[str]:
    numbers: list[str] = []
    for piece in bracket.split(","):
        match = _NUMBER_RANGE_PATTERN.fullmatch(piece.strip())
        if match is None:
            raise RangeError(
                f'"{range_text}": "{piece.strip()}" is not a number or a range of them; '
                "write it like [001-036] or [1,3,5]."
            )
        first, last = match[1], match[2] or match[1]
        step = int(match[3] or 1)
        if step == 0:
            raise RangeError(f'"{range_text}" has a step of 0; a step is 1 or more.')
        if int(last) < int(first):
            raise RangeError(f'"{range_text}" runs from {first} down to {last}; write the smaller number first.')
        if (int(last) - int(first)) // step >= MAX_EXPANDED_NAMES:
            raise RangeError(
                f'"{range_text}" stands for more than {MAX_EXPANDED_NAMES:,} names, which cannot be meant.'
            )
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1, step)]
    return numbers


def fold_names_into_ranges(names_in_order: Iterable[str]) -> str:
    """Returns `names_in_order` as comma-separated ranges, in order: oss001 oss002 oss003 is ``oss[001-003]``.

    Only the last number of each name is folded. `expand_name_range` of each part (split at ``", "``) restores the
    names.
    """
    return ", ".join(_iterate_folded_runs(names_in_order))


def _iterate_folded_runs(names_in_order: Iterable[str]) -> Iterator[str]:
    run: list[tuple[str, str, str]] = []
    for name in names_in_order:
        match = re.fullmatch(r"(.*?)([0-9]{1,15})([^0-9]*)", name, re.ASCII | re.DOTALL)
        parts = (match[1], match[2], match[3]) if match and "[" not in name and "]" not in name else (name, "", "")
        if run and not _is_successor(run[-1], parts, len(run[0][1])):
            yield _format_run(run)
            run = []
        run.append(parts)
    if run:
        yield _format_run(run)


def _is_successor(
    previous_split_name: tuple[str, str, str], split_name: tuple[str, str, str], digit_count: int
) -> bool:
    if (
        not previous_split_name[1]
        or not split_name[1]
        or previous_split_name[0] != split_name[0]
        or previous_split_name[2] != split_name[2]
    ):
        return False
    return (
        int(split_name[1]) == int(previous_split_name[1]) + 1
        and split_name[1] == f"{int(split_name[1]):0{digit_count}d}"
    )


def _format_run(split_names: list[tuple[str, str, str]]) -> str:
    prefix, first, suffix = split_names[0]
    return f"{prefix}{first}{suffix}" if len(split_names) == 1 else f"{prefix}[{first}-{split_names[-1][1]}]{suffix}"
