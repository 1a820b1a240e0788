# SPDX-License-Identifier: Apache-2.0
"""Reads files of other monitoring programs and adds their counters to a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError, UserError
from sonde.telemetry.file_format import SAMPLED_FILE, TelemetryFile, write_telemetry
from sonde.telemetry.imports import TelemetryDefaults, cut_to_interval
from sonde.telemetry.list import TELEMETRY_FORMATS

_MAX_FILE_BYTES = 1 << 30
_HEAD_CHARACTERS = 1 << 16


def read_foreign_telemetry(path: Path, defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters in a file of another program. Raises UserError when it is of no known format, or damaged."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise UserError(f"{path} is larger than {_MAX_FILE_BYTES >> 30} GiB; cut it to the time of the run first.")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    head = text[:_HEAD_CHARACTERS]
    chosen = next((candidate for candidate in TELEMETRY_FORMATS if candidate.matches(head)), None)
    if chosen is None:
        names = "; ".join(candidate.description for candidate in TELEMETRY_FORMATS)
        raise UserError(f"{path} holds no counters in a known format. Known are: {names}.")
    try:
        return list(chosen.read(text, defaults))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as problem:
        reason = str(problem) if isinstance(problem, ValueError) and str(problem) else "it is damaged"
        raise UserError(f"{path} looks like {chosen.name}, but cannot be read: {reason}.") from None


def add_telemetry(folder: Path, file: TelemetryFile, interval: tuple[float, float]) -> dict[str, Any]:
    """Stores the samples of the interval (seconds since 1970-01-01 UTC) in the folder of a run, and describes them.

    Raises UserError when no sample is from that time, and MachineError when the folder cannot be written.
    """
    cut = cut_to_interval([file], *interval)
    if not cut:
        first, last = file.samples[0].time, file.samples[-1].time
        raise UserError(
            f"The counters of {file.host} do not overlap with the run: they end {interval[0] - last:,.0f} s before it."
            if last < interval[0]
            else f"The counters of {file.host} do not overlap with the run: they begin {first - interval[1]:,.0f} s"
            " after it."
        )
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", file.name)[:80]
    name = f"{SAMPLED_FILE.removesuffix('.ndjson')}-{plain}.ndjson"
    try:
        with ConfinedDirectory.beneath(folder.parent, folder) as directory:
            directory.write_bytes(name, b"".join(write_telemetry(cut[0])))
    except OSError as error:
        raise MachineError(f"The run {folder.name} cannot be written: {error.strerror}.") from None
    return {
        "name": name,
        "host": file.host,
        "origin": file.origin,
        "samples": len(cut[0].samples),
        "unreadable_lines": file.unreadable_lines,
    }
