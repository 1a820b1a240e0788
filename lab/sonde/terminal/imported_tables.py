# SPDX-License-Identifier: Apache-2.0
"""An imported run as a person reads it: whose numbers they are comes first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sonde.model.units import format_bytes, format_ops, format_rate, format_seconds
from sonde.terminal.screen import make_plain_table


def print_imported_run(console: Console, run_folder: Path, summary_document: Mapping[str, Any]) -> None:
    """The numbers of a run.json that has no record."""
    source = summary_document.get("source") or {}
    console.print(f"{run_folder.name}", style="bold", soft_wrap=True)
    console.print(
        f"Imported from {source.get('file', 'elsewhere')}: {source.get('tool', 'another tool')}", soft_wrap=True
    )
    location = " ".join(
        str(summary_document[name]) for name in ("host", "file_system", "target") if summary_document.get(name)
    ) or (summary_document.get("history") or {}).get("file_system", "")
    facts = {"Started": summary_document.get("started"), "Where": location, "Tasks": summary_document.get("tasks")}
    facts |= {"Nodes": summary_document.get("nodes"), "Command": summary_document.get("command")}
    facts |= {str(name): value for name, value in (summary_document.get("experiment") or {}).items()}
    for name, value in facts.items():
        if value not in (None, ""):
            console.print(f"  {name:<16} {value}", soft_wrap=True)
    table = make_plain_table()
    for title in ("phase", "rate", "operations", "transferred", "time", "whose number"):
        table.add_column(title, justify="left" if title in ("phase", "whose number") else "right")
    for phase in summary_document.get("phases") or ():
        table.add_row(
            str(phase.get("phase")),
            _format_cell(phase.get("bytes_per_s"), format_rate),
            _format_cell(phase.get("ops_per_s"), format_ops),
            _format_cell(phase.get("bytes"), format_bytes),
            _format_cell(phase.get("seconds"), format_seconds),
            str(phase.get("definition") or ""),
        )
    console.print(table)
    for finding in summary_document.get("findings") or ():
        console.print(f"{finding.get('severity', 'info')}: {finding.get('text', '')}", soft_wrap=True)


def _format_cell(json_value: Any, format_text: Any) -> str:
    return (
        str(format_text(json_value))
        if isinstance(json_value, int | float) and not isinstance(json_value, bool)
        else "-"
    )
