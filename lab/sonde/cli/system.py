# SPDX-License-Identifier: Apache-2.0
"""``sonde system``: checks and explains system files."""

from __future__ import annotations

import click

from sonde.cli.options import VerbGroup, add_json_option
from sonde.design.system_text import count_parts, describe_part, describe_part_counts, describe_system
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_BAD_INPUT, EXIT_OK
from sonde.model.system import find_system_file_problems, read_system
from sonde.model.units import format_count_with_noun
from sonde.terminal.screen import get_messages_console, get_results_console, print_json


@click.group("system", cls=VerbGroup)
def command() -> None:
    """Check and explain system files, the descriptions of machines that plans, checks and simulations read.

    \b
    Examples:
      sonde system check cumulus
      sonde system show edison

    More: sonde help reference/system
    """


_system_argument = click.argument("system", metavar="FILE")


@command.command("check")
@_system_argument
@add_json_option
def check_command(system: str, as_json: bool) -> int:
    """List every problem of FILE and of the files that it includes. Exit code 2 when there is one.

    FILE is a system file, or the name of a shipped system. `sonde layout check --plan FILE` reviews the storage that
    a valid file describes.

    \b
    Examples:
      sonde system check cumulus
      sonde system check site.toml --json
    """
    path = find_system_file(system)
    problems = find_system_file_problems(path)
    if as_json:
        parts = {} if problems else count_parts(read_system(path))
        print_json({"valid": not problems, "problems": [str(problem) for problem in problems], "parts": parts})
        return EXIT_BAD_INPUT if problems else EXIT_OK
    if problems:
        for problem in problems:
            get_messages_console().print(str(problem), soft_wrap=True, highlight=False, markup=False)
        get_messages_console().print(f"{format_count_with_noun(len(problems), 'problem')}.", style="bold red")
        return EXIT_BAD_INPUT
    valid = read_system(path)
    counts = describe_part_counts(valid) or "no parts"
    get_results_console().print(f"{valid.id} is valid: {counts}.", soft_wrap=True, highlight=False)
    return EXIT_OK


@command.command("show")
@_system_argument
@click.argument("part", required=False)
@add_json_option
def show_command(system: str, part: str | None, as_json: bool) -> int:
    """Explain FILE: its networks, file systems and mounts; with PART one part, its numbers with their sources, its
    addresses, and who uses it.

    With --json the resolved system is printed: ranges expanded, numbers in base units.

    \b
    Examples:
      sonde system show edison
      sonde system show cumulus router1
    """
    machine = read_system(find_system_file(system))
    if as_json and part is None:
        print_json(machine.resolve())
        return EXIT_OK
    lines = list(describe_system(machine) if part is None else describe_part(machine, part))
    if as_json:
        print_json({"part": part, "lines": lines})
        return EXIT_OK
    for line in lines:
        get_results_console().print(line, soft_wrap=True, highlight=False, markup=False)
    return EXIT_OK
