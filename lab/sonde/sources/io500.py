# SPDX-License-Identifier: Apache-2.0
"""Results of IO500: what it prints (also result_summary.txt), and result.txt with more.

Bandwidths are in GiB/s (2^30), the others in thousands of operations per second. The shell script of 2017 to 2019 wrote
"GB/s" above the same unit: in all of 138 published results of that form, IOR's own MiB/s are 1,024 times as large. Runs
and phases that IO500 marked as invalid stay marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import parse_clock_time
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.tool_messages import find_tool_messages

# 2017 to 2019: [RESULT] BW   phase 1            ior_easy_write              267.915 GB/s : time 320.25 seconds
_RESULT_LINE_PATTERN = re.compile(
    r"^\[RESULT(?:-invalid)?\s*\]\s+(?:(?:BW|IOPS)\s+phase\s+\d+\s+)?(\S+)\s+([\d.]+)\s+(\S+)\s*: time\s+([\d.]+)"
    r" seconds\s*(\[INVALID\])?",
    re.MULTILINE,
)
_SCORE_LINE_PATTERN = re.compile(
    r"^\[SCORE ?(?:INVALID)?\s*\] Bandwidth ([\d.]+) \S+\s*: IOPS ([\d.]+) \S+\s*: TOTAL ([\d.]+)(.*)$", re.MULTILINE
)
_OP_BY_ENDING = {"write": "write", "read": "read", "stat": "stat", "delete": "remove", "find": "find"}


def is_io500_summary(file_head: str) -> bool:
    """Whether it is what IO500 prints."""
    return (
        re.search(r"^\[RESULT\S*\s*\]\s+(?:BW\s+phase\s+\d+\s+)?ior[-_]easy[-_]write\s", file_head, re.MULTILINE)
        is not None
    )


def is_io500_result(file_head: str) -> bool:
    """Whether it is result.txt."""
    return (
        "[ior-easy-write]" in file_head
        and re.search(r"^[ \t]*(?:t_start|score)\s*=", file_head, re.MULTILINE) is not None
    )


def read_io500_summary(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The run in what IO500 printed. The output contains no time, so the time of the file or of its folder is used."""
    version = re.search(r"^IO500 version (\S+)(?: \((\S+)\))?", result_text, re.MULTILINE)
    rows = [
        {"phase": name.replace("_", "-"), "score": float(value), "t_delta": float(seconds), "invalid": bool(mark)}
        for name, value, _, seconds, mark in _RESULT_LINE_PATTERN.findall(result_text)
    ]
    score = _SCORE_LINE_PATTERN.search(result_text)
    context: dict[str, Any] = {}
    if score:
        context = {"bandwidth": float(score[1]), "iops": float(score[2]), "score": float(score[3])}
    invalid = "INVALID" in (score[0] if score else "")
    mode = version[2] if version and version[2] else "standard"
    return [_build_run(rows, version[1] if version else "", mode, context, invalid, result_text, import_defaults, None)]


def read_io500_result(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The run in result.txt."""
    sections: dict[str, dict[str, str]] = {"": {}}
    section = ""
    invalid_phases: set[str] = set()
    for line in result_text.splitlines():
        stripped = line.strip()
        if heading := re.fullmatch(r"\[(.+)\]", stripped):
            section = heading[1]
            sections.setdefault(section, {})
        elif stripped.startswith(";"):
            invalid_phases |= {section} if "INVALID" in stripped else set()
        elif "=" in stripped:
            name, _, value = stripped.partition("=")
            sections[section][name.strip()] = value.strip()
    rows = [
        {
            "phase": name,
            "score": float(values["score"]),
            "t_delta": float(values.get("t_delta", 0)),
            "exe": values.get("exe", ""),
        }
        | {"invalid": name in invalid_phases}
        for name, values in sections.items()
        if "score" in values and name.lower() not in ("score", "scorex")
    ]
    top = {**sections[""], **sections.get("run", {})}
    version, _, mode = top.get("version", "").partition(" ")
    mode = top.get("mode", mode.strip("()")) or "standard"
    starts = [values["t_start"] for values in sections.values() if "t_start" in values]
    total = sections.get("SCORE", {})
    key_by_name = {"bandwidth": "BW", "iops": "MD", "score": "SCORE"}
    # A score that breaks the rules is followed by a mark.
    context = {name: float(total[key].split()[0]) for name, key in key_by_name.items() if key in total}
    invalid = bool(invalid_phases) or "INVALID" in total.get("SCORE", "")
    started = parse_clock_time(starts[0]) if starts else None
    run = _build_run(rows, version, mode, context, invalid, result_text, import_defaults, started)
    return [replace(run, tasks=int(top["procs"])) if top.get("procs", "").isdigit() else run]


def _build_run(
    phase_rows: Sequence[Mapping[str, Any]],
    io500_version: str,
    mode: str,
    run_context: Mapping[str, Any],
    is_result_invalid: bool,
    result_text: str,
    import_defaults: ImportDefaults,
    start_time: Any,
) -> ImportedRun:
    if not phase_rows:
        raise ValueError("it has no results")
    invalid_finding = {"id": "io500_invalid", "severity": "invalid", "text": "IO500 marks this run as invalid."}
    is_invalid = is_result_invalid or any(row["invalid"] for row in phase_rows)
    findings = [
        finding for finding in find_tool_messages(result_text.replace(";", "")) if finding["severity"] != "invalid"
    ]
    commands = {str(row["phase"]): row["exe"] for row in phase_rows if row.get("exe")}
    return ImportedRun(
        tool=f"IO500 {io500_version}".strip(),
        name=f"io500-{mode}",
        title=f"IO500 {io500_version} ({mode})",
        started=import_defaults.convert_to_utc(start_time),
        experiment={"version": io500_version, "mode": mode},
        phases=list(_build_phases(phase_rows, io500_version)),
        seconds=sum(float(row["t_delta"]) for row in phase_rows) or None,
        context={**run_context, **({"commands": commands} if commands else {})},
        findings=[*([invalid_finding] if is_invalid else []), *findings],
    )


def _build_phases(phase_rows: Sequence[Mapping[str, Any]], io500_version: str) -> Iterator[ImportedPhase]:
    for row in phase_rows:
        name = str(row["phase"])
        is_transfer = name.startswith("ior-")
        yield ImportedPhase(
            phase=name,
            op=next((op for ending, op in _OP_BY_ENDING.items() if name.endswith(ending)), name.rpartition("-")[2]),
            definition=f"IO500 {io500_version} {'GiB/s' if is_transfer else 'kIOPS'}".replace("  ", " "),
            bytes_per_s=row["score"] * 2**30 if is_transfer else None,
            ops_per_s=None if is_transfer else row["score"] * 1000,
            seconds=float(row["t_delta"]) or None,
            done=not row["invalid"],
        )
