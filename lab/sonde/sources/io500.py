# SPDX-License-Identifier: Apache-2.0
"""Results of IO500: what it prints (also result_summary.txt), and result.txt with more.

Bandwidths are in GiB/s (2^30), the others in thousands of operations per second. A run that breaks the rules, or a
phase that does, stays marked as it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.sources.about import About
from sonde.sources.commands import clock_time
from sonde.sources.messages import findings_of

_RESULT = re.compile(
    r"^\[RESULT(?:-invalid)?\s*\]\s+(\S+)\s+([\d.]+)\s+(\S+)\s*: time ([\d.]+) seconds\s*(\[INVALID\])?", re.MULTILINE
)
_SCORE = re.compile(
    r"^\[SCORE ?(?:INVALID)?\s*\] Bandwidth ([\d.]+) \S+\s*: IOPS ([\d.]+) \S+\s*: TOTAL ([\d.]+)(.*)$", re.MULTILINE
)
_ENDINGS = {"write": "write", "read": "read", "stat": "stat", "delete": "remove", "find": "find"}


def is_summary(head: str) -> bool:
    """Whether it is what IO500 prints."""
    return re.search(r"^\[RESULT\S*\s*\]\s+ior-easy-write\s", head, re.MULTILINE) is not None


def is_result(head: str) -> bool:
    """Whether it is result.txt."""
    return "[ior-easy-write]" in head and re.search(r"^\s*t_start\s*=", head, re.MULTILINE) is not None


def read_summary(text: str, about: About) -> Sequence[ImportedRun]:
    """The run in what IO500 printed. It holds no time: that of the file counts, or of the folder it lies in."""
    version = re.search(r"^IO500 version (\S+)(?: \((\S+)\))?", text, re.MULTILINE)
    rows = [
        {"phase": name, "score": float(value), "t_delta": float(seconds), "invalid": bool(mark)}
        for name, value, _, seconds, mark in _RESULT.findall(text)
    ]
    score = _SCORE.search(text)
    context: dict[str, Any] = {}
    if score:
        context = {"bandwidth": float(score[1]), "iops": float(score[2]), "score": float(score[3])}
    invalid = "INVALID" in (score[0] if score else "")
    mode = version[2] if version and version[2] else "standard"
    return [_run(rows, version[1] if version else "", mode, context, invalid, text, about, None)]


def read_result(text: str, about: About) -> Sequence[ImportedRun]:
    """The run in result.txt."""
    sections: dict[str, dict[str, str]] = {"": {}}
    here = ""
    invalid_phases: set[str] = set()
    for line in text.splitlines():
        plain = line.strip()
        if found := re.fullmatch(r"\[(.+)\]", plain):
            here = found[1]
            sections.setdefault(here, {})
        elif plain.startswith(";"):
            invalid_phases |= {here} if "INVALID" in plain else set()
        elif "=" in plain:
            name, _, value = plain.partition("=")
            sections[here][name.strip()] = value.strip()
    rows = [
        {
            "phase": name,
            "score": float(said["score"]),
            "t_delta": float(said.get("t_delta", 0)),
            "exe": said.get("exe", ""),
        }
        | {"invalid": name in invalid_phases}
        for name, said in sections.items()
        if "score" in said and name.lower() not in ("score", "scorex")
    ]
    top = {**sections[""], **sections.get("run", {})}
    version, _, mode = top.get("version", "").partition(" ")
    mode = top.get("mode", mode.strip("()")) or "standard"
    starts = [said["t_start"] for said in sections.values() if "t_start" in said]
    total = sections.get("SCORE", {})
    names = {"bandwidth": "BW", "iops": "MD", "score": "SCORE"}
    # A score that breaks the rules is followed by a mark.
    context = {name: float(total[key].split()[0]) for name, key in names.items() if key in total}
    invalid = bool(invalid_phases) or "INVALID" in total.get("SCORE", "")
    began = clock_time(starts[0]) if starts else None
    run = _run(rows, version, mode, context, invalid, text, about, began)
    return [replace(run, tasks=int(top["procs"])) if top.get("procs", "").isdigit() else run]


def _run(
    rows: Sequence[Mapping[str, Any]],
    version: str,
    mode: str,
    context: Mapping[str, Any],
    invalid: bool,
    text: str,
    about: About,
    began: Any,
) -> ImportedRun:
    if not rows:
        raise ValueError("it has no results")
    mark = {"id": "io500_invalid", "severity": "invalid", "text": "IO500 marks this run as invalid."}
    broken = invalid or any(row["invalid"] for row in rows)
    said = [one for one in findings_of(text.replace(";", "")) if one["severity"] != "invalid"]
    commands = {str(row["phase"]): row["exe"] for row in rows if row.get("exe")}
    return ImportedRun(
        tool=f"IO500 {version}".strip(),
        name=f"io500-{mode}",
        title=f"IO500 {version} ({mode})",
        started=about.moment(began),
        experiment={"version": version, "mode": mode},
        phases=list(_phases(rows, version)),
        seconds=sum(float(row["t_delta"]) for row in rows) or None,
        context={**context, **({"commands": commands} if commands else {})},
        findings=[*([mark] if broken else []), *said],
    )


def _phases(rows: Sequence[Mapping[str, Any]], version: str) -> Iterator[ImportedPhase]:
    for row in rows:
        name = str(row["phase"])
        moves = name.startswith("ior-")
        yield ImportedPhase(
            phase=name,
            op=next((op for ending, op in _ENDINGS.items() if name.endswith(ending)), name.rpartition("-")[2]),
            definition=f"IO500 {version} {'GiB/s' if moves else 'kIOPS'}".replace("  ", " "),
            bytes_per_s=row["score"] * 2**30 if moves else None,
            ops_per_s=None if moves else row["score"] * 1000,
            seconds=float(row["t_delta"]) or None,
            done=not row["invalid"],
        )
