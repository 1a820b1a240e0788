# SPDX-License-Identifier: Apache-2.0
"""Limits of control groups as evidence: what two runs recorded about processors and memory, and what is set now for the
device of a directory of this node (cgroups(7); blkio-controller.rst and cgroup-v2.rst of the kernel)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from sonde.model.json_access import get_finite_number
from sonde.model.run import RecordedRun

# A limit below this share of the reference's limit, or a load average higher by this number for each processor, counts.
_LOWER_LIMIT_RATIO, _MORE_LOAD = 0.9, 0.75
# The load average forgets with e^(-t/60 s) (proc_loadavg(5)): 15 s after a queue grew, it has 22 % of the growth.
_LOAD_FRACTION_AFTER_SHORT_RUN = 0.22
_BYTE_LIMIT_UNIT, _REQUEST_LIMIT_UNIT = "bps", "iops"


def compare_recorded_limits_and_load(slow_run: RecordedRun, usual_run: RecordedRun) -> dict[str, bool]:
    """Compares limits and load averages of the nodes of two runs; omits values that the records lack."""
    nodes = list(zip(slow_run.raw_nodes, usual_run.raw_nodes, strict=False))
    observed: dict[str, bool] = {}
    for after, before in nodes:
        if get_finite_number(after, "memory_bytes") is None or get_finite_number(before, "memory_bytes") is None:
            continue  # these records do not describe nodes
        lower = {
            "processor-limit": _is_limit_lower(after, before, "cpu_quota"),
            "memory-limit": _is_limit_lower(after, before, "memory_limit_bytes"),
            "longer-run-queue": _has_more_load(after, before),
        }
        for name, is_shown in lower.items():
            if is_shown is not None:
                observed[name] = observed.get(name, False) or is_shown
    return observed


def _is_limit_lower(later_facts: Mapping[str, object], earlier_facts: Mapping[str, object], limit_name: str) -> bool:
    """Whether a limit is there that was not there, or is clearly lower."""
    limit, earlier = get_finite_number(later_facts, limit_name), get_finite_number(earlier_facts, limit_name)
    return limit is not None and (earlier is None or limit < _LOWER_LIMIT_RATIO * earlier)


def _has_more_load(later_facts: Mapping[str, object], earlier_facts: Mapping[str, object]) -> bool | None:
    """Whether the load average rose; None for a small rise, which a queue that grew shortly before has too."""
    load, earlier, processors = (
        get_finite_number(later_facts, "load_1m"),
        get_finite_number(earlier_facts, "load_1m"),
        get_finite_number(later_facts, "cpus"),
    )
    if load is None or earlier is None or not processors:
        return None
    rise = (load - earlier) / processors
    if _LOAD_FRACTION_AFTER_SHORT_RUN * _MORE_LOAD <= rise < _MORE_LOAD:
        return None
    return rise >= _MORE_LOAD


def read_device_limits(target_directory: str, root_folder: Path = Path("/")) -> dict[str, bool]:
    """Whether control groups limit bytes or requests of the device of a directory; empty where that cannot be read."""
    try:
        number = os.stat(target_directory).st_dev
        memberships = (root_folder / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    device = _find_device_of_partition(f"{os.major(number)}:{os.minor(number)}", root_folder)
    limits: set[str] = set()
    is_readable = False
    for line in memberships:
        _, controllers, group = line.split(":", 2)
        for folder in _list_group_folders(root_folder, controllers, group):
            for kind in _read_io_limits(folder, device):
                is_readable = True
                limits.add(kind)
    return (
        {"byte-limit": _BYTE_LIMIT_UNIT in limits, "request-limit": _REQUEST_LIMIT_UNIT in limits}
        if is_readable
        else {}
    )


def _find_device_of_partition(device_number: str, root_folder: Path) -> str:
    """Limits are those of the whole device, not of a partition."""
    folder = root_folder / "sys/dev/block" / device_number
    try:
        if (folder / "partition").exists():
            return (folder.resolve().parent / "dev").read_text(encoding="utf-8").strip()
    except OSError:
        pass
    return device_number


def _list_group_folders(root_folder: Path, controllers: str, control_group: str) -> Iterator[Path]:
    """The folders of a group and of those above it, in either version of control groups."""
    if controllers and "blkio" not in controllers.split(","):
        return
    bases = (
        [root_folder / "sys/fs/cgroup/blkio"]
        if controllers
        else [root_folder / "sys/fs/cgroup", root_folder / "sys/fs/cgroup/unified"]
    )
    for base in bases:
        names = [name for name in control_group.split("/") if name]
        for depth in range(len(names) + 1):
            yield base.joinpath(*names[:depth])


def _read_io_limits(group_folder: Path, device_number: str) -> Iterator[str]:
    """Yields "bps" and "iops" for limits of the device, and an empty text when there are files without one."""
    for unit in (_BYTE_LIMIT_UNIT, _REQUEST_LIMIT_UNIT):
        for side in ("read", "write"):
            for number, value in _read_rows_by_device(group_folder / f"blkio.throttle.{side}_{unit}_device"):
                yield unit if number == device_number and value != "0" else ""
    for number, value in _read_rows_by_device(group_folder / "io.max"):
        set_values = [item.partition("=") for item in value.split()]
        yield ""
        for name, _, limit in set_values:
            if number == device_number and limit != "max":
                yield _REQUEST_LIMIT_UNIT if name.endswith(_REQUEST_LIMIT_UNIT) else _BYTE_LIMIT_UNIT


def _read_rows_by_device(limits_file: Path) -> Iterator[tuple[str, str]]:
    """Rows of a file by the number of the device; one row without a device when it has none."""
    try:
        lines = limits_file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    yield "", "0"
    for line in lines:
        number, _, value = line.partition(" ")
        yield number, value
