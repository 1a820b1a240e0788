# SPDX-License-Identifier: Apache-2.0
"""Results of elbencho as JSON (an object a line and phase) and as CSV (a row a phase).

"last done" is everything over the time until the last thread was done; "first done" is what all had done when the first
one was, over that time. In CSV its rates are whole MiB per second.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.sources.about import About
from sonde.sources.commands import arguments_of, minor

_MIB = 1 << 20
_OPS = {
    "WRITE": "write",
    "READ": "read",
    "STAT": "stat",
    "RMFILES": "remove",
    "RMDIRS": "remove_dirs",
    "MKDIRS": "mkdir",
}
_FILES = ("--jsonfile", "--csvfile", "--resfile", "--livecsv", "--livejson", "--hosts", "--hostsfile", "--label")
# What a phase of the CSV has, and what the JSON calls it.
_CSV_RATES = {"bytes/s": "MiB/s", "iops": "IOPS", "entries/s": "entries/s", "elapsed_time_ms": "time ms"}
_CSV_RATES |= {"entries": "entries", "bytes": "MiB"}
_CSV_FACTORS = {"bytes/s": _MIB, "bytes": _MIB}
_CSV_CONFIG = {"path_type": "path type", "paths": "paths", "hosts": "hosts", "threads": "threads", "dirs": "dirs"}
_CSV_CONFIG |= {"files": "files", "file_size": "file size", "block_size": "block size", "direct_io": "direct IO"}
_CSV_CONFIG |= {"random_offsets": "random", "io_depth": "IO depth", "version": "version", "command": "command"}


def is_json(head: str) -> bool:
    """Whether it is elbencho's JSON."""
    return head.startswith("{") and '"phase_type"' in head and '"last_done"' in head


def is_csv(head: str) -> bool:
    """Whether it is elbencho's CSV."""
    return head.lstrip("\ufeff").startswith("ISO date,label,path type,")


def read_json(text: str, about: About) -> Sequence[ImportedRun]:
    """The runs in elbencho's JSON."""
    return list(_runs([json.loads(line) for line in text.splitlines() if line.strip()], about))


def read_csv(text: str, about: About) -> Sequence[ImportedRun]:
    """The runs in elbencho's CSV."""
    lines = text.splitlines()
    header = next(csv.reader(lines[:1]))
    phases = []
    for line in lines[1:]:
        if line.strip() and not line.startswith("ISO date,"):
            # The last column, the command, is quoted word by word, so it is not one value for a CSV reader.
            values = line.split(",", len(header) - 1)
            phases.append(_like_json(dict(zip(header, values, strict=True))))
    return list(_runs(phases, about))


def _like_json(row: Mapping[str, str]) -> dict[str, Any]:
    config = {name: row[column] for name, column in _CSV_CONFIG.items() if row.get(column)}
    for name in ("direct_io", "random_offsets"):
        config[name] = {"0": "false", "1": "true"}.get(config.get(name, ""), config.get(name, ""))
    phase: dict[str, Any] = {"phase_type": row["operation"], "iso_start_date": row["ISO date"], "config": config}
    for which in ("first", "last"):
        values = {name: row.get(f"{column} [{which}]") for name, column in _CSV_RATES.items()}
        phase[f"{which}_done"] = {
            name: float(value) * _CSV_FACTORS.get(name, 1) for name, value in values.items() if value
        }
    return phase


def _runs(phases: Sequence[Mapping[str, Any]], about: About) -> Iterator[ImportedRun]:
    """Phases of one command belong together until one of them comes again."""
    gathered: list[Mapping[str, Any]] = []
    for phase in phases:
        same = gathered and gathered[0]["config"].get("command") == phase["config"].get("command")
        again = any(one["phase_type"] == phase["phase_type"] for one in gathered)
        if gathered and (not same or again):
            yield _run(gathered, about)
            gathered = []
        gathered.append(phase)
    if not gathered:
        raise ValueError("it has no phases")
    yield _run(gathered, about)


def _run(phases: Sequence[Mapping[str, Any]], about: About) -> ImportedRun:
    config = phases[0]["config"]
    version, command = str(config.get("version", "")), str(config.get("command", "")).strip()
    hosts, threads = (int(config.get(name) or 1) for name in ("hosts", "threads"))
    paths = [word for word in arguments_of(command)[-int(config.get("paths") or 1) :] if not word.startswith("-")]
    not_work = ("version", "command", "paths", "hosts", "threads")
    return ImportedRun(
        tool=f"elbencho {version}".strip(),
        name=f"elbencho-{config.get('path_type', '')}".strip("-"),
        title=f"elbencho: {config.get('path_type', '?')}, {config.get('block_size', '?')} B blocks",
        started=about.moment(datetime.fromisoformat(phases[0]["iso_start_date"])),
        experiment={
            **{str(name): str(value) for name, value in config.items() if name in _CSV_CONFIG and name not in not_work},
            "arguments": _work(command, paths),
        },
        phases=[made for one in phases for made in _phase(one, minor(version))],
        target=paths[0].rpartition("/")[0] if paths and config.get("path_type") != "dir" else (paths or [""])[0],
        tasks=hosts * threads,
        nodes=hosts,
        seconds=sum(float(one["last_done"].get("elapsed_time_ms") or 0) for one in phases) / 1000 or None,
        command=command,
    )


def _work(command: str, paths: Sequence[str]) -> str:
    words = iter(arguments_of(command))
    kept = []
    for word in words:
        if word.split("=", 1)[0] in _FILES:
            if "=" not in word:
                next(words, None)
        elif word not in paths and word not in ("--nolive", "--jsonfile"):
            kept.append(word)
    return " ".join(kept)


def _phase(phase: Mapping[str, Any], version: str) -> Iterator[ImportedPhase]:
    name = str(phase["phase_type"])
    for which in ("last", "first"):
        found = {key: _number(value) for key, value in phase[f"{which}_done"].items()}
        rate = found.get("bytes/s")
        ops = found.get("iops") or found.get("entries/s")
        if not rate and not ops:
            continue
        elapsed = found.get("elapsed_time_ms")
        yield ImportedPhase(
            phase=name.lower(),
            op=_OPS.get(name, name.lower()),
            definition=f"elbencho {version} {which} done",
            bytes_per_s=rate,
            ops_per_s=ops,
            bytes=None if found.get("bytes") is None else round(found["bytes"] or 0),
            seconds=None if elapsed is None else elapsed / 1000,
            also={key: value for key in ("entries", "entries/s", "cpu%") if (value := found.get(key)) is not None},
        )


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
