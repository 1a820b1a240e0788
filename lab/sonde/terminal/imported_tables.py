# SPDX-License-Identifier: Apache-2.0
"""An imported run as a person reads it: whose numbers they are comes first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sonde.model.units import format_bytes, format_ops, format_rate, format_seconds
from sonde.terminal.screen import make_plain_table


def print_imported_run(console: Console, folder: Path, document: Mapping[str, Any]) -> None:
    """The numbers of a run.json that has no record."""
    source = document.get("source") or {}
    console.print(f"{folder.name}", style="bold", soft_wrap=True)
    console.print(
        f"Imported from {source.get('file', 'elsewhere')}: {source.get('tool', 'another tool')}", soft_wrap=True
    )
    location = " ".join(str(document[name]) for name in ("host", "file_system", "target") if document.get(name)) or (
        document.get("history") or {}
    ).get("file_system", "")
    facts = {"Started": document.get("started"), "Where": location, "Tasks": document.get("tasks")}
    facts |= {"Nodes": document.get("nodes"), "Command": document.get("command")}
    facts |= {str(name): value for name, value in (document.get("experiment") or {}).items()}
    for name, value in facts.items():
        if value not in (None, ""):
            console.print(f"  {name:<16} {value}", soft_wrap=True)
    table = make_plain_table()
    for title in ("phase", "rate", "operations", "transferred", "time", "whose number"):
        table.add_column(title, justify="left" if title in ("phase", "whose number") else "right")
    for phase in document.get("phases") or ():
        table.add_row(
            str(phase.get("phase")),
            _format_value(phase.get("bytes_per_s"), format_rate),
            _format_value(phase.get("ops_per_s"), format_ops),
            _format_value(phase.get("bytes"), format_bytes),
            _format_value(phase.get("seconds"), format_seconds),
            str(phase.get("definition") or ""),
        )
    console.print(table)
    for finding in document.get("findings") or ():
        console.print(f"{finding.get('severity', 'info')}: {finding.get('text', '')}", soft_wrap=True)


def _format_value(value: Any, form: Any) -> str:
    return str(form(value)) if isinstance(value, int | float) and not isinstance(value, bool) else "-"
