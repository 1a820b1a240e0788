# SPDX-License-Identifier: Apache-2.0
"""Splits a file that holds several outputs of ip and sysctl, one after the other, and lines of commands into words."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

_LINK, _RULE, _POLICY, _SETTING, _ROUTE, _QUEUE = "link", "rule", "policy", "setting", "route", "queue"
# The first line of a link in `ip addr`, a line of `ip rule`, the first line of a policy in `ip xfrm policy`, and a line
# of `sysctl -a`; others are routes or neighbors.
_FIRST_LINES = (
    (_LINK, re.compile(r"\d+: \S+: <[A-Z,_\d-]*>")),
    (_RULE, re.compile(r"(\d+):\s")),
    (_POLICY, re.compile(r"src \S+ dst \S+")),
    (_QUEUE, re.compile(r"(?:qdisc|class) \w+ [\da-f]*:")),
    (_SETTING, re.compile(r"[\w.\-/]+\s*=")),
)
# A line that may begin output of `ip -j` below another output.
_JSON_LINE = re.compile(r"^(?=\[\s*[{\]]|\{\s*\")", re.MULTILINE)


def split_outputs(output_text: str) -> list[str]:
    """The outputs of a text, which together have all its lines. Those of lines have empty ones in place of the others,
    so that numbers of lines stay. A script or a configuration file is one text."""
    if output_text.lstrip().startswith(("[", "{")):
        return list(_split_json_documents(output_text))
    start = None if output_text.startswith("#!") else _find_json_output(output_text)
    if start is not None:
        return [*split_outputs(output_text[:start]), *_split_json_documents(output_text[start:])]
    lines = output_text.splitlines()
    kinds = _assign_listing_numbers(lines)
    listings = list(dict.fromkeys(kind for kind in kinds if kind))
    if (
        len(listings) < 2
        or not any(kind in (_LINK, _RULE, _POLICY, _QUEUE) for kind, _ in listings)
        or output_text.startswith("#!")
    ):
        return [output_text]
    return ["\n".join(line if kind == listing else "" for line, kind in zip(lines, kinds, strict=True))
            for listing in listings]  # fmt: skip


def _split_json_documents(json_text: str) -> Iterator[str]:
    """JSON documents one after the other, then the outputs that follow them. Text that begins as JSON and cannot be
    read stays one text, of which the reader reports the error."""
    decoder, remaining_text = json.JSONDecoder(), json_text.lstrip()
    while remaining_text.startswith(("[", "{")):
        try:
            _, end = decoder.raw_decode(remaining_text)
        except (ValueError, RecursionError):
            yield remaining_text
            return
        yield remaining_text[:end]
        remaining_text = remaining_text[end:].lstrip()
    if remaining_text:
        yield from split_outputs(remaining_text)


def _find_json_output(output_text: str) -> int | None:
    """Where the first JSON document below lines of another output begins."""
    for match in _JSON_LINE.finditer(output_text):
        try:
            json.JSONDecoder().raw_decode(output_text, match.start())
        except (ValueError, RecursionError):
            continue
        return match.start()
    return None


def _assign_listing_numbers(lines: list[str]) -> list[tuple[str, int] | None]:
    """The kind and number of the listing that each line is part of; None for empty lines. The rule of preference 0
    begins another listing of rules, as that of the other IP version."""
    kinds: list[tuple[str, int] | None] = []
    current, preference, number = _ROUTE, 0, 0
    for line in lines:
        if not line.strip() or line.startswith(("#", ";")):
            kinds.append(None)
            continue
        if not line[0].isspace():
            current = next((kind for kind, form in _FIRST_LINES if form.match(line)), _ROUTE)
        if current == _RULE and (match := re.match(r"(\d+):", line)):
            number += int(match[1]) == 0 < preference
            preference = int(match[1])
        kinds.append((current, number if current == _RULE else 0))
    return kinds


def split_shell_words(command_line: str, skips_comments: bool = False) -> list[str]:
    """The words of a line without their quotes; of one whose quotes have no end the words between spaces."""
    try:
        return shlex.split(command_line, comments=skips_comments)
    except ValueError:
        return command_line.split()
