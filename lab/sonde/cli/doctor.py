# SPDX-License-Identifier: Apache-2.0
"""``sonde doctor``: what works here, and why not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from sonde.cli.options import archive_option, existing_directory, json_option
from sonde.launch.engine import find_engine
from sonde.launch.health import NO, PARTLY, YES, facts
from sonde.launch.mpi_module import build_module
from sonde.model.errors import DONE, ENVIRONMENT, UserError
from sonde.store.archive import Archive
from sonde.terminal.screen import messages, plain_table, print_json, results

_MARK = {YES: ("✓", "green"), PARTLY: ("~", "yellow"), NO: ("✗", "red")}


@click.command("doctor")
@click.argument("directory", required=False)
@archive_option
@json_option
@click.option("--build-mpi", is_flag=True, help="Build the MPI module for the MPI that is here, beside the engine.")
@click.option(
    "--wrapper",
    type=click.Path(path_type=Path),
    metavar="PROGRAM",
    help="Its compiler wrapper, where it is not the mpicxx on PATH.",
)
def command(directory: str | None, archive: Archive, as_json: bool, build_mpi: bool, wrapper: Path | None) -> int:
    """Say what works on this machine, why not, and what would help.

    With DIRECTORY also what its file system allows. The exit code is 3 when something is missing without which nothing
    can be measured.

    Where Sonde was installed before the MPI, --build-mpi makes the module by which the engine speaks it; this needs the
    MPI's compiler wrapper.

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
    place = existing_directory(directory) if directory is not None else None
    found = facts(place, archive.root)
    lacking = any(fact.essential and fact.state == NO for fact in found)
    if as_json:
        print_json({"works": not lacking, "facts": [asdict(fact) for fact in found]})
        return ENVIRONMENT if lacking else DONE
    table = plain_table(show_header=False)
    for fact in found:
        mark, style = _MARK[fact.state]
        # what one can do without is no reason for red
        style = "yellow" if fact.state == NO and not fact.essential else style
        text = Text(fact.text)
        if fact.remedy:
            text.append(f"\n{fact.remedy}", style="dim")
        table.add_row(Text(mark, style=style), Text(fact.topic, style="bold"), text)
    results().print(table)
    return ENVIRONMENT if lacking else DONE
