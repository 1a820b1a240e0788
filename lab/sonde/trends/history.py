# SPDX-License-Identifier: Apache-2.0
"""The archive as histories to watch: repeats of one probe become one value, labels say what was measured where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sonde.stats.spread import probe
from sonde.store import history
from sonde.trends.series import Series

Kind = Literal["delivered", "capability"]
UNITS = {"bytes_per_s": "bytes/s", "ops_per_s": "op/s"}


def watched(stored: Sequence[history.Series], kind: Kind = "delivered") -> list[Series]:
    """The stored series, the repeats of each probe (runs of one group) joined: their median is what users get
    ("delivered"), the best ones tell what the system can do ("capability")."""
    return [_joined(one, kind) for one in stored]


def _joined(one: history.Series, kind: Kind) -> Series:
    key = one.key
    labels = {
        "system": key.system,
        "file_system": key.file_system,
        "experiment": one.plan or key.plan_hash,
        "phase": key.phase,
        "operation": key.op,
        "cache": key.cache,
        "plan_hash": key.plan_hash,
        "node_class": key.node_class,
        "epoch": key.epoch,
        "series": key.id,
    }
    groups = list(one.groups)
    if not any(groups):
        return Series(labels, one.times, one.values, UNITS.get(key.unit, key.unit), one.runs)
    places: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        places.setdefault(group or f" {at}", []).append(at)
    probes = [(rows, probe(one.values[rows])) for rows in places.values()]
    times = np.array([float(one.times[rows[0]]) for rows, _ in probes])
    values = np.array([getattr(found, kind) for _, found in probes], dtype=float)
    order = np.argsort(times, kind="stable")
    runs = tuple(one.runs[probes[at][0][0]] for at in order)
    return Series(labels, times[order], values[order], UNITS.get(key.unit, key.unit), runs)
