# SPDX-License-Identifier: Apache-2.0
"""Converts IOzone's settings to plans: one for each file size, record size and number of children."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.dialects.iozone.arguments import KIB, IozoneSettings
from sonde.model.plan import Plan

# Test of -i -> its phases: name as in the importer of IOzone's results, operation, order of the accesses.
_PHASES_BY_TEST: dict[int, tuple[tuple[str, str, str], ...]] = {
    0: (("write", "write", "sequential"), ("rewrite", "rewrite", "sequential")),
    1: (("read", "read", "sequential"), ("reread", "reread", "sequential")),
    2: (("random_read", "read", "random_permute"), ("random_write", "rewrite", "random_permute")),
    3: (("backward_read", "read", "reverse"),),
    4: (("record_rewrite", "rewrite", "one_record"),),
    5: (("stride_read", "read", "stride"),),
    8: (("mixed", "mixed", "random_permute"),),
    9: (("pwrite", "write", "sequential"), ("repwrite", "rewrite", "sequential")),
    10: (("pread", "read", "sequential"), ("repread", "reread", "sequential")),
}
REPEAT_PHASES = {"rewrite", "reread", "repwrite", "repread"}  # what -+n leaves out
ALL_TESTS = (0, 1, 2, 3, 4, 5)
THROUGHPUT_TESTS = (0, 1, 2, 3, 5, 8)


@dataclass(frozen=True)
class IozoneCell:
    """One plan of a command line. Sizes in KiB; `children` 0 = the table's single process."""

    file: int
    record: int
    children: int = 0

    @property
    def cell_name(self) -> str:
        return (
            f"iozone-{self.children}x{self.file}k-{self.record}k"
            if self.children
            else f"iozone-{self.file}k-{self.record}k"
        )


def build_cell_plan(settings: IozoneSettings, cell: IozoneCell) -> Plan:
    """The plan of one cell, checked."""
    return Plan.from_document(_make_plan_document(settings, cell), "iozone")


def _make_plan_document(settings: IozoneSettings, cell: IozoneCell) -> dict[str, Any]:
    tests = settings.tests or (THROUGHPUT_TESTS if cell.children else ALL_TESTS)
    phases = [
        _make_phase(settings, cell, *phase)
        for test in sorted(set(tests))
        for phase in _PHASES_BY_TEST[test]
        if not (settings.once and phase[0] in REPEAT_PHASES)
    ]
    files = _make_files(settings)
    if "paths" in files and not settings.keep:
        phases.append({"id": "remove", "op": "remove", "measure": False})
    return {
        "schema": "sonde-plan/2",
        "id": cell.cell_name,
        "title": f"IOzone: {cell.file} KiB in records of {cell.record} KiB",
        "target": _make_target(settings),
        "tasks": {"processes": max(1, cell.children)},
        "data": {
            "backend": "mmap" if settings.mapped else "io_uring" if settings.depth > 1 else "posix",
            "files": files,
            "access": {"transfer": cell.record * KIB, "block": cell.file * KIB},
            "io": _make_io(settings),
        },
        "phases": phases,
    }


def _make_target(settings: IozoneSettings) -> dict[str, Any]:
    folders = {str(Path(name).parent.absolute()) for name in (settings.paths or (settings.path,))}
    if len(folders) > 1:
        return {"path": sorted(folders)[0], "use_existing": True, "keep": settings.keep}
    return {"path": folders.pop(), "keep": settings.keep}


def _make_files(settings: IozoneSettings) -> dict[str, Any]:
    if len({str(Path(name).parent.absolute()) for name in settings.paths}) > 1:
        return {"mapping": "per_task", "paths": [str(Path(name).absolute()) for name in settings.paths]}
    return {"mapping": "per_task", "name": "iozone"}


def _make_io(settings: IozoneSettings) -> dict[str, Any]:
    io: dict[str, Any] = {}
    if settings.direct:
        io["direct"] = True
    if settings.synchronous:
        io["sync"] = "sync"
    if settings.flush:
        io["fsync"] = "end_timed_separately"
    if settings.depth > 1:
        io["queue_depth"] = settings.depth
    if settings.pause_ms:
        io["pause"] = f"{settings.pause_ms}ms"
    return io


def _make_phase(
    settings: IozoneSettings, cell: IozoneCell, phase_name: str, op: str, access_order: str
) -> dict[str, Any]:
    phase: dict[str, Any] = {"id": phase_name, "op": op}
    access: dict[str, Any] = {}
    if access_order == "one_record":  # the first one, again and again
        access |= {"order": "random_replace", "within": cell.record * KIB}
    elif access_order != "sequential":
        access["order"] = access_order
    if access_order == "stride":
        # The records at this stride in the file; IOzone continues from the start until it has read all.
        access["stride"] = settings.stride * cell.record * KIB
        count = max(1, (cell.file // cell.record + settings.stride - 1) // settings.stride)
        access |= {"transfer": cell.record * KIB, "block": cell.record * KIB, "segments": count}
    if op == "mixed":
        access["read_ratio"] = settings.read_share / 100
    if access:
        phase["access"] = access
    if settings.remount:
        phase["before"] = [{"kind": "remount", "need": "required"}]
    if settings.verify and op in ("read", "reread") and access_order != "stride":
        phase["verify"] = "on_read"
    if cell.children > 1 and not settings.no_stonewall:
        phase["stop"] = {"first_done": True}
    return phase
