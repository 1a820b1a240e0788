# SPDX-License-Identifier: Apache-2.0
"""Units and widths that are multiples of what the one array below a file system has."""

from __future__ import annotations

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage

KIB = 1024
MIB = 1024 * KIB
CHUNK, STRIPE = 512 * KIB, 4 * MIB  # 8+2


def find_faults(unit: int, width: int, level: str = "raid6", device: str = "md0") -> list[LayoutFault]:
    """The faults of stripes of an ext4 on md0, or on a volume that stripes over md0 and md1."""
    arrays = {
        name: ObservedDisk(name, "md", level=level, geometry="8+2", data=8, unit=CHUNK) for name in ("md0", "md1")
    }
    volume = ObservedDisk("dm-0", "lvm", level="linear", members=("md0", "md1"))
    file_system = ObservedFileSystem("/data", "ext4", f"/dev/{device}", 4096, 10**9, unit, width)
    faults = check_layout(ObservedStorage((file_system,), arrays | {"dm-0": volume})).faults
    return [fault for fault in faults if fault.kind.endswith("fit the stripe")]


@pytest.mark.parametrize(("unit", "width", "kind", "cost"), [
    (4 * CHUNK, 4 * STRIPE, "unit does not fit the stripe", "allocations begin only at one of 4 chunks"),
    (2 * CHUNK, STRIPE, "unit does not fit the stripe", "allocations begin only at one of 2 chunks"),
    (CHUNK, 2 * STRIPE, "width does not fit the stripe", "requests of the preferred size cover several stripes"),
    (CHUNK, STRIPE + CHUNK, "width does not fit the stripe", "requests of the preferred size leave drives out"),
])  # fmt: skip
def test_multiples_of_another_array_are_reported(unit: int, width: int, kind: str, cost: str) -> None:
    (fault,) = find_faults(unit, width)
    assert (fault.kind, fault.cost) == (kind, cost)
    assert "tune2fs" in fault.remedy


@pytest.mark.parametrize(("unit", "width"), [(CHUNK, STRIPE), (STRIPE, STRIPE)])
def test_chunk_and_full_stripe_as_unit_are_sound(unit: int, width: int) -> None:
    assert not find_faults(unit, width)


def test_multiples_above_several_arrays_are_sound() -> None:
    assert not find_faults(CHUNK, 2 * STRIPE, device="dm-0")


def test_multiples_without_parity_are_sound() -> None:
    assert not find_faults(2 * CHUNK, STRIPE, level="raid0")
