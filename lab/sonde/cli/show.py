# SPDX-License-Identifier: Apache-2.0
"""``sonde show``: the numbers of a run again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import json_option, kept_archive_option
from sonde.findings.judgement import judgement_of
from sonde.model.errors import MachineError
from sonde.model.record import RecordReader, read_record
from sonde.model.run import Run, run_of
from sonde.model.shipped import system_source
from sonde.model.system import System, read_system
from sonde.model.system.parents import described
from sonde.model.trace import is_trace, read_trace
from sonde.store.archive import RECORD, Archive
from sonde.store.durable import read_json
from sonde.store.summary import NAME as SUMMARY
from sonde.store.tags import read_tags
from sonde.terminal.imported_tables import print_imported
from sonde.terminal.run_tables import print_run
from sonde.terminal.screen import print_json, results
from sonde.terminal.target_tables import targets_document
from sonde.terminal.trace_tables import print_trace, trace_document


@click.command("show")
@click.argument("run", default="last")
@click.option("--system", metavar="SYSTEM", help="System file of the machine: which server and unit has which target.")
@kept_archive_option
@json_option
def command(run: str, system: str | None, archive: Archive, as_json: bool) -> int:
    """Show the phases of RUN: rates, latencies, CPU, and what to think of them.

    RUN is an id, a unique beginning of one, the id of a check (all its runs), a folder, or "last". A trace of
    `sonde trace`, file or folder, is shown by file.

    \b
    Examples:
      sonde show
      sonde show 20261121T204501Z-quick
      sonde show last --json
    """
    if is_trace(Path(run)):
        trace = read_trace(Path(run))
        if as_json:
            print_json(trace_document(trace))
        else:
            print_trace(results(), trace)
        return 0
    machine = read_system(system_source(system)) if system else None
    archive.recover()
    folders = archive.find(run)
    shown = [(folder, None if _is_imported(folder) else _read(folder)) for folder in folders]
    if as_json:
        print_json([_document(folder, record, machine) for folder, record in shown])
        return 0
    console = results()
    for folder, record in shown:
        if record is None:
            print_imported(console, folder, read_json(folder / SUMMARY) or {})
        else:
            print_run(console, folder, record, _run(folder, record, machine).notes)
    for folder in folders:
        console.print(f"Files  {folder}", soft_wrap=True, style="dim")
    return 0


def _is_imported(folder: Path) -> bool:
    """Results of other tools have no record, only a summary."""
    return not (folder / RECORD).exists() and "source" in (read_json(folder / SUMMARY) or {})


def _read(folder: Path) -> RecordReader:
    try:
        return read_record(folder / RECORD)
    except OSError as reason:
        raise MachineError(f"{folder / RECORD} cannot be read: {reason.strerror}.") from None


def _run(folder: Path, record: RecordReader, machine: System | None) -> Run:
    run = run_of(record, folder, read_json(folder / SUMMARY))
    return described(run, machine) if machine else run


def _document(folder: Path, record: RecordReader | None, machine: System | None) -> dict[str, Any]:
    summary = read_json(folder / SUMMARY) or {}
    summary |= {"tags": read_tags(folder)}
    if record is None:
        return {**summary, "folder": str(folder)}
    phases = []
    run = _run(folder, record, machine)
    for phase in record.phases.values():
        entry = asdict(phase.begin)
        if phase.end is not None:
            entry |= asdict(phase.end)
        entry["treatments"] = [asdict(one) for one in phase.treatments]
        entry["findings"] = [asdict(one) for one in phase.findings]
        entry["judgement"] = judgement_of(run, phase).as_json()
        entry |= targets_document(run, phase)
        phases.append(entry)
    return {**summary, "folder": str(folder), "phases": phases}
