# SPDX-License-Identifier: Apache-2.0
"""``sonde show``: prints the numbers of a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import add_existing_archive_option, add_json_option
from sonde.cli.run_selection import open_catalog_with_progress
from sonde.findings.assessment import assess_phase_rate
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import read_json_file
from sonde.model.errors import MachineError
from sonde.model.record import RecordReader, read_record
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.model.system import System, read_system
from sonde.model.system.parents import add_target_parents
from sonde.model.trace import is_trace, read_trace
from sonde.store.archive import RECORD, REPORT_FILE, Archive
from sonde.store.groups import locate_group_folder
from sonde.store.selection import Selection
from sonde.store.summary import SUMMARY_FILE
from sonde.store.tags import read_tags
from sonde.terminal.imported_tables import print_imported_run
from sonde.terminal.run_list import RUN_LIST_COLUMNS, make_row_for_each_run, print_run_list
from sonde.terminal.run_tables import print_run_tables
from sonde.terminal.screen import get_messages_console, get_results_console, print_json
from sonde.terminal.target_tables import build_targets_document
from sonde.terminal.trace_tables import build_trace_document, print_trace

_MAX_SHOWN_RUNS = 12  # of larger groups `show` prints a row for each run


@click.command("show")
@click.argument("run", default="last")
@click.option("--system", metavar="SYSTEM", help="System file of the machine, with the server and unit of each target.")
@add_existing_archive_option
@add_json_option
def command(run: str, system: str | None, archive: Archive, as_json: bool) -> int:
    """Show the phases of RUN: rates, latencies, CPU time, and their assessment.

    RUN is an id, a unique beginning of one, the name of a group (all its runs; of more than 12 runs one row each), a
    folder, or "last". A trace of `sonde trace`, file or folder, is shown by file.

    \b
    Examples:
      sonde show
      sonde show 20261121T204501Z-quick
      sonde show last --json

    More: sonde help concepts/rates
    """
    if is_trace(Path(run)):
        trace = read_trace(Path(run))
        if as_json:
            print_json(build_trace_document(trace))
        else:
            print_trace(get_results_console(), trace)
        return 0
    machine = read_system(find_system_file(system)) if system else None
    archive.recover_unfinished_runs()
    folders = archive.find_run_folders(run)
    if len(folders) > _MAX_SHOWN_RUNS and not as_json:
        _print_runs_of_group(archive, run, folders)
        return 0
    runs_read = [(folder, None if _is_imported_run(folder) else _read_record_of_run(folder)) for folder in folders]
    if as_json:
        print_json([_make_run_document(folder, record, machine) for folder, record in runs_read])
        return 0
    console = get_results_console()
    for folder, record in runs_read:
        if record is None:
            print_imported_run(console, folder, read_json_file(folder / SUMMARY_FILE) or {})
        else:
            print_run_tables(console, folder, record, _build_recorded_run(folder, record, machine).notes)
    for folder in folders:
        console.print(f"Files  {folder}", soft_wrap=True, style="dim")
    return 0


def _print_runs_of_group(archive: Archive, group_name: str, run_folders: list[Path]) -> None:
    """Prints one row for each run of a large group, and where the rest is."""
    selected = Selection(ids=[folder.name for folder in run_folders], calibrations=True)
    rows = open_catalog_with_progress(archive.root).find_runs(RUN_LIST_COLUMNS, selected, None).table.to_pylist()
    print_run_list(make_row_for_each_run(rows))
    page = locate_group_folder(archive.root, group_name) / REPORT_FILE
    report = f"the page of the experiment is {page}" if page.is_file() else f"`sonde report {group_name}` writes a page"
    text = f"sonde: {group_name} has {len(run_folders)} runs; `sonde show RUN` prints the phases of one, and {report}."
    get_messages_console().print(text, soft_wrap=True)


def _is_imported_run(run_folder: Path) -> bool:
    """Results of other tools have no record, only a summary."""
    return not (run_folder / RECORD).exists() and "source" in (read_json_file(run_folder / SUMMARY_FILE) or {})


def _read_record_of_run(run_folder: Path) -> RecordReader:
    try:
        return read_record(run_folder / RECORD)
    except OSError as reason:
        raise MachineError(f"{run_folder / RECORD} cannot be read: {reason.strerror}.") from None


def _build_recorded_run(run_folder: Path, record: RecordReader, system: System | None) -> RecordedRun:
    run = make_recorded_run(record, run_folder, read_json_file(run_folder / SUMMARY_FILE))
    return add_target_parents(run, system) if system else run


def _make_run_document(run_folder: Path, record: RecordReader | None, system: System | None) -> dict[str, Any]:
    summary = read_json_file(run_folder / SUMMARY_FILE) or {}
    summary |= {"tags": read_tags(run_folder)}
    if record is None:
        return {**summary, "folder": str(run_folder)}
    phases = []
    run = _build_recorded_run(run_folder, record, system)
    for phase in record.phases.values():
        entry = asdict(phase.begin)
        if phase.end is not None:
            entry |= asdict(phase.end)
        entry["treatments"] = [asdict(item) for item in phase.treatments]
        entry["findings"] = [asdict(item) for item in phase.findings]
        entry["assessment"] = assess_phase_rate(run, phase).to_json()
        entry |= build_targets_document(run, phase)
        phases.append(entry)
    return {**summary, "folder": str(run_folder), "phases": phases}
