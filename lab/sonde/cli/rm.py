# SPDX-License-Identifier: Apache-2.0
"""``sonde rm``: takes runs out of the archive."""

from __future__ import annotations

import sys

import click

from sonde.cli.options import kept_archive_option
from sonde.cli.selecting import chosen_runs, selection_options, steps
from sonde.model.errors import UserError
from sonde.store.archive import Archive
from sonde.store.groups import remove_empty
from sonde.store.selection import Selection
from sonde.terminal.screen import messages, results

_NAMED = 10


@click.command("rm")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection_options
@click.option("--group", "groups", is_flag=True, help="A name may mean all runs of a group: a check, a grid, a survey.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be removed.")
@kept_archive_option
def command(runs: tuple[str, ...], groups: bool, wanted: Selection, yes: bool, dry_run: bool, archive: Archive) -> int:
    """Remove runs from the archive: those that are named, or those that the filters find, or what is both.

    A run that is removed is gone: its record, its tables and its report. Removing asks first; in a script say --yes.
    "last" and other names of a group mean all its runs; they are removed with --group only.

    \b
    Examples:
      sonde rm 20261121T204501Z-quick
      sonde rm --status failed --until 2026-01-01 --dry-run
      sonde rm --plan test --yes
    """
    archive.recover()
    for name in () if groups else runs:
        members = archive.find(name, calibrations=True)
        if len(members) > 1:
            raise UserError(
                f'"{name}" means the {len(members):,} runs of a group; say --group to remove them all, or name one run.'
            )
    folders = chosen_runs(archive, runs, wanted, "remove")
    inside = [folder for folder in folders if archive.root.resolve() in folder.resolve().parents]
    if len(inside) < len(folders):
        outside = next(folder for folder in folders if folder not in inside)
        raise UserError(f"{outside} is not in the archive {archive.root}; only runs of the archive are removed.")
    what = f"{len(folders):,} runs" if len(folders) != 1 else f"the run {folders[0].name}"
    for folder in folders[:_NAMED] if dry_run or len(folders) > 1 else ():
        messages().print(folder.name, soft_wrap=True)
    if len(folders) > _NAMED:
        messages().print(f"… and {len(folders) - _NAMED:,} more", soft_wrap=True)
    if dry_run or not folders:
        results().print(f"Would remove {what}." if folders else "No run matches; nothing was removed.", soft_wrap=True)
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"Removing {what} cannot be undone; say --yes to do it without being asked.")
        if not click.confirm(f"Remove {what} for good?", err=True):
            results().print("Nothing was removed.")
            return 0
    with steps("removing") as step:
        for done, folder in enumerate(folders):
            archive.remove(folder)
            step(done + 1, len(folders))
    remove_empty(archive.root)
    results().print(f"Removed {what}.", soft_wrap=True)
    return 0
