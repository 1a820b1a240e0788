# SPDX-License-Identifier: Apache-2.0
"""Command lines of other tools: what of them says which work was done, and what only where it was done."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from datetime import datetime


def arguments_of(command: str) -> list[str]:
    """The arguments without the program; an unclosed quote makes every blank a separator."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return words[1:]


def work_of(command: str, places: Collection[str], flags: Collection[str] = ()) -> str:
    """The arguments that say what was done. Options in `places` go with their value (`-o x`, `-ox`, `--out x`,
    `--out=x`), those in `flags` alone."""
    kept: list[str] = []
    words = iter(arguments_of(command))
    for word in words:
        name = word.split("=", 1)[0]
        if name in places:
            if "=" not in word:
                next(words, None)
        elif word in flags or any(len(one) == 2 and word.startswith(one) and one in places for one in places):
            continue
        else:
            kept.append(word)
    return " ".join(kept)


def option_of(command: str, name: str) -> str:
    """The value of an option of one letter, "" when it is not there."""
    words = arguments_of(command)
    for position, word in enumerate(words):
        if word == name and position + 1 < len(words):
            return words[position + 1]
        if word.startswith(name) and len(word) > len(name) and not word.startswith("--"):
            return word[len(name) :]
    return ""


def clock_time(text: str) -> datetime | None:
    """The time in ``Sun Nov 22 00:50:49 2026``, ``11/22/2026 00:50:52`` or ``2020-01-06 10:23:49``, without a zone."""
    plain = " ".join(text.split())
    for form in ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y.%m.%d-%H.%M.%S"):
        try:
            return datetime.strptime(plain, form)
        except ValueError:
            continue
    return None


def minor(version: str) -> str:
    """``4.1`` of ``4.1.0+dev``: a correction does not make another definition."""
    return ".".join(version.split("+")[0].split("-")[0].split(".")[:2])
