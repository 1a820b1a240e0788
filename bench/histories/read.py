# SPDX-License-Identifier: Apache-2.0
"""Histories of daily benchmarks from CSV files."""

from __future__ import annotations

import csv
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np

from sonde.trends.history import History

LABELS = ("system", "file_system", "benchmark", "files", "operation")
MIN_RUNS = 100


def read_histories(folder: Path) -> list[History]:
    """The series of at least `MIN_RUNS` runs in all CSV files of `folder`.

    Columns: time_utc (ISO 8601), the labels, rate_GiBps. Rows without a rate are runs that failed. Raises ValueError in
    one sentence when there is nothing of the kind.
    """
    rows: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = {"time_utc", "rate_GiBps", *LABELS} - set(reader.fieldnames or ())
            if missing:
                raise ValueError(f"{path} has no column {', '.join(sorted(missing))}.")
            for row in reader:
                if row["rate_GiBps"] and float(row["rate_GiBps"]) > 0:
                    time = datetime.fromisoformat(row["time_utc"]).timestamp()
                    rows[tuple(row[label] for label in LABELS)].append((time, float(row["rate_GiBps"])))
    histories = [
        _make_history(labels, sorted(values)) for labels, values in sorted(rows.items()) if len(values) >= MIN_RUNS
    ]
    if not histories:
        raise ValueError(f"{folder} holds no CSV file with a series of {MIN_RUNS} runs.")
    return histories


def _make_history(labels: tuple[str, ...], values: list[tuple[float, float]]) -> History:
    times, rates = np.array(values, dtype=float).T
    return History(dict(zip(LABELS, labels, strict=True)), times, rates, "GiB/s")
