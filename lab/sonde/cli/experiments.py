# SPDX-License-Identifier: Apache-2.0
"""``sonde experiments``: the plans and experiments that are installed with Sonde."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sonde.cli.options import add_json_option
from sonde.experiments.shipped_experiments import list_shipped_experiments, list_shipped_plans
from sonde.model.errors import UserError
from sonde.model.plan import read_plan_document
from sonde.terminal.screen import get_results_console, make_plain_table, print_json


@click.command("experiments")
@click.argument("text", default="")
@add_json_option
def command(text: str, as_json: bool) -> int:
    """List the plans and experiments that are installed with Sonde: names for `sonde run`.

    TEXT selects those that have it in their name, folder or title.

    \b
    Examples:
      sonde experiments
      sonde experiments hpcs
      sonde experiments cray-x1 --json

    More: sonde help reference/experiments
    """
    documents = [_make_experiment_row(name, file, "plan") for name, file in list_shipped_plans().items()]
    documents += [_make_experiment_row(name, file, "experiment") for name, file in list_shipped_experiments().items()]
    selected = [item for item in documents if text.casefold() in " ".join(map(str, item.values())).casefold()]
    if text and not selected:
        raise UserError(
            f'No plan or experiment has "{text}" in its name, folder or title; `sonde experiments` lists all.'
        )
    if as_json:
        print_json(selected)
        return 0
    table = make_plain_table()
    for title in ("name", "kind", "profiles", "title"):
        table.add_column(title, no_wrap=title != "title")
    for item in selected:
        table.add_row(item["name"], item["kind"], " ".join(item["profiles"]) or "-", item["title"])
    get_results_console().print(table)
    return 0


def _make_experiment_row(file_name: str, plan_or_experiment_file: Path, file_kind: str) -> dict[str, Any]:
    document = read_plan_document(str(plan_or_experiment_file))
    folder = "" if plan_or_experiment_file.parent.name == "experiments" else plan_or_experiment_file.parent.name
    return {
        "name": file_name,
        "kind": file_kind,
        "folder": folder,
        "title": str(document.get("title") or document.get("id") or file_name),
        "profiles": list(document.get("profiles", {})),
        "file": str(plan_or_experiment_file),
    }
