# SPDX-License-Identifier: Apache-2.0
"""What the columns of a CSV file probably mean, by their names: a proposal for people, never a decision."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAMES = (
    ("time", r"(start|begin|began|date|time|timestamp)(_?(time|utc|s))*"),
    ("system", r"system|machine|cluster"),
    ("file_system", r"file_?system|fs"),
    ("op", r"op|operation|access|direction|mode"),
    ("tasks", r"tasks|n?_?procs|processes|ranks|np|nprocs|ntasks"),
    ("nodes", r"n?_?nodes|hosts"),
    ("experiment", r"experiment|benchmark|test|app|application|files|api|transfer(_size)?|workload"),
)
_RATE = re.compile(
    r"(?:.*_)?(?:rate|bw|bandwidth|throughput|perf)(?:[_ (\[]*([kKMGT]i?B)(?:ps|_?/?s|_per_s)?[)\]]?)?", re.I
)
_UNITS = {unit.lower(): unit for unit in ("kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")}


def guess(header: Sequence[str]) -> list[str]:
    """Settings for --map that the names of the columns suggest; empty when neither time nor rate can be told."""
    found: dict[str, list[str]] = {}
    for column in header:
        plain = column.strip().lower().replace(" ", "_").replace("-", "_")
        meaning = next((meaning for meaning, names in _NAMES if re.fullmatch(names, plain)), "")
        if meaning and (meaning == "experiment" or meaning not in found):
            found.setdefault(meaning, []).append(column)
        elif "rate" not in found and (rate := _RATE.fullmatch(column.strip())):
            unit = _UNITS.get((rate[1] or "").lower())
            found["rate"] = [f"{column} {unit}/s" if unit else f"{column} UNIT"]
    if not {"time", "rate"} <= set(found):
        return []
    return [f"{meaning}={column}" for meaning, columns in found.items() for column in columns]
