# SPDX-License-Identifier: Apache-2.0
"""Results of elbencho as JSON (an object a line and phase) and as CSV (a row a phase); its text: `elbencho_text`.

"last done" is everything over the time until the last thread was done; "first done" is what all had done when the first
one was, over that time. In CSV its rates are whole MiB per second.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sonde.model.documents import parse_json
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import shorten_to_minor_version, split_arguments
from sonde.sources.import_defaults import ImportDefaults

_MIB = 1 << 20
_OPERATIONS_BY_PHASE = {
    "WRITE": "write",
    "READ": "read",
    "STAT": "stat",
    "RMFILES": "remove",
    "RMDIRS": "remove_dirs",
    "MKDIRS": "mkdir",
}
_IGNORED_OPTIONS = (
    "--jsonfile",
    "--csvfile",
    "--resfile",
    "--livecsv",
    "--livejson",
    "--hosts",
    "--hostsfile",
    "--label",
)
# What a phase of the CSV has, and what the JSON calls it.
_CSV_RATES = {"bytes/s": "MiB/s", "iops": "IOPS", "entries/s": "entries/s", "elapsed_time_ms": "time ms"}
_CSV_RATES |= {"entries": "entries", "bytes": "MiB"}
_CSV_FACTORS = {"bytes/s": _MIB, "bytes": _MIB}
_CSV_CONFIG = {"path_type": "path type", "paths": "paths", "hosts": "hosts", "threads": "threads", "dirs": "dirs"}
_CSV_CONFIG |= {"files": "files", "file_size": "file size", "block_size": "block size", "direct_io": "direct IO"}
_CSV_CONFIG |= {"random_offsets": "random", "io_depth": "IO depth", "version": "version", "command": "command"}


def is_elbencho_json(file_head: str) -> bool:
    """Whether it is elbencho's JSON."""
    return file_head.startswith("{") and '"phase_type"' in file_head and '"last_done"' in file_head


def is_elbencho_csv(file_head: str) -> bool:
    """Whether it is elbencho's CSV."""
    return file_head.lstrip("\ufeff").startswith("ISO date,label,path type,")


def read_elbencho_json(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in elbencho's JSON."""
    return list(
        group_phases_into_runs([parse_json(line) for line in result_text.splitlines() if line.strip()], import_defaults)
    )


def read_elbencho_csv(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The runs in elbencho's CSV."""
    lines = result_text.splitlines()
    header = next(csv.reader(lines[:1]))
    phases = []
    for line in lines[1:]:
        if line.strip() and not line.startswith("ISO date,"):
            # The last column, the command, is quoted word by word, so it is not one value for a CSV reader.
            values = line.split(",", len(header) - 1)
            phases.append(_convert_csv_row(dict(zip(header, values, strict=True))))
    return list(group_phases_into_runs(phases, import_defaults))


def _convert_csv_row(csv_row: Mapping[str, str]) -> dict[str, Any]:
    config = {name: csv_row[column] for name, column in _CSV_CONFIG.items() if csv_row.get(column)}
    for name in ("direct_io", "random_offsets"):
        config[name] = {"0": "false", "1": "true"}.get(config.get(name, ""), config.get(name, ""))
    phase: dict[str, Any] = {
        "phase_type": csv_row["operation"],
        "iso_start_date": csv_row["ISO date"],
        "config": config,
    }
    for variant in ("first", "last"):
        values = {name: csv_row.get(f"{column} [{variant}]") for name, column in _CSV_RATES.items()}
        phase[f"{variant}_done"] = {
            name: float(value) * _CSV_FACTORS.get(name, 1) for name, value in values.items() if value
        }
    return phase


def group_phases_into_runs(
    phase_results: Sequence[Mapping[str, Any]], import_defaults: ImportDefaults
) -> Iterator[ImportedRun]:
    """Phases of one command belong together until one of them comes again."""
    phases_of_run: list[Mapping[str, Any]] = []
    for phase in phase_results:
        is_same_command = phases_of_run and phases_of_run[0]["config"].get("command") == phase["config"].get("command")
        is_repeated = any(earlier["phase_type"] == phase["phase_type"] for earlier in phases_of_run)
        if phases_of_run and (not is_same_command or is_repeated):
            yield _build_run(phases_of_run, import_defaults)
            phases_of_run = []
        phases_of_run.append(phase)
    if not phases_of_run:
        raise ValueError("it has no phases")
    yield _build_run(phases_of_run, import_defaults)


def _build_run(phase_results: Sequence[Mapping[str, Any]], import_defaults: ImportDefaults) -> ImportedRun:
    config = phase_results[0]["config"]
    version, command = str(config.get("version", "")), str(config.get("command", "")).strip()
    hosts, threads = (int(config.get(name) or 1) for name in ("hosts", "threads"))
    paths = [word for word in split_arguments(command)[-int(config.get("paths") or 1) :] if not word.startswith("-")]
    excluded = ("version", "command", "paths", "hosts", "threads")
    return ImportedRun(
        tool=f"elbencho {version}".strip(),
        name=f"elbencho-{config.get('path_type', '')}".strip("-"),
        title=f"elbencho: {config.get('path_type', '?')}, {config.get('block_size', '?')} B blocks",
        started=import_defaults.convert_to_utc(datetime.fromisoformat(phase_results[0]["iso_start_date"])),
        experiment={
            **{str(name): str(value) for name, value in config.items() if name in _CSV_CONFIG and name not in excluded},
            "arguments": _select_work_arguments(command, paths),
        },
        phases=[
            imported_phase
            for phase in phase_results
            for imported_phase in _build_phases(phase, shorten_to_minor_version(version))
        ],
        target=paths[0].rpartition("/")[0] if paths and config.get("path_type") != "dir" else (paths or [""])[0],
        tasks=hosts * threads,
        nodes=hosts,
        seconds=sum(float(phase["last_done"].get("elapsed_time_ms") or 0) for phase in phase_results) / 1000 or None,
        command=command,
    )


def _select_work_arguments(command_line: str, benchmark_paths: Sequence[str]) -> str:
    arguments = iter(split_arguments(command_line))
    selected = []
    for argument in arguments:
        if argument.split("=", 1)[0] in _IGNORED_OPTIONS:
            if "=" not in argument:
                next(arguments, None)
        elif argument not in benchmark_paths and argument not in ("--nolive", "--jsonfile"):
            selected.append(argument)
    return " ".join(selected)


def _build_phases(phase_document: Mapping[str, Any], elbencho_version: str) -> Iterator[ImportedPhase]:
    name = str(phase_document["phase_type"])
    for variant in ("last", "first"):
        values = {key: _convert_to_number(value) for key, value in phase_document[f"{variant}_done"].items()}
        rate = values.get("bytes/s")
        ops = values.get("iops") or values.get("entries/s")
        if not rate and not ops:
            continue
        elapsed = values.get("elapsed_time_ms")
        yield ImportedPhase(
            phase=name.lower(),
            op=_OPERATIONS_BY_PHASE.get(name, name.lower()),
            definition=" ".join(f"elbencho {elbencho_version} {variant} done".split()),
            bytes_per_s=rate,
            ops_per_s=ops,
            bytes=None if values.get("bytes") is None else round(values["bytes"] or 0),
            seconds=None if elapsed is None else elapsed / 1000,
            also={key: value for key in ("entries", "entries/s", "cpu%") if (value := values.get(key)) is not None},
        )


def _convert_to_number(json_value: Any) -> float | None:
    try:
        return float(json_value)
    except (TypeError, ValueError):
        return None
