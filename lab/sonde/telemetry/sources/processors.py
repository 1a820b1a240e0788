# SPDX-License-Identifier: Apache-2.0
"""Processors: /proc/stat (proc(5)), all together and each one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sonde.telemetry.source import LocalSource, ReadingsByPart, open_kernel_files

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_COLUMNS = (
    "cpu_user_s", "cpu_system_s", "cpu_idle_s", "cpu_iowait_s", "cpu_steal_s", "cpu_busy_s", "context_switches",
    "interrupts",
)  # fmt: skip


def parse_processor_times(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    """Processor times in seconds: part "all" has every column, "cpu0" and so on only `cpu_busy_s`."""
    readings: ReadingsByPart = {}
    total: tuple[float, ...] = ()
    counts: dict[str, float] = {}
    for line in texts_by_path["proc/stat"].splitlines():
        name, *fields = line.split(maxsplit=9)
        if name.startswith("cpu"):
            user, nice, system, idle, iowait, irq, softirq, steal = (int(field) * _TICK_S for field in fields[:8])
            busy = user + nice + system + irq + softirq
            if name == "cpu":
                total = (user + nice, system + irq + softirq, idle, iowait, steal, busy)
            else:
                readings[name] = (None, None, None, None, None, busy, None, None)
        elif name in ("ctxt", "intr") and fields:
            counts[name] = int(fields[0])
    if total:
        readings["all"] = (*total, counts.get("ctxt"), counts.get("intr"))
    return readings


SOURCE = LocalSource(
    "processors",
    "processor time in user space, kernel, waiting, stolen; busy time of each processor",
    "node",
    _COLUMNS,
    lambda root: open_kernel_files(root, ("proc/stat",), parse_processor_times, "mount /proc."),
)
