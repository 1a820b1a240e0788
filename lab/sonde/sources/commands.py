# SPDX-License-Identifier: Apache-2.0
"""Parses command lines of other tools: separates arguments that define the work from locations."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from datetime import datetime


def split_arguments(command_line: str) -> list[str]:
    """The arguments without the program; an unclosed quote makes every blank a separator."""
    try:
        arguments = shlex.split(command_line)
    except ValueError:
        arguments = command_line.split()
    return arguments[1:]


def select_work_arguments(
    command_line: str, location_options: Collection[str], location_flags: Collection[str] = ()
) -> str:
    """Returns the arguments that define the work. Options in `location_options` are removed with their value (`-o x`,
    `-ox`, `--out x`, `--out=x`), those in `location_flags` alone."""
    selected: list[str] = []
    arguments = iter(split_arguments(command_line))
    for argument in arguments:
        name = argument.split("=", 1)[0]
        if name in location_options:
            if "=" not in argument:
                next(arguments, None)
        elif argument in location_flags or any(
            len(option) == 2 and argument.startswith(option) and option in location_options
            for option in location_options
        ):
            continue
        else:
            selected.append(argument)
    return " ".join(selected)


def find_option_value(command_line: str, option_letter: str) -> str:
    """The value of an option of one letter, "" when it is not there."""
    arguments = split_arguments(command_line)
    for position, argument in enumerate(arguments):
        if argument == option_letter and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument.startswith(option_letter) and len(argument) > len(option_letter) and not argument.startswith("--"):
            return argument[len(option_letter) :]
    return ""


def parse_clock_time(time_text: str) -> datetime | None:
    """The time in ``Sun Nov 22 00:50:49 2026``, ``11/22/2026 00:50:52`` or ``2020-01-06 10:23:49``, without a zone."""
    normalized = " ".join(time_text.split())
    for time_format in ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y.%m.%d-%H.%M.%S"):
        try:
            return datetime.strptime(normalized, time_format)
        except ValueError:
            continue
    return None


def shorten_to_minor_version(version_text: str) -> str:
    """Returns ``4.1`` for ``4.1.0+dev``: a patch release does not change the definition of a number."""
    return ".".join(version_text.split("+")[0].split("-")[0].split(".")[:2])
