# SPDX-License-Identifier: Apache-2.0
"""``sonde fault``: begins and ends faults of a mounted machine."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.launch.mounted_machine import read_active_faults, send_fault_command
from sonde.model.errors import EXIT_OK, UserError
from sonde.terminal.encoding import print_plain_text


@click.command("fault")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("fault", nargs=-1)
@click.option("--list", "list_faults", is_flag=True, help="List the active faults.")
@click.option("--end", is_flag=True, help="End the fault instead of beginning it.")
@click.option("--clear", is_flag=True, help="End all faults.")
def command(directory: Path, fault: tuple[str, ...], list_faults: bool, end: bool, clear: bool) -> int:
    """Begin a fault of the machine that is mounted on DIRECTORY.

    A fault is written as for `sonde simulate`, which lists them all (--list-faults). It begins at once and lasts until
    it is ended; another of its kind at the same part takes its place.

    \b
    Examples:
      sonde fault /tmp/machine slow-target 3 10x
      sonde fault /tmp/machine --list
      sonde fault /tmp/machine --end slow-target 3
      sonde fault /tmp/machine --clear

    More: sonde help concepts/mount
    """
    if bool(fault) == (list_faults or clear) or (list_faults and clear) or (end and not fault):
        raise UserError("Say one of: a fault as slow-target 3 10x, --end and a fault, --list, --clear.")
    faults = read_active_faults(directory)
    if list_faults:
        for active_fault in faults:
            print_plain_text(active_fault)
        return EXIT_OK
    send_fault_command(directory, "clear" if clear else ("end " if end else "") + " ".join(fault))
    return EXIT_OK
