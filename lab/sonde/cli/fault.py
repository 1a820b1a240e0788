# SPDX-License-Identifier: Apache-2.0
"""``sonde fault``: switches what is wrong with a mounted machine."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.launch.mounting import faults_of, tell
from sonde.model.errors import DONE, UserError


@click.command("fault")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("fault", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Say what is wrong with it now.")
@click.option("--end", is_flag=True, help="End the fault instead of beginning it.")
@click.option("--clear", is_flag=True, help="End all faults.")
def command(directory: Path, fault: tuple[str, ...], listed: bool, end: bool, clear: bool) -> int:
    """Begin a fault of the machine that is mounted on DIRECTORY.

    A fault is written as for `sonde simulate`, which lists them all (--list-faults). It begins at once and lasts until
    it is ended; another of its kind at the same part takes its place.

    \b
    Examples:
      sonde fault /tmp/machine slow-target 3 10x
      sonde fault /tmp/machine --list
      sonde fault /tmp/machine --end slow-target 3
      sonde fault /tmp/machine --clear
    """
    if bool(fault) == (listed or clear) or (listed and clear) or (end and not fault):
        raise UserError("Say one of: a fault as slow-target 3 10x, --end and a fault, --list, --clear.")
    faults = faults_of(directory)
    if listed:
        for one in faults:
            click.echo(one)
        return DONE
    tell(directory, "clear" if clear else ("end " if end else "") + " ".join(fault))
    return DONE
