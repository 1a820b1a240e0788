#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the hdf5 backend costs: beside the bare loop over H5Dwrite and H5Dread, in the same library and the same MPI.

Each round lets both write a dataset, rewrite it and read it, in random order; one task without a launcher. Prints the
median of the ratios engine / loop of operations per second over the rounds, with the tenth percentile, the same of
processor time, and the ratio of the fastest round of each, because other programs can only slow a round down; with
--json one object of named figures. With --check the exit code is 1 where the ratio of the fastest rounds is below 0.97.
In memory (/dev/shm) storage costs least, so that the cost shows most. Needs HDF5 for Open MPI with its headers
(libhdf5-openmpi-dev on Debian) and a build: cmake --preset dev && cmake --build --preset dev.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beside.library_loop import build_loop, compare_cells, make_parser, make_phases
from beside.places import open_new_folder
from overhead.cells import KIB, MIB
from overhead.contestants import ENGINE_DATA, ENGINE_DATA_LONG, ROOT_MPI


@dataclass(frozen=True)
class Transfers:
    """Transfers of one task to one dataset. Sizes in bytes."""

    name: str
    transfer: int
    size: int  #: of the dataset
    collective: bool = False

    def plan(self, where: str, seconds: float) -> dict[str, Any]:
        return {
            "target": {"path": where, "min_free": 0},
            "data": {
                "backend": "hdf5",
                "files": {"mapping": "shared" if self.collective else "per_task"},
                "access": {"transfer": self.transfer, "block": self.size, "segments": 1},
                "io": {"collective": self.collective},
            },
            "phases": make_phases(seconds, rewrite="rewrite"),
        }

    def command(self, loop: Path, where: str, seconds: float) -> list[str]:
        data = ENGINE_DATA[self.transfer >= ENGINE_DATA_LONG]
        numbers = (self.transfer, self.size, data, seconds, int(self.collective))
        return [str(loop), f"{where}/loop", *map(str, numbers)]


TRANSFER_CELLS = (
    Transfers("4k", 4 * KIB, 64 * MIB),
    Transfers("64k", 64 * KIB, 256 * MIB),
    Transfers("1m", MIB, 512 * MIB),
    Transfers("4k_collective", 4 * KIB, 64 * MIB, collective=True),
    Transfers("1m_collective", MIB, 512 * MIB, collective=True),
)


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where the files are (default: %(default)s)")
    arguments = parser.parse_args()
    with open_new_folder(arguments.dir) as folder:
        loop = build_loop("hdf5_loop.cpp", "hdf5-openmpi", "libhdf5-openmpi-dev", folder, "mpicxx.openmpi")
        return compare_cells(TRANSFER_CELLS, arguments, loop, str(folder), folder, ROOT_MPI)


if __name__ == "__main__":
    sys.exit(main())
