# SPDX-License-Identifier: Apache-2.0
"""``sonde show``: the numbers of a run again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import archive_option, json_option
from sonde.cli.run_tables import print_run
from sonde.cli.screen import print_json, results
from sonde.model.errors import MachineError
from sonde.model.record import RecordReader, read_record
from sonde.store.archive import RECORD, Archive
from sonde.store.durable import read_json
from sonde.store.summary import NAME as SUMMARY


@click.command("show")
@click.argument("run", default="last")
@archive_option
@json_option
def command(run: str, archive: Archive, as_json: bool) -> int:
    """Show the phases of RUN: rates, latencies, CPU, and what to think of them.

    RUN is an id, a unique beginning of one, the id of a check (all its runs), a folder, or "last".

    \b
    Examples:
      sonde show
      sonde show 20261121T204501Z-quick
      sonde show last --json
    """
    archive.recover()
    shown = [(folder, _read(folder)) for folder in archive.find(run)]
    if as_json:
        print_json([_document(folder, record) for folder, record in shown])
        return 0
    console = results()
    for folder, record in shown:
        print_run(console, folder, record)
    for folder, _ in shown:
        console.print(f"Files  {folder}", soft_wrap=True, style="dim")
    return 0


def _read(folder: Path) -> RecordReader:
    try:
        return read_record(folder / RECORD)
    except OSError as reason:
        raise MachineError(f"{folder / RECORD} cannot be read: {reason.strerror}.") from None


def _document(folder: Path, record: RecordReader) -> dict[str, Any]:
    summary = read_json(folder / SUMMARY) or {}
    phases = []
    for phase in record.phases.values():
        entry = asdict(phase.begin)
        if phase.end is not None:
            entry |= asdict(phase.end)
        entry["treatments"] = [asdict(one) for one in phase.treatments]
        entry["findings"] = [asdict(one) for one in phase.findings]
        phases.append(entry)
    return {**summary, "folder": str(folder), "phases": phases}
