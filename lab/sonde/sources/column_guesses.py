# SPDX-License-Identifier: Apache-2.0
"""Guesses the meaning of CSV columns from their names, as a proposal for the user."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME_PATTERNS = (
    ("time", r"(start|begin|began|date|time|timestamp)(_?(time|utc|s))*"),
    ("system", r"system|machine|cluster"),
    ("file_system", r"file_?system|fs"),
    ("op", r"op|operation|access|direction|mode"),
    ("tasks", r"tasks|n?_?procs|processes|ranks|np|nprocs|ntasks"),
    ("nodes", r"n?_?nodes|hosts"),
    ("experiment", r"experiment|benchmark|test|app|application|files|api|transfer(_size)?|workload"),
)
_RATE_COLUMN_NAME_PATTERN = re.compile(
    r"(?:.*_)?(?:rate|bw|bandwidth|throughput|perf)(?:[_ (\[]*([kKMGT]i?B)(?:ps|_?/?s|_per_s)?[)\]]?)?", re.I
)
_BYTE_UNITS = {unit.lower(): unit for unit in ("kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")}


def guess_column_map(column_names: Sequence[str]) -> list[str]:
    """Returns proposed settings for --map; empty when no column of time or no column of a rate is recognized."""
    columns_by_meaning: dict[str, list[str]] = {}
    for column in column_names:
        normalized = column.strip().lower().replace(" ", "_").replace("-", "_")
        meaning = next((meaning for meaning, names in _NAME_PATTERNS if re.fullmatch(names, normalized)), "")
        if meaning and (meaning == "experiment" or meaning not in columns_by_meaning):
            columns_by_meaning.setdefault(meaning, []).append(column)
        elif "rate" not in columns_by_meaning and (rate := _RATE_COLUMN_NAME_PATTERN.fullmatch(column.strip())):
            unit = _BYTE_UNITS.get((rate[1] or "").lower())
            columns_by_meaning["rate"] = [f"{column} {unit}/s" if unit else f"{column} UNIT"]
    if not {"time", "rate"} <= set(columns_by_meaning):
        return []
    return [f"{meaning}={column}" for meaning, columns in columns_by_meaning.items() for column in columns]
