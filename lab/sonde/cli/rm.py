# SPDX-License-Identifier: Apache-2.0
"""``sonde rm``: removes runs from the archive."""

from __future__ import annotations

import sys

import click

from sonde.cli.options import add_existing_archive_option
from sonde.cli.run_selection import add_selection_options, open_progress_bar, select_run_folders
from sonde.model.errors import UserError
from sonde.store.archive import Archive
from sonde.store.groups import remove_empty_groups
from sonde.store.selection import Selection
from sonde.terminal.encoding import escape_control_characters
from sonde.terminal.screen import get_messages_console, get_results_console

_MAX_LISTED_NAMES = 10


@click.command("rm")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@add_selection_options
@click.option("--group", "groups", is_flag=True, help="A name may mean all runs of a group: a check, a grid, a survey.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be removed.")
@add_existing_archive_option
def command(runs: tuple[str, ...], groups: bool, wanted: Selection, yes: bool, dry_run: bool, archive: Archive) -> int:
    """Remove runs from the archive: those that match the names and the filters, as far as given.

    The record, tables and report of a run are deleted. The command asks first; scripts need --yes.
    "last" and other names of a group mean all its runs; they are removed with --group only.

    \b
    Examples:
      sonde rm 20261121T204501Z-quick
      sonde rm --status failed --until 2026-01-01 --dry-run
      sonde rm --plan test --yes

    More: sonde help tasks/archive
    """
    archive.recover_unfinished_runs()
    for name in () if groups else runs:
        members = archive.find_run_folders(name, includes_calibrations=True)
        if len(members) > 1:
            raise UserError(
                f'"{name}" means the {len(members):,} runs of a group; say --group to remove them all, or name one run.'
            )
    folders = select_run_folders(archive, runs, wanted, "remove")
    inside = [folder for folder in folders if archive.root.resolve() in folder.resolve().parents]
    if len(inside) < len(folders):
        outside = next(folder for folder in folders if folder not in inside)
        raise UserError(f"{outside} is not in the archive {archive.root}; only runs of the archive are removed.")
    description = f"{len(folders):,} runs" if len(folders) != 1 else f"the run {folders[0].name}"
    for folder in folders[:_MAX_LISTED_NAMES] if dry_run or len(folders) > 1 else ():
        get_messages_console().print(folder.name, soft_wrap=True)
    if len(folders) > _MAX_LISTED_NAMES:
        get_messages_console().print(f"… and {len(folders) - _MAX_LISTED_NAMES:,} more", soft_wrap=True)
    if dry_run or not folders:
        get_results_console().print(
            f"Would remove {description}." if folders else "No run matches; nothing was removed.", soft_wrap=True
        )
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"Removing {description} cannot be undone; say --yes to do it without being asked.")
        if not click.confirm(escape_control_characters(f"Remove {description} for good?"), err=True):
            get_results_console().print("Nothing was removed.")
            return 0
    with open_progress_bar("removing") as step:
        for done, folder in enumerate(folders):
            archive.remove_run(folder)
            step(done + 1, len(folders))
    remove_empty_groups(archive.root)
    get_results_console().print(f"Removed {description}.", soft_wrap=True)
    return 0
