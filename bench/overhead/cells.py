# SPDX-License-Identifier: Apache-2.0
"""The cells of the comparison: one kind of access on one kind of file system, one task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Cell:
    """One access pattern. Sizes in bytes."""

    name: str
    memory: bool  #: on a file system that lives in memory (else on a disk)
    write: bool
    transfer: int
    size: int  #: of the file
    random: bool = False
    fresh: bool = False  #: the measured pass writes a new file; else all work on one given file, pass after pass
    depth: int = 0  #: io_uring with that many operations in flight; 0 = pread and pwrite
    direct: bool = False
    #: Writes: the engine writes its content as always, and the bare loop as much different data. Else both write one
    #: buffer again and again, as the peers do in all cells; it stays in the processor's first cache.
    data: bool = False
    goal: float | None = None  #: least ratio of the engine to the bare loop that we promise

    @property
    def operations(self) -> int:
        return self.size // self.transfer


# New files are large enough that a pass takes as long as a round of the others.
CELLS = (
    Cell("read_4k", True, False, 4 * KIB, 128 * MIB, goal=0.95),
    Cell("read_4k_random", True, False, 4 * KIB, 128 * MIB, random=True, goal=0.95),
    Cell("write_4k", True, True, 4 * KIB, 128 * MIB, goal=0.95),
    Cell("write_4k_data", True, True, 4 * KIB, 128 * MIB, data=True, goal=0.95),
    Cell("write_4k_random", True, True, 4 * KIB, 128 * MIB, random=True, goal=0.95),
    Cell("write_4k_random_data", True, True, 4 * KIB, 128 * MIB, random=True, data=True, goal=0.95),
    Cell("write_4k_new", True, True, 4 * KIB, 1024 * MIB, fresh=True, goal=0.95),
    Cell("write_4k_new_data", True, True, 4 * KIB, 1024 * MIB, fresh=True, data=True, goal=0.95),
    Cell("read_1m", True, False, MIB, 512 * MIB, goal=0.99),
    Cell("write_1m", True, True, MIB, 512 * MIB, data=True, goal=0.99),
    Cell("write_1m_new", True, True, MIB, 1024 * MIB, fresh=True, data=True, goal=0.99),
    Cell("read_4k", False, False, 4 * KIB, 128 * MIB),
    Cell("read_4k_random", False, False, 4 * KIB, 128 * MIB, random=True),
    Cell("write_4k_data", False, True, 4 * KIB, 128 * MIB, data=True),
    Cell("write_4k_random_data", False, True, 4 * KIB, 128 * MIB, random=True, data=True),
    Cell("read_1m", False, False, MIB, 512 * MIB),
    Cell("write_1m", False, True, MIB, 512 * MIB, data=True),
    Cell("uring_read_4k_random_qd32", False, False, 4 * KIB, 128 * MIB, random=True, depth=32),
    Cell("uring_read_4k_random_qd32_direct", False, False, 4 * KIB, 128 * MIB, random=True, depth=32, direct=True),
)


def get_prepared_file(folder: Path) -> Path:
    """The file that all read or overwrite, seen from the folder of one contestant.

    One for all, because it matters where it lies: on which blocks of a disk, in how large pieces of memory.
    """
    return folder.parent / "given" / "data"


def find_file_system_type(folder: Path) -> str:
    """The kernel's name of the file system that holds a folder ("ext4")."""
    best, type_ = "", "unknown"
    path = str(folder.resolve())
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        point = fields[1].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, type_ = point, fields[2]
    return type_
