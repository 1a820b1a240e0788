# SPDX-License-Identifier: Apache-2.0
"""``sonde doctor``: reports what works on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from sonde.cli.options import archive_option, existing_directory, json_option
from sonde.launch.engine import find_engine
from sonde.launch.machine_facts import NO, PARTLY, YES, collect_machine_facts
from sonde.launch.mpi_module import build_module
from sonde.model.errors import EXIT_ENVIRONMENT, EXIT_OK, UserError
from sonde.model.units import counted
from sonde.store.archive import Archive
from sonde.terminal.screen import messages, plain_table, print_json, results

_STATE_STYLE = {YES: ("✓", "green"), PARTLY: ("~", "yellow"), NO: ("✗", "red")}
# A part that this machine does not have and need not have.
_ABSENT_STYLE = ("–", "dim")


@click.command("doctor")
@click.argument("directory", required=False)
@archive_option
@json_option
@click.option("--build-mpi", is_flag=True, help="Build the MPI module for this machine's MPI, next to the engine.")
@click.option(
    "--wrapper",
    type=click.Path(path_type=Path),
    metavar="PROGRAM",
    help="The MPI's compiler wrapper, if it is not the mpicxx on PATH.",
)
def command(directory: str | None, archive: Archive, as_json: bool, build_mpi: bool, wrapper: Path | None) -> int:
    """Report what works on this machine, what does not and why, and what would help.

    With DIRECTORY, also report what its file system supports. The exit code is 3 if something essential is missing.

    If Sonde was installed before the MPI, --build-mpi builds the engine's MPI module; this needs the MPI's compiler
    wrapper.

    \b
    Examples:
      sonde doctor
      sonde doctor /scratch
      sonde doctor /scratch --json
      sonde doctor --build-mpi
      sonde doctor --build-mpi --wrapper /opt/mpi/bin/mpicxx
    """
    if wrapper is not None and not build_mpi:
        raise UserError("--wrapper says how to build the MPI module: add --build-mpi.")
    if build_mpi:
        built = build_module(find_engine(), wrapper)
        messages().print(f"sonde: built {built.path} with {built.wrapper}", soft_wrap=True)
    target = existing_directory(directory) if directory is not None else None
    all_facts = collect_machine_facts(target, archive.root)
    lacking = any(fact.essential and fact.state == NO for fact in all_facts)
    if as_json:
        counts = {state: sum(fact.state == state for fact in all_facts) for state in (YES, PARTLY, NO)}
        print_json({"works": not lacking, "counts": counts, "facts": [asdict(fact) for fact in all_facts]})
        return EXIT_ENVIRONMENT if lacking else EXIT_OK
    table = plain_table(show_header=False)
    for fact in all_facts:
        mark, style = _ABSENT_STYLE if fact.state == NO and not fact.essential else _STATE_STYLE[fact.state]
        text = Text(fact.text)
        if fact.remedy:
            text.append(f"\n{fact.remedy}", style="dim")
        table.add_row(Text(mark, style=style), Text(fact.topic, style="bold"), text)
    results().print(table)
    works, partly, lacks = (sum(fact.state == state for fact in all_facts) for state in (YES, PARTLY, NO))
    results().print(f"{counted(len(all_facts), 'check')}: {works} good, {partly} partly, {lacks} not.", style="bold")
    return EXIT_ENVIRONMENT if lacking else EXIT_OK
