# SPDX-License-Identifier: Apache-2.0
"""``sonde clean``: removes files that killed runs left behind, and nothing else."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from sonde.cli.options import add_json_option
from sonde.experiments.locations import require_existing_directory
from sonde.launch.engine import find_engine
from sonde.model.errors import RunFailedError, UserError
from sonde.model.target_names import is_object_store_target
from sonde.model.units import format_bytes, format_count_with_noun
from sonde.terminal.screen import get_messages_console, get_results_console, print_json


@click.command("clean")
@click.argument("directory")
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Also remove what a run put into directories outside DIRECTORY.")
@add_json_option
def command(directory: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Remove the files that killed runs left below DIRECTORY, the target of those runs.

    Each run writes down what it makes before it makes it. Only files in such a list are removed, only when the run is
    no longer going on, and directories only when they are empty then. Results in the archive are never touched.

    Only lists of your own or of root count, and only where other users cannot have replaced them. A run with files in
    several directories (data.files.across) is kept until --yes allows the removal of those outside DIRECTORY. DIRECTORY
    may be a bucket (s3://BUCKET/PREFIX) of the service that AWS_ENDPOINT_URL names.

    \b
    Examples:
      sonde clean /scratch --dry-run
      sonde clean s3://bench/acceptance

    More: sonde help concepts/safety
    """
    target = directory if is_object_store_target(directory) else require_existing_directory(directory)
    engine = find_engine()
    console = get_messages_console()
    if console.is_terminal and not as_json:
        with console.status("looking for files of killed runs", spinner="dots"):
            entries = engine.remove_leftovers(target, dry_run, include_other_folders=yes)
    else:
        entries = engine.remove_leftovers(target, dry_run, include_other_folders=yes)
    if as_json:
        print_json(entries)
    else:
        _print_removed(get_results_console(), entries, dry_run, directory)
    stuck = [entry for entry in entries if entry.get("remaining")]
    if stuck:
        raise RunFailedError(
            f"{format_count_with_noun(len(stuck[0]['remaining']), 'file')} of {stuck[0]['directory']} could not be "
            "removed."
        )
    refused = [entry for entry in entries if "not_removed" in entry and entry.get("directories")]
    if refused:
        raise UserError(f"{refused[0]['directory']} is not removed: {refused[0]['not_removed']}.")
    return 0


def _print_removed(
    console: Console, removed_entries: list[dict[str, Any]], dry_run: bool, searched_directory: str
) -> None:
    if not removed_entries:
        console.print(f"Nothing to remove below {searched_directory}.", soft_wrap=True)
    for entry in removed_entries:
        line = Text(str(entry.get("directory", "?")), style="bold")
        if "not_removed" in entry:
            line.append(f"  not removed: {entry['not_removed']}", style="not bold yellow")
        else:
            verb = "would remove" if dry_run else "removed"
            files = int(entry.get("files", 0))
            size = format_bytes(float(entry.get("bytes", 0)))
            line.append(f"  {verb} {files} file{'s' if files != 1 else ''}, {size}", style="not bold default")
        console.print(line, soft_wrap=True)
        for other in entry.get("directories", [])[1:]:
            outside = ", outside: needs --yes" if dry_run and other in entry.get("outside", []) else ""
            console.print(Text(f"  also in {other}{outside}"), soft_wrap=True)
        for file in entry.get("remaining", [])[:5]:
            console.print(Text(f"  still there: {file}", style="red"), soft_wrap=True)
