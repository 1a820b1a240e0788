# SPDX-License-Identifier: Apache-2.0
"""The archive as histories to watch: repeats of one probe become one value, labels say what was measured where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sonde.stats.spread import summarize_probe
from sonde.store import history as stored_history
from sonde.trends.history import History

ProbeValue = Literal["delivered", "capability"]
UNITS = {"bytes_per_s": "bytes/s", "ops_per_s": "op/s"}


def join_repeats(stored: Sequence[stored_history.Series], kind: ProbeValue = "delivered") -> list[History]:
    """The stored histories, the repeats of each probe (runs of one group) joined: their median is what users get
    ("delivered"), the best ones tell what the system can do ("capability")."""
    return [_convert_to_history(history, kind) for history in stored]


def _convert_to_history(item: stored_history.Series, kind: ProbeValue) -> History:
    key = item.key
    labels = {
        "system": key.system,
        "file_system": key.file_system,
        "experiment": item.plan or key.plan_hash,
        "phase": key.phase,
        "operation": key.op,
        "cache": key.cache,
        "plan_hash": key.plan_hash,
        "node_class": key.node_class,
        "epoch": key.epoch,
        "history": key.id,
    }
    groups = list(item.groups)
    if not any(groups):
        return History(labels, item.times, item.values, UNITS.get(key.unit, key.unit), item.runs)
    places: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        places.setdefault(group or f" {index}", []).append(index)
    probes = [(rows, summarize_probe(item.values[rows])) for rows in places.values()]
    times = np.array([float(item.times[rows[0]]) for rows, _ in probes])
    values = np.array([getattr(result, kind) for _, result in probes], dtype=float)
    order = np.argsort(times, kind="stable")
    runs = tuple(item.runs[probes[index][0][0]] for index in order)
    return History(labels, times[order], values[order], UNITS.get(key.unit, key.unit), runs)
