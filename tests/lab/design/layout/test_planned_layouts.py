# SPDX-License-Identifier: Apache-2.0
"""A machine made exactly as planned has no faults, and differences from a plan are reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_fault_kinds import find_kinds
from storage_builders import build_lun_system, make_requirement

from sonde.design.layout.block_devices import BlockDevice
from sonde.design.layout.check import check_layout
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import MIB
from sonde.design.layout.live.observations import (
    ObservedDisk,
    ObservedFileSystem,
    ObservedStorage,
)
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import make_system, read_system
from sonde.model.system.storage import RaidGroup, Volume


def as_made(layout: FileSystemLayout) -> ObservedStorage:
    """Observation of a machine after the script of a plan: the arguments of mkfs, md and LVM as observed values."""
    disks: dict[str, ObservedDisk] = {}
    for store in (*layout.devices, *([layout.log] if layout.log is not None else [])):
        _add(store, disks)
    groups = layout.groups if layout.table.kind == "xfs" else None
    blocks = groups.blocks if groups is not None else (layout.capacity or 0) // layout.block_bytes
    file_system = ObservedFileSystem(
        f"/{layout.id}",
        layout.table.kind,
        f"/dev/{layout.first_device.id}",
        layout.block_bytes,
        blocks,
        layout.unit,
        layout.width,
        groups.count if groups else None,
        groups.size if groups else None,
        layout.log_size,
        f"/dev/{layout.log.id}" if layout.log is not None else "internal",
    )
    return ObservedStorage((file_system,), disks)


def _add(store: BlockDevice, disks: dict[str, ObservedDisk]) -> None:
    table, members = store.table, tuple(member.id for member in store.members)
    sizes = tuple(member.capacity or 0 for member in store.members)
    common = {"size": store.capacity, "state": "optimal"}
    if isinstance(table, RaidGroup):
        geometry = store.raid_geometry
        striped = geometry is not None and geometry.data > 1
        disks[store.id] = ObservedDisk(store.id, "md", geometry=str(geometry), data=geometry.data if geometry else None,
                                   unit=store.stripe_unit_bytes if striped else None, level=f"raid{table.level}",
                                   member_sizes=sizes, **common)  # type: ignore[arg-type]  # fmt: skip
    elif store.kind == "slices":
        disks[store.id] = ObservedDisk(store.id, "part", start=store.start, on=members[0], **common)  # type: ignore[arg-type]
    elif isinstance(table, Volume):
        disks[store.id] = ObservedDisk(
            store.id,
            "lvm",
            members=members,
            member_sizes=sizes,
            level="raid0",
            unit=store.stripe_unit_bytes,
            data=len(members),
            **common,  # type: ignore[arg-type]
        )
    else:
        disks[store.id] = ObservedDisk(store.id, "disk", members=members, **common)  # type: ignore[arg-type]
    for member in store.members:
        if member.kind != "drives":
            _add(member, disks)


def clean(plan: LayoutPlan) -> None:
    for layout in plan.file_systems:
        if layout.table.kind in ("xfs", "ext4") and layout.devices:
            # what was right in 2004 is called old: groups of 1 GiB, a log of 16 MiB; a slice of a Cray X1 has
            # the published size of the LUN, from which its script takes the space of the table
            old = (
                {"too many allocation groups", "log too small", "partition beyond its disk"}
                if layout.first_device.is_cray_x1
                else set()
            )
            assert [fault for fault in check_layout(as_made(layout), layout).faults if fault.kind not in old] == [], (
                layout.id
            )


@pytest.mark.parametrize("name", ["nvme-enclosure", "cray-x1-requirements", "laptop-md"])
def test_planned_layout_has_no_faults(name: str) -> None:
    clean(plan_layout(read_system(find_system_file(name))))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["home", "scratch", "archive"]), st.sampled_from(["xfs", "ext4"]),
                          st.integers(2, 60)), min_size=1, max_size=4))  # fmt: skip
def test_any_planned_layout_has_no_faults(requirements_drawn: list[tuple[str, str, int]]) -> None:
    requirements = [
        make_requirement(f"fs{index}", purpose, kind, capacity=f"{size * 200} MB")
        for index, (purpose, kind, size) in enumerate(requirements_drawn)
    ]
    try:
        plan = plan_layout(make_system(build_lun_system(file_systems=requirements), "made"))
    except UserError:
        return
    clean(plan)


def test_differences_from_a_plan_are_reported() -> None:
    layout = plan_layout(read_system(find_system_file("nvme-enclosure"))).get_layout("scratch")
    storage = as_made(layout)
    (file_system,) = storage.file_systems
    assert file_system.blocks is not None
    assert file_system.group_count is not None
    for change in (
        {"unit": 4 * MIB, "width": 4 * MIB}, {"group_count": file_system.group_count + 1},
        {"block": 8192},
        {"blocks": file_system.blocks // 2}, {"log": 64 * MIB}, {"log_device": "/dev/sdl"}, {"kind": "ext4"},
    ):  # fmt: skip
        changed = replace(file_system, **change)
        assert "not as planned" in find_kinds(replace(storage, file_systems=(changed,)), layout), change
    short = replace(storage, file_systems=(replace(file_system, width=2 * MIB),))
    assert find_kinds(short, layout) == {"width does not fit the stripe"}, "explains the difference"
    volume = storage.disks[layout.first_device.id]
    fewer = {**storage.disks, layout.first_device.id: replace(volume, members=(*volume.members, "more"))}
    assert "not as planned" in find_kinds(replace(storage, disks=fewer), layout)


@pytest.mark.parametrize(("blocks", "groups", "kinds"), [
    (1 << 16, 1, set()), (0, 1, {"not as planned"}), (0, 0, set())])  # fmt: skip
def test_last_group_of_a_slightly_larger_device_is_fine(blocks: int, groups: int, kinds: set[str]) -> None:
    layout = plan_layout(read_system(find_system_file("laptop-md"))).get_layout("bulk")
    storage = as_made(layout)
    (file_system,) = storage.file_systems
    assert file_system.group_count is not None
    assert file_system.group_blocks is not None
    total = file_system.group_count * file_system.group_blocks + blocks
    larger = replace(file_system, blocks=total, group_count=file_system.group_count + groups)
    array = replace(storage.disks["md5"], size=4096 * total)
    changed = replace(storage, file_systems=(larger,), disks={**storage.disks, "md5": array})
    assert find_kinds(changed, layout) == kinds
