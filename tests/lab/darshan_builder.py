# SPDX-License-Identifier: Apache-2.0
"""Writes Darshan logs (format 3.41) with known contents, so that tests know the answer."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from darshan.backend import cffi_backend

_HEADER_BYTES, _MODULES = 1328, 64
# Index and version of each module that this writes.
_INDEXES = {
    "POSIX": (1, 4),
    "MPI-IO": (2, 3),
    "LUSTRE": (8, 2),
    "STDIO": (9, 2),
    "DXT_POSIX": (10, 1),
    "DXT_MPIIO": (11, 2),
    "HEATMAP": (15, 1),
}
Call = tuple[int, int, float, float]  # offset, length, start, end


@dataclass
class DarshanBuilder:
    """A log under construction. Counters that are not counters_by_name are 0."""

    processes: int = 4
    seconds: float = 100.0
    program: str = "/home/user/solver input.nml"
    hints: str = ""
    mounts: Sequence[tuple[str, str]] = (("lustre", "/lus"), ("ext4", "/"))
    partial: Sequence[str] = ()
    dxt_version: int = 1
    _names: dict[int, str] = field(default_factory=dict)
    _records: dict[str, list[bytes]] = field(default_factory=dict)

    def counters(self, module: str, path: str, values: Mapping[str, float], rank: int = -1) -> DarshanBuilder:
        """Adds a record of POSIX, MPI-IO or STDIO. Names of counters come without the name of the module."""
        prefix = "MPIIO" if module == "MPI-IO" else module
        integers, floats = cffi_backend.counter_names(module), cffi_backend.fcounter_names(module)
        counters_by_name = {f"{prefix}_{name}": value for name, value in values.items()}
        unknown = counters_by_name.keys() - {*integers, *floats}
        assert not unknown, unknown
        body = struct.pack(f"<{len(integers)}q", *(int(counters_by_name.get(name, 0)) for name in integers))
        body += struct.pack(f"<{len(floats)}d", *(float(counters_by_name.get(name, 0)) for name in floats))
        self._add(module, path, rank, body)
        return self

    def stripes(self, path: str, size: int, targets: Sequence[int]) -> DarshanBuilder:
        """Adds the stripes of a file on Lustre."""
        component = struct.pack("<7q16s", size, len(targets), 0, 0, 0, -1, 0, b"")
        body = struct.pack("<2q", 1, len(targets)) + component + struct.pack(f"<{len(targets)}q", *targets)
        self._add("LUSTRE", path, -1, body)
        return self

    def calls(
        self, path: str, rank: int, reads: Sequence[Call] = (), writes: Sequence[Call] = (), host: str = "n1"
    ) -> DarshanBuilder:
        """Adds single calls (DXT) of a rank; from version 2 on each names its thread."""
        body = struct.pack("<q64s2q", 0, host.encode(), len(writes), len(reads))
        thread = struct.pack("<Q", 0x7F3A12345678) if self.dxt_version >= 2 else b""
        body += b"".join(struct.pack("<2q2d", *call) + thread for call in (*writes, *reads))
        self._add("DXT_POSIX", path, rank, body)
        return self

    def bins(self, rank: int, bin_s: float, reads: Sequence[int], writes: Sequence[int]) -> DarshanBuilder:
        """Adds a row of the heat map of POSIX calls."""
        body = struct.pack("<dq", bin_s, len(reads)) + struct.pack("<2q", 0, 0)
        body += struct.pack(f"<{2 * len(reads)}q", *writes, *reads)
        self._add("HEATMAP", "heatmap:POSIX", rank, body)
        return self

    def _add(self, module: str, path: str, rank: int, body: bytes) -> None:
        number = zlib.crc32(path.encode()) | 1 << 40
        self._names[number] = path
        self._records.setdefault(module, []).append(struct.pack("<Qq", number, rank) + body)

    def write(self, path: Path) -> Path:
        """Writes the log and returns its path."""
        start = 1_700_000_000
        metadata = f"lib_ver=3.4.7\nh={self.hints}\n".encode()
        job = struct.pack("<7q1024s", 1000, start, 0, start + int(self.seconds),
                          int(self.seconds % 1 * 1e9), self.processes, 42, metadata)  # fmt: skip
        text = self.program + "".join(f"\n{kind}\t{mount}" for kind, mount in self.mounts)
        regions = [zlib.compress(job + text.encode() + b"\0")]
        names = b"".join(struct.pack("<Q", number) + name.encode() + b"\0" for number, name in self._names.items())
        regions.append(zlib.compress(names))
        offset = _HEADER_BYTES + len(regions[0])
        name_map = (offset, len(regions[1]))
        maps, versions = [(0, 0)] * _MODULES, [0] * _MODULES
        offset += len(regions[1])
        for module, (index, version) in _INDEXES.items():
            if module in self._records:
                region = zlib.compress(b"".join(self._records[module]))
                regions.append(region)
                version += self.dxt_version - 1 if module.startswith("DXT_") else 0
                maps[index], versions[index] = (offset, len(region)), version
                offset += len(region)
        partial = sum(1 << _INDEXES[module][0] for module in self.partial)
        header = struct.pack("<8sqQQ2Q", b"3.41", 6567223, 0, partial, *name_map)
        header += b"".join(struct.pack("<2Q", *span) for span in maps)
        header += struct.pack(f"<{_MODULES}I", *versions)
        path.write_bytes(header + b"".join(regions))
        return path
