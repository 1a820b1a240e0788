# SPDX-License-Identifier: Apache-2.0
"""Memory and paging of the node: /proc/meminfo and /proc/vmstat (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sonde.telemetry.source import ColumnValues, LocalSource, ReadingsByPart, open_kernel_files

_KIB = 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MEMINFO_MEMBERS = ("MemAvailable:", "Cached:", "Dirty:", "Writeback:")
# Members of /proc/vmstat that are added up for each column, and the unit they count in.
_VMSTAT_COUNTERS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("pgpgin",), _KIB),
    (("pgpgout",), _KIB),
    (("nr_dirtied",), _PAGE_BYTES),
    (("nr_written",), _PAGE_BYTES),
    (("pswpin",), _PAGE_BYTES),
    (("pswpout",), _PAGE_BYTES),
    (("pgmajfault",), 1),
    (("pgscan_kswapd", "pgscan_direct"), 1),
)


def parse_meminfo(meminfo_text: str) -> ColumnValues:
    """Bytes of memory in the order of the columns of `MEMORY`."""
    values: dict[str, float] = {}
    for line in meminfo_text.splitlines():
        name, _, amount = line.partition(" ")
        if name in _MEMINFO_MEMBERS:
            values[name] = int(amount.split()[0]) * _KIB
    return tuple(values.get(name) for name in _MEMINFO_MEMBERS)


def parse_vmstat(vmstat_text: str) -> ColumnValues:
    """Counters of paging in the order of the columns of `PAGING_SOURCE`."""
    counters: dict[str, int] = {}
    for line in vmstat_text.splitlines():
        name, _, value = line.partition(" ")
        if value.isdigit():
            counters[name] = int(value)
    return tuple(
        sum(counters.get(name, 0) for name in names) * unit if any(name in counters for name in names) else None
        for names, unit in _VMSTAT_COUNTERS
    )


def _parse_meminfo_file(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    return {"": parse_meminfo(texts_by_path["proc/meminfo"])}


def _parse_vmstat_file(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    return {"": parse_vmstat(texts_by_path["proc/vmstat"])}


MEMORY_SOURCE = LocalSource(
    "memory",
    "available memory, page cache, dirty pages",
    "node",
    ("memory_available_bytes", "memory_cached_bytes", "memory_dirty_bytes", "memory_writeback_bytes"),
    lambda root: open_kernel_files(root, ("proc/meminfo",), _parse_meminfo_file, "mount /proc."),
)
PAGING_SOURCE = LocalSource(
    "paging",
    "bytes read from and written to devices, write-back, swapping, reclaim",
    "node",
    (
        "paged_in_bytes", "paged_out_bytes", "dirtied_bytes", "written_back_bytes", "swapped_in_bytes",
        "swapped_out_bytes", "major_faults", "pages_scanned",
    ),
    lambda root: open_kernel_files(root, ("proc/vmstat",), _parse_vmstat_file, "mount /proc."),
)  # fmt: skip
