# SPDX-License-Identifier: Apache-2.0
"""Whether other programs and other virtual machines leave the processors alone, before a trial begins."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from sonde.telemetry.sources.processors import parse_processor_times

_SAMPLE_S = 2.0
# A machine is at rest below these shares of its processor time.
_MAX_BUSY_FRACTION, _MAX_STOLEN_FRACTION = 0.25, 0.02


@dataclass(frozen=True)
class MachineIdleness:
    """Shares of all processor time that programs used and that the hypervisor gave to others, and the load average."""

    busy_fraction: float
    stolen_fraction: float
    load_average: float

    @property
    def is_at_rest(self) -> bool:
        return self.busy_fraction < _MAX_BUSY_FRACTION and self.stolen_fraction < _MAX_STOLEN_FRACTION

    def describe(self) -> str:
        """Returns one phrase for the result of a trial."""
        verdict = "the machine was at rest" if self.is_at_rest else "the machine was not at rest"
        return (
            f"{verdict}: {self.busy_fraction:.0%} busy, {self.stolen_fraction:.0%} stolen,"
            f" load average {self.load_average:.1f}"
        )


def measure_idleness(sample_s: float = _SAMPLE_S, proc_folder: Path = Path("/proc")) -> MachineIdleness:
    """Reads the counters of the processors twice, and the load average."""
    before = _read_statistics(proc_folder)
    time.sleep(sample_s)
    after = _read_statistics(proc_folder)
    load = float((proc_folder / "loadavg").read_text(encoding="ascii").split()[0])
    return compare_processor_statistics(before, after, load)


def compare_processor_statistics(earlier: str, later: str, load_average: float) -> MachineIdleness:
    """Compares two readings of /proc/stat (proc(5))."""
    before, after = (parse_processor_times({"proc/stat": text})["all"] for text in (earlier, later))
    *_, idle_s, waiting_s, stolen_s, busy_s, _, _ = (
        (value or 0) - (value_before or 0) for value_before, value in zip(before, after, strict=True)
    )
    total_s = (busy_s + idle_s + waiting_s + stolen_s) or 1.0
    return MachineIdleness(busy_s / total_s, stolen_s / total_s, load_average)


def _read_statistics(proc_folder: Path) -> str:
    return (proc_folder / "stat").read_text(encoding="ascii")
