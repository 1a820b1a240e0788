# SPDX-License-Identifier: Apache-2.0
"""Reads files of other monitoring programs and adds their counters to a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError, UserError
from sonde.telemetry.file_format import SAMPLED_FILE, TelemetryFile, encode_telemetry_lines
from sonde.telemetry.imports import TelemetryDefaults, cut_files_to_interval
from sonde.telemetry.list import TELEMETRY_FORMATS

_MAX_FILE_BYTES = 1 << 30
_FORMAT_DETECTION_CHARACTERS = 1 << 16


def read_foreign_telemetry(foreign_file: Path, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters in a file of another program. Raises UserError when it is of no known format, or damaged."""
    try:
        if foreign_file.stat().st_size > _MAX_FILE_BYTES:
            raise UserError(
                f"{foreign_file} is larger than {_MAX_FILE_BYTES >> 30} GiB; cut it to the time of the run first."
            )
        text = foreign_file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{foreign_file} cannot be read: {error.strerror}.") from None
    head = text[:_FORMAT_DETECTION_CHARACTERS]
    chosen = next((candidate for candidate in TELEMETRY_FORMATS if candidate.matches(head)), None)
    if chosen is None:
        names = "; ".join(candidate.description for candidate in TELEMETRY_FORMATS)
        raise UserError(f"{foreign_file} holds no counters in a known format. Known are: {names}.")
    try:
        return list(chosen.read(text, telemetry_defaults))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as problem:
        reason = str(problem) if isinstance(problem, ValueError) and str(problem) else "it is damaged"
        raise UserError(f"{foreign_file} looks like {chosen.name}, but cannot be read: {reason}.") from None


def add_telemetry_to_run(
    run_folder: Path, telemetry_file: TelemetryFile, kept_interval: tuple[float, float]
) -> dict[str, Any]:
    """Stores the samples of the interval (seconds since 1970-01-01 UTC) in the folder of a run, and describes them.

    Raises UserError when no sample is from that time, and MachineError when the folder cannot be written.
    """
    cut = cut_files_to_interval([telemetry_file], *kept_interval)
    if not cut:
        first, last = telemetry_file.samples[0].time, telemetry_file.samples[-1].time
        raise UserError(
            f"The counters of {telemetry_file.host} do not overlap with the run: they end "
            f"{kept_interval[0] - last:,.0f} s before it."
            if last < kept_interval[0]
            else f"The counters of {telemetry_file.host} do not overlap with the run: they begin "
            f"{first - kept_interval[1]:,.0f} s"
            " after it."
        )
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", telemetry_file.name)[:80]
    name = f"{SAMPLED_FILE.removesuffix('.ndjson')}-{plain}.ndjson"
    try:
        with ConfinedDirectory.open_beneath(run_folder.parent, run_folder) as directory:
            directory.write_bytes(name, b"".join(encode_telemetry_lines(cut[0])))
    except OSError as error:
        raise MachineError(f"The run {run_folder.name} cannot be written: {error.strerror}.") from None
    return {
        "name": name,
        "host": telemetry_file.host,
        "origin": telemetry_file.origin,
        "samples": len(cut[0].samples),
        "unreadable_lines": telemetry_file.unreadable_lines,
    }
