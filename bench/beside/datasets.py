# SPDX-License-Identifier: Apache-2.0
"""Backends that write a file format through MPI-IO, beside a bare loop over the library of the format."""

from __future__ import annotations

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
    backend: str
    transfer: int
    size: int  #: of the dataset
    collective: bool = False

    def plan(self, where: str, seconds: float) -> dict[str, Any]:
        return {
            "target": {"path": where, "min_free": 0},
            "data": {
                "backend": self.backend,
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


def list_transfer_cells(backend: str) -> list[Transfers]:
    return [
        Transfers("4k", backend, 4 * KIB, 64 * MIB),
        Transfers("64k", backend, 64 * KIB, 256 * MIB),
        Transfers("1m", backend, MIB, 512 * MIB),
        Transfers("4k_collective", backend, 4 * KIB, 64 * MIB, collective=True),
        Transfers("1m_collective", backend, MIB, 512 * MIB, collective=True),
    ]


def compare_with_library(description: str | None, backend: str, package: str, debian_name: str) -> int:
    """The program of a bench: compares a backend with bench/raw/BACKEND_loop.cpp. `package` is the name for pkg-config.
    Returns the exit code."""
    parser = make_parser(description)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where the files are (default: %(default)s)")
    arguments = parser.parse_args()
    with open_new_folder(arguments.dir) as folder:
        loop = build_loop(f"{backend}_loop.cpp", package, debian_name, folder, "mpicxx.openmpi")
        return compare_cells(list_transfer_cells(backend), arguments, loop, str(folder), folder, ROOT_MPI)
