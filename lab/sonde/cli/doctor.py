# SPDX-License-Identifier: Apache-2.0
"""``sonde doctor``: what works here, and why not."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.text import Text

from sonde.cli.options import archive_option, existing_directory, json_option
from sonde.launch.health import NO, PARTLY, YES, facts
from sonde.model.errors import DONE, ENVIRONMENT
from sonde.store.archive import Archive
from sonde.terminal.screen import plain_table, print_json, results

_MARK = {YES: ("✓", "green"), PARTLY: ("~", "yellow"), NO: ("✗", "red")}


@click.command("doctor")
@click.argument("directory", required=False)
@archive_option
@json_option
def command(directory: str | None, archive: Archive, as_json: bool) -> int:
    """Say what works on this machine, why not, and what would help.

    With DIRECTORY also what its file system allows. The exit code is 3 when something is missing without which nothing
    can be measured.

    \b
    Examples:
      sonde doctor
      sonde doctor /scratch
      sonde doctor /scratch --json
    """
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
