# SPDX-License-Identifier: Apache-2.0
"""Converts the archive to histories: repeats of one probe become one value, and labels state what was measured and
where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sonde.stats.spread import summarize_probe
from sonde.store import history as stored_history
from sonde.trends.history import History

ProbeValue = Literal["delivered", "capability"]
UNITS_BY_MEMBER = {"bytes_per_s": "bytes/s", "ops_per_s": "op/s"}


def merge_repeats_into_histories(
    stored_histories: Sequence[stored_history.StoredHistory], probe_value: ProbeValue = "delivered"
) -> list[History]:
    """The stored histories, the repeats of each probe (runs of one group) joined: their median is what users get
    ("delivered"), the best ones tell what the system can do ("capability")."""
    return [_convert_to_history(history, probe_value) for history in stored_histories]


def _convert_to_history(stored_history_of_key: stored_history.StoredHistory, probe_value: ProbeValue) -> History:
    key = stored_history_of_key.key
    labels = {
        "system": key.system,
        "file_system": key.file_system,
        "experiment": stored_history_of_key.plan or key.plan_hash,
        "phase": key.phase,
        "operation": key.op,
        "cache": key.cache,
        "plan_hash": key.plan_hash,
        "node_class": key.node_class,
        "epoch": key.epoch,
        "history": key.id,
    }
    groups = list(stored_history_of_key.groups)
    if not any(groups):
        return History(
            labels,
            stored_history_of_key.times,
            stored_history_of_key.values,
            UNITS_BY_MEMBER.get(key.unit, key.unit),
            stored_history_of_key.runs,
        )
    places: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        places.setdefault(group or f" {index}", []).append(index)
    probes = [(rows, summarize_probe(stored_history_of_key.values[rows])) for rows in places.values()]
    times = np.array([float(stored_history_of_key.times[rows[0]]) for rows, _ in probes])
    values = np.array([getattr(result, probe_value) for _, result in probes], dtype=float)
    order = np.argsort(times, kind="stable")
    runs = tuple(stored_history_of_key.runs[probes[index][0][0]] for index in order)
    return History(labels, times[order], values[order], UNITS_BY_MEMBER.get(key.unit, key.unit), runs)
