# SPDX-License-Identifier: Apache-2.0
"""Reads IPsec policies as `ip xfrm policy` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sonde.model.errors import UserError

# The first line of a policy, and of a state of `ip xfrm state`; only a policy has a direction.
_FIRST_LINE_PATTERN = re.compile(r"^src (\S+) dst (\S+)(.*)$")
_DIRECTION_PATTERN = re.compile(r"^\s+dir (in|out|fwd)\b(.*)$")


@dataclass(frozen=True)
class SecurityPolicy:
    """One IPsec policy: the ranges that it selects, its direction (in, out or fwd), whether it drops its packets, and
    how it transforms them ("esp in mode tunnel"; "" for none). Of policies the one with the smallest priority wins.
    `selectors` are protocols, ports and the like: they select some packets only."""

    source: str
    destination: str
    direction: str
    origin: str
    priority: int = 0
    is_blocking: bool = False
    transformation: str = ""
    selectors: str = ""


def is_policy_listing(output_text: str) -> bool:
    """Whether a text is the output of `ip xfrm`."""
    return any(_FIRST_LINE_PATTERN.match(line) for line in output_text.splitlines())


def parse_policy_listing(output_text: str, file_name: str) -> tuple[SecurityPolicy, ...]:
    """The policies of a text; policies of single sockets are left out. Raises UserError for a list of states alone."""
    policies, has_policy = [], False
    for number, first_line, lines in _iterate_entries(output_text):
        direction = next((match for line in lines if (match := _DIRECTION_PATTERN.match(line))), None)
        has_policy = has_policy or direction is not None or any("socket " in line for line in lines)
        head = _FIRST_LINE_PATTERN.match(first_line)
        if direction is None or head is None:
            continue
        selectors = re.sub(r"\buid 0\b", "", head[3])
        mark = re.search(r"\bmark (\S+)", "\n".join(lines))
        policies.append(
            SecurityPolicy(
                source=head[1],
                destination=head[2],
                direction=direction[1],
                origin=f"{file_name}, line {number}",
                priority=int(match[1]) if (match := re.search(r"\bpriority (\d+)", direction[2])) else 0,
                is_blocking="action block" in direction[2],
                transformation=_describe_transformation(lines),
                selectors=" ".join([*selectors.split(), *([f"mark {mark[1]}"] if mark else [])]),
            )
        )
    if not has_policy:
        raise UserError(
            f"{file_name} holds states of IPsec, which do not tell packets apart; give `ip xfrm policy` too."
        )
    return tuple(policies)


def _iterate_entries(output_text: str) -> Iterator[tuple[int, str, list[str]]]:
    """The first line of each policy or state with its number, and its indented lines."""
    entry: tuple[int, str, list[str]] | None = None
    for number, line in enumerate(output_text.splitlines(), start=1):
        if _FIRST_LINE_PATTERN.match(line):
            if entry is not None:
                yield entry
            entry = (number, line, [])
        elif entry is not None:
            entry[2].append(line)
    if entry is not None:
        yield entry


def _describe_transformation(lines: list[str]) -> str:
    """The protocols of the templates of a policy and their modes."""
    protocols = [match for line in lines if (match := re.match(r"\s+proto (\w+)\b.*\bmode (\w+)", line))]
    return ", ".join(dict.fromkeys(f"{match[1]} in mode {match[2]}" for match in protocols))
