# SPDX-License-Identifier: Apache-2.0
"""Geometries of RAID groups (8+1, 4x2), their stripes, and the names and sizes that CSM of the Cray X1 used."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.errors import UserError
from sonde.model.system.capacity import is_mirrored
from sonde.model.system.storage import RaidGroup

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Classes of LUNs.
CLASSES = ("transaction", "bandwidth", "capacity")
# A parity group with at least this many data drives suits capacity: a full stripe exceeds usual requests.
_MIN_WIDE_DATA_DRIVES = 10
# A parity group with smaller segments suits small requests (4+1 of 128 KiB against 4+1 of 256 KiB).
_MIN_LARGE_SEGMENT_BYTES = 256 * KIB


@dataclass(frozen=True)
class Geometry:
    """Data drives of one stripe, and parity drives or the number of copies of each data drive."""

    data: int
    parity: int = 0
    copies: int = 1

    def __str__(self) -> str:
        return f"{self.data}x{self.copies}" if self.copies > 1 else f"{self.data}+{self.parity}"

    @property
    def drive_count(self) -> int:
        """Drives of one group."""
        return self.data * self.copies + self.parity

    @property
    def tolerated_failures(self) -> int:
        """Drives that may fail, whichever they are, before data is lost."""
        return self.copies - 1 if self.copies > 1 else self.parity

    @property
    def write_amplification(self) -> float:
        """Bytes written to drives per byte of a full stripe."""
        return self.drive_count / self.data

    @property
    def raid_level(self) -> str:
        """The RAID level, as in system files and mdadm."""
        if self.copies > 1:
            return "10" if self.data > 1 else "1"
        return {0: "0", 1: "5", 2: "6"}.get(self.parity, "7")

    def compute_full_stripe_bytes(self, segment_bytes: int) -> int:
        """Bytes of data in one full stripe."""
        return self.data * segment_bytes

    def compute_usable_bytes(self, drive_bytes: int) -> int:
        """Bytes that a group of drives of `drive_bytes` bytes offers."""
        return self.data * drive_bytes


def parse_geometry(geometry_text: str) -> Geometry:
    """The geometry for a text like "8+1" or "4x2". Raises UserError."""
    match = re.fullmatch(r"\s*([0-9]{1,4})\s*([+x])\s*([0-9]{1,2})\s*", geometry_text)
    if match is None:
        raise UserError(
            f'"{geometry_text}" is no geometry; write data+parity drives like 8+2, or data x copies like 4x2.'
        )
    first, second = int(match[1]), int(match[3])
    if first == 0 or (match[2] == "x" and second < 2) or (match[2] == "+" and second > 3):
        raise UserError(
            f'"{geometry_text}" is no geometry: it has at least one data drive, up to 3 of parity (8+2), or 2 '
            "copies or more."
        )
    return Geometry(first, second) if match[2] == "+" else Geometry(first, 0, second)


def read_geometry_of_group(raid_group: RaidGroup) -> Geometry | None:
    """The geometry of a described group; None when the file does not state its data drives."""
    if raid_group.data is None:
        return None
    data = int(raid_group.data)
    if is_mirrored(raid_group):
        copies = 1 + (int(raid_group.parity) if raid_group.parity is not None else data) // data
        return Geometry(data, 0, copies)
    implied = {"4": 1, "5": 1, "6": 2, "7": 3}.get(raid_group.level, 0)
    return Geometry(data, int(raid_group.parity) if raid_group.parity is not None else implied)


def classify_suited_workload(geometry: Geometry, segment_bytes: int | None) -> str:
    """The class that groups of a geometry suit: transaction, bandwidth or capacity."""
    if geometry.copies > 1:
        return "transaction"
    if geometry.data >= _MIN_WIDE_DATA_DRIVES:
        return "capacity"
    small = geometry.data <= 4 and segment_bytes is not None and segment_bytes < _MIN_LARGE_SEGMENT_BYTES
    return "transaction" if small else "bandwidth"


def compute_slice_alignment(stripe_bytes: int, least_bytes: int = MIB) -> int:
    """The alignment of slices in bytes: the least common multiple of the full stripe and `least_bytes` (1 MiB, the
    default of partitioning tools)."""
    return math.lcm(stripe_bytes, least_bytes)


# ---- CSM, the storage manager of the Cray X1: names of RAID layouts, segments, sizes

# Digit pair of a layout name -> the groups on one brick of 14 drives; the remaining drives are hot spares.
CSM_LAYOUTS: Mapping[str, tuple[str, ...]] = {
    "28": ("4+1", "4x2"),
    "2A": ("8+1", "2x2"),
    "2C": ("4+1", "8+1"),
    "1D": ("13+1",),
}
CSM_DRIVES = 14
# Class -> geometry -> segment, as published for the Cray X1.
CSM_SEGMENTS: Mapping[str, Mapping[str, int]] = {
    "transaction": {"2x2": 128 * KIB, "4x2": 128 * KIB, "4+1": 128 * KIB},
    "bandwidth": {"4+1": 256 * KIB, "8+1": 256 * KIB},
    "capacity": {"13+1": 128 * KIB},
}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KB": KIB, "MB": MIB, "GB": GIB, "TB": 1 << 40}


def parse_csm_layout(layout_name: str) -> tuple[Geometry, ...]:
    """The groups of a layout name like RG128: bricks, number of groups, their data drives in hexadecimal. Raises
    UserError."""
    match = re.fullmatch(r"RG([0-9x])([0-9])([0-9A-F])", layout_name)
    if match is None or match[2] + match[3] not in CSM_LAYOUTS:
        names = ", ".join(f"RG1{digits}" for digits in CSM_LAYOUTS)
        raise UserError(f'"{layout_name}" is no RAID layout of CSM; known are {names}.')
    return tuple(parse_geometry(geometry) for geometry in CSM_LAYOUTS[match[2] + match[3]])


def parse_csm_size(size_text: str, *, in_powers_of_1024: bool = False) -> int:
    """Bytes of a size that CSM prints, like 583GB: powers of 1000, or of 1024 with its option -G. Raises UserError."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT][Bb])\s*", size_text, re.IGNORECASE)
    if match is None:
        raise UserError(f'"{size_text}" is no size that CSM prints; it looks like 583GB.')
    return round(float(match[1]) * (_BINARY if in_powers_of_1024 else _DECIMAL)[match[2].upper()])


def format_csm_size(size_bytes: int, *, in_powers_of_1024: bool = False) -> str:
    """A size as CSM prints it: 583GB, or 543GB with -G."""
    units = _BINARY if in_powers_of_1024 else _DECIMAL
    unit = "TB" if size_bytes >= 10 * units["TB"] else "GB" if size_bytes >= units["GB"] else "MB"
    return f"{size_bytes / units[unit]:.0f}{unit}"
