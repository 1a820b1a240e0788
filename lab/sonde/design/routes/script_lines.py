# SPDX-License-Identifier: Apache-2.0
"""Splits scripts and outputs of ip into logical lines, and these into arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.routes.output_texts import split_shell_words

IP_PROGRAMS = ("ip", "/sbin/ip", "/usr/sbin/ip", "/bin/ip", "/usr/bin/ip")
# Next-hop objects: `ip route` also prints the next hops that they stand for.
_NEXT_HOP_OBJECT_PATTERN = re.compile(r"\s+nh_info |id \d+ (via|dev|group|blackhole|encap)\b")


def select_applied_lines(script_text: str) -> str:
    """A script of Sonde has functions that apply, remove and show: only the first one says what a host gets. Line
    numbers stay."""
    lines = script_text.splitlines()
    if "apply() {" not in lines:
        return script_text
    begin = lines.index("apply() {")
    end = next((index for index in range(begin, len(lines)) if lines[index] == "}"), len(lines))
    return "\n".join(line if begin < index < end or index == 0 else "" for index, line in enumerate(lines))


def join_continued_lines(script_text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first line. A backslash or an indented next hop continues a line, a
    semicolon ends it."""
    pending, begin = "", 0
    for number, raw in enumerate(script_text.splitlines(), start=1):
        line = raw.split("#", 1)[0].rstrip()
        if not line.strip() or set(line.strip()) <= {"."} or _NEXT_HOP_OBJECT_PATTERN.match(line):
            continue
        if pending and not pending.endswith("\\") and not line.lstrip().startswith("nexthop"):
            yield begin, pending.strip().rstrip(";")
            pending = ""
        begin = begin if pending else number
        pending = f"{pending.removesuffix(chr(92))} {line.strip()}" if pending else line.strip()
    if pending:
        yield begin, pending.strip().removesuffix("\\").rstrip(";")


def split_command_tokens(script_line: str) -> list[str]:
    """The words of a command line up to `||` or `&&`, without quotes."""
    tokens = split_shell_words(script_line)
    end = next((index for index, token in enumerate(tokens) if token in ("||", "&&", "2>/dev/null")), len(tokens))
    return tokens[:end]


def remove_program_and_verb(tokens: list[str]) -> list[str]:
    """The tokens without the program and its verb: "ip -6 route add X" is "route X". Empty for commands that add
    nothing."""
    if tokens and tokens[0] in IP_PROGRAMS:
        tokens = [token for token in tokens[1:] if not token.startswith("-")]
        if tokens and tokens[0] in ("r", "ro"):
            tokens[0] = "route"
        if len(tokens) > 1 and tokens[1] in ("add", "replace", "append", "a"):
            del tokens[1]
        else:
            return []  # show, del, flush: nothing that is added
    return tokens
