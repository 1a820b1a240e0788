# SPDX-License-Identifier: Apache-2.0
"""``sonde clean``: removes what killed runs left behind, and nothing else."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from sonde.cli.options import existing_directory, json_option
from sonde.launch.engine import find_engine
from sonde.model.errors import RunFailedError
from sonde.model.units import counted, format_bytes
from sonde.terminal.screen import messages, print_json, results


@click.command("clean")
@click.argument("directory")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def command(directory: str, dry_run: bool, as_json: bool) -> int:
    """Remove what killed runs left below DIRECTORY, the target of those runs.

    Each run writes down what it makes before it makes it. Only files in such a list are removed, only when the run is
    no longer going on, and directories only when they are empty then. Results in the archive are never touched.

    \b
    Examples:
      sonde clean /scratch --dry-run
      sonde clean /scratch
    """
    place = existing_directory(directory)
    engine = find_engine()
    console = messages()
    if console.is_terminal and not as_json:
        with console.status("looking for what killed runs left", spinner="dots"):
            entries = engine.clean(place, dry_run)
    else:
        entries = engine.clean(place, dry_run)
    if as_json:
        print_json(entries)
    else:
        _print(results(), entries, dry_run, directory)
    stuck = [entry for entry in entries if entry.get("left")]
    if stuck:
        raise RunFailedError(
            f"{counted(len(stuck[0]['left']), 'file')} of {stuck[0]['directory']} could not be removed."
        )
    return 0


def _print(console: Console, entries: list[dict[str, Any]], dry_run: bool, directory: str) -> None:
    if not entries:
        console.print(f"Nothing to remove below {directory}.", soft_wrap=True)
    for entry in entries:
        line = Text(str(entry.get("directory", "?")), style="bold")
        if "kept" in entry:
            line.append(f"  kept: {entry['kept']}", style="not bold yellow")
        else:
            verb = "would remove" if dry_run else "removed"
            files = int(entry.get("files", 0))
            size = format_bytes(float(entry.get("bytes", 0)))
            line.append(f"  {verb} {files} file{'s' if files != 1 else ''}, {size}", style="not bold default")
        console.print(line, soft_wrap=True)
        for left in entry.get("left", [])[:5]:
            console.print(Text(f"  still there: {left}", style="red"), soft_wrap=True)
