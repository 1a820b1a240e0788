# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for tests of tuning: a setting in a file, and storage whose speed depends on it."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from sonde.model.plan import Plan
from sonde.tune.description import Tunable
from sonde.tune.tuning import TuneVariant

PRESENT = "8"


def make_file_tunable(file: Path, name: str = "knob", values: tuple[str, ...] = ("1", "16", "64")) -> Tunable:
    """A setting that commands read from and write to a file."""
    return Tunable(
        id=name,
        title="a knob",
        kind="command",
        read=("sh", "-c", f"echo knob=$(cat {file})"),
        write=("sh", "-c", f"echo {{value}} > {file}"),
        values=values,
    )


def make_plan(folder: Path) -> Plan:
    document = {
        "schema": "sonde-plan/2",
        "id": "knob",
        "target": {"path": str(folder)},
        "data": {"access": {"transfer": "64KiB", "volume": "1MiB"}},
        "phases": [{"id": "write", "op": "write"}],
    }
    return Plan.from_document(document, "test")


@dataclass
class FileRunner:
    """Its rate is that of the value in the file, times those of the plan's transfer sizes."""

    file: Path
    rates: dict[str, float]
    transfers: dict[str, float] = field(default_factory=dict)
    simulated: bool = False
    expected: int = 0
    delay_s: float = 0.0
    measured: list[tuple[str, str]] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(5))

    def measure_variant(self, variant: TuneVariant) -> float:
        time.sleep(self.delay_s)
        value = self.file.read_text(encoding="utf-8").strip()
        transfer = str(variant.plan.document["data"]["access"]["transfer"])
        self.measured.append((value, transfer))
        effect = self.rates.get(value, 1.0) * self.transfers.get(transfer, 1.0)
        return 1e8 * effect * math.exp(self.random.gauss(0, 0.02))
