# SPDX-License-Identifier: Apache-2.0
"""``sonde telemetry``: counters of nodes, devices, networks and servers next to the runs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import VerbGroup, add_existing_archive_option, add_json_option
from sonde.model.errors import EXIT_FAILED, EXIT_OK, UserError
from sonde.model.event.times import parse_time_zone
from sonde.model.quantities import display_percent, display_transferred_bytes
from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.store.archive import Archive
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import TelemetryFile, read_telemetry_files
from sonde.telemetry.foreign_files import add_telemetry_to_run, read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults
from sonde.telemetry.list import LOCAL_SOURCES, TELEMETRY_FORMATS
from sonde.telemetry.phase_telemetry import (
    PhaseTelemetry,
    describe_telemetry_gaps,
    find_run_interval,
    summarize_phase_telemetry,
)
from sonde.telemetry.server_telemetry import ServerTelemetry, summarize_server_telemetry
from sonde.telemetry.source import UnavailableSourceError
from sonde.telemetry.storage_state import describe_storage_state
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

_ROOT_FOLDER = Path("/")
# Phase -> what the node and the storage servers counted.
TelemetryByPhase = Mapping[str, tuple[PhaseTelemetry | None, ServerTelemetry | None]]


@click.group("telemetry", cls=VerbGroup)
def command() -> None:
    """Show and import counters of nodes, devices, networks and servers. Every run samples those of its node.

    \b
    Examples:
      sonde telemetry list
      sonde telemetry show last
      sonde telemetry import oss1.txt --run last

    More: sonde help tasks/telemetry
    """


@command.command("list")
@add_json_option
def list_command(as_json: bool) -> int:
    """List the sources of counters, and for each whether it is available on this machine.

    \b
    Examples:
      sonde telemetry list
      sonde telemetry list --json
    """
    rows: list[dict[str, Any]] = []
    for source in LOCAL_SOURCES:
        entry = {"name": source.name, "layer": source.layer, "description": source.description}
        try:
            reader = source.open_reader(_ROOT_FOLDER)
        except UnavailableSourceError as reason:
            rows.append({**entry, "available": False, "reason": str(reason)})
            continue
        try:
            parts = len(reader.read())
            rows.append({**entry, "available": True, "parts": parts})
        except OSError as error:
            rows.append({**entry, "available": False, "reason": f"It cannot be read: {error.strerror}."})
        finally:
            reader.close()
    formats: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "description": entry.description,
            "available": not (problem := entry.find_problem(shutil.which)),
            "reason": problem,
        }
        for entry in TELEMETRY_FORMATS
    ]
    if as_json:
        print_json({"sources": rows, "imported_formats": formats})
        return 0
    table = make_plain_table()
    for title in ("source", "where", "here", "counts"):
        table.add_column(title)
    for row in rows:
        table.add_row(row["name"], row["layer"], "yes" if row["available"] else "no", row["description"])
    console = get_results_console()
    console.print(table)
    for row in rows:
        if not row["available"]:
            console.print(f"{row['name']}: {row['reason']}", soft_wrap=True)
    console.print("\nCounters of servers and other programs are added by `sonde telemetry import`:")
    for entry in formats:
        console.print(f"  {entry['name']}: {entry['description']}", soft_wrap=True)
        if entry["reason"]:
            console.print(f"    {entry['reason']}", soft_wrap=True)
    return 0


@command.command("show")
@click.argument("run", default="last")
@add_existing_archive_option
@add_json_option
def show_command(run: str, archive: Archive, as_json: bool) -> int:
    """Show what the counters of RUN say about each of its phases.

    \b
    Examples:
      sonde telemetry show
      sonde telemetry show last --json
    """
    archive.recover_unfinished_runs()
    documents = []
    for folder in archive.find_run_folders(run):
        recorded = read_recorded_run_folder(folder)
        files = read_telemetry_files(folder)
        if not files:
            raise UserError(
                f"{folder.name} has no telemetry: it was imported, simulated, or made before it was sampled."
            )
        data = TelemetryData(files)
        summaries = {
            phase.id: (
                summarize_phase_telemetry(recorded, phase, data),
                summarize_server_telemetry(recorded, phase, data),
            )
            for phase in recorded.phases
        }
        if as_json:
            documents.append(_make_telemetry_document(recorded, files, data, summaries))
        else:
            _print_telemetry(recorded, files, data, summaries)
    if as_json:
        print_json(documents)
    return 0


def _make_telemetry_document(
    run: RecordedRun,
    telemetry_files: list[TelemetryFile],
    telemetry: TelemetryData,
    telemetry_by_phase: TelemetryByPhase,
) -> dict[str, Any]:
    return {
        "run": run.folder.name,
        "files": [
            {
                "name": file.name,
                "host": file.host,
                "origin": file.origin,
                "sources": sorted(file.columns),
                "unavailable": file.unavailable,
                "lost": file.lost,
                "unreadable_lines": file.unreadable_lines,
            }
            for file in telemetry_files
        ],
        "storage_state": describe_storage_state(run, telemetry),
        "gaps": describe_telemetry_gaps(run, telemetry),
        "phases": {
            phase: {
                "node": None if node is None else {**asdict(node), "sentences": node.describe_in_sentences()},
                "servers": None
                if servers is None
                else {**asdict(servers), "sentences": servers.describe_in_sentences()},
            }
            for phase, (node, servers) in telemetry_by_phase.items()
        },
    }


def _print_telemetry(
    run: RecordedRun,
    telemetry_files: list[TelemetryFile],
    telemetry: TelemetryData,
    telemetry_by_phase: TelemetryByPhase,
) -> None:
    console = get_results_console()
    console.print(run.title, style="bold")
    table = make_plain_table()
    for title in ("phase", "device", "read", "written", "busy", "queue", "processors", "waiting for I/O"):
        table.add_column(title, justify="left" if title in ("phase", "device") else "right")
    for phase, (summary, _) in telemetry_by_phase.items():
        if summary is None:
            table.add_row(phase, "no samples close enough")
            continue
        target = summary.device.device if summary.device else ""
        for device in (*((summary.device,) if summary.device else ()), *summary.other_devices):
            table.add_row(
                phase,
                device.device if device.device == target else f"{device.device} (not the target)",
                str(display_transferred_bytes(device.read_bytes)),
                str(display_transferred_bytes(device.written_bytes)),
                display_percent(device.busy_fraction),
                f"{device.queue:.1f}",
                _format_fraction(summary.processor_fraction),
                _format_fraction(summary.io_stall_fraction),
            )
    console.print(table)
    sentences = [
        f"{phase}: {sentence}"
        for phase, both in telemetry_by_phase.items()
        for summary in both
        for sentence in (summary.describe_in_sentences() if summary else [])
    ]
    sentences += [*describe_storage_state(run, telemetry), *describe_telemetry_gaps(run, telemetry)]
    for file in telemetry_files:
        sentences += [f"{source} ended during the run: {text}" for source, text in file.lost.items()]
        if file.unavailable:
            names = ", ".join(file.unavailable)
            sentences.append(f"Not sampled on {file.host}: {names}; `sonde telemetry list` says why.")
    for sentence in sentences:
        console.print(sentence, soft_wrap=True)


def _format_fraction(fraction: float | None) -> str:
    return "unknown" if fraction is None else display_percent(fraction)


@command.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run", "run", default="last", show_default=True, help="The run that the counters belong to.")
@click.option("--host", default="", help="The host of the counters, where a file does not name one.")
@click.option("--zone", default="UTC", show_default=True, help="Time zone of times without one: +01:00, Europe/Berlin.")
@add_existing_archive_option
@add_json_option
def import_command(files: tuple[Path, ...], run: str, host: str, zone: str, archive: Archive, as_json: bool) -> int:
    """Add counters of servers and other monitoring programs to RUN, cut to its time.

    The format is detected; `sonde telemetry list` names all of them, and how to make such a file. A file that cannot be
    read is reported, and the others are imported; the exit code is then 1.

    \b
    Examples:
      sonde telemetry import oss1.txt oss2.txt --run last
      sonde telemetry import ost_data.csv --zone America/Los_Angeles
    """
    archive.recover_unfinished_runs()
    (folder,) = archive.find_run_folders(run)[:1]
    interval = find_run_interval(read_recorded_run_folder(folder))
    defaults = TelemetryDefaults(host or "unknown", parse_time_zone(zone))
    imported: list[dict[str, Any]] = []
    problems: list[str] = []
    for path in files:
        try:
            imported += [
                add_telemetry_to_run(folder, file, interval) for file in read_foreign_telemetry(path, defaults)
            ]
        except UserError as reason:
            problems.append(str(reason))
    if as_json:
        print_json({"run": folder.name, "imported": imported, "problems": problems})
    else:
        for entry in imported:
            skipped = f", {entry['unreadable_lines']} lines skipped" if entry["unreadable_lines"] else ""
            get_results_console().print(
                f"{entry['name']}: {entry['samples']} samples of {entry['host']} ({entry['origin']}){skipped}",
                soft_wrap=True,
            )
        for problem in problems:
            get_messages_console().print(f"sonde: {problem}", soft_wrap=True)
    return EXIT_FAILED if problems else EXIT_OK
