# SPDX-License-Identifier: Apache-2.0
"""Checks observed storage against the rules of layout and, if given, against a plan.

This module inspects no machine: it evaluates an observation and reports what is missing from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.layout.attribute_rules import find_attribute_faults
from sonde.design.layout.check_blocks import find_block_faults
from sonde.design.layout.check_components import list_unknown_states
from sonde.design.layout.check_default_layouts import find_layout_faults
from sonde.design.layout.check_default_stripes import find_default_stripe_faults
from sonde.design.layout.check_disks import find_disk_faults
from sonde.design.layout.check_extents import find_extent_faults
from sonde.design.layout.check_file_placement import find_placement_faults
from sonde.design.layout.check_foreign_luns import find_foreign_luns
from sonde.design.layout.check_fstab import find_fstab_faults
from sonde.design.layout.check_fstab_mounts import find_mount_differences
from sonde.design.layout.check_inodes import find_planned_inode_faults
from sonde.design.layout.check_lustre_services import find_lustre_service_faults
from sonde.design.layout.check_mounts import find_mount_faults
from sonde.design.layout.check_objects import find_object_faults
from sonde.design.layout.check_own_failover import find_own_failover_nodes
from sonde.design.layout.check_partner_lines import find_target_line_faults
from sonde.design.layout.check_peer_attributes import find_attribute_differences
from sonde.design.layout.check_peers import find_peer_faults
from sonde.design.layout.check_permissions import find_permission_faults
from sonde.design.layout.check_plan import find_plan_faults
from sonde.design.layout.check_planned_devices import find_device_faults, list_planned_targets
from sonde.design.layout.check_planned_mounts import list_planned_mount_points, select_mounted_file_systems
from sonde.design.layout.check_pools import find_pool_faults
from sonde.design.layout.check_redundancy import find_path_faults, list_unknown_queueing
from sonde.design.layout.check_scrubs import describe_unknown_scrub, list_running_scrubs
from sonde.design.layout.check_slices import find_slice_faults
from sonde.design.layout.check_spares import find_spare_faults, list_unknown_spare_groups
from sonde.design.layout.check_stripe_units import (
    find_stripe_faults,
    find_top_disk,
    find_unit_and_stripe_below,
    lies_on_mirrors,
)
from sonde.design.layout.check_target_devices import find_shared_devices
from sonde.design.layout.check_target_servers import find_unknown_targets
from sonde.design.layout.check_targets import find_target_faults, select_clients
from sonde.design.layout.check_without_plan import find_content_faults, find_device_faults_without_plan
from sonde.design.layout.check_written import find_written_faults, list_not_compared
from sonde.design.layout.device_use import list_unused_drives
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import GIB, MIB
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.merge_faults import merge_faults
from sonde.design.layout.observe_written_lustre import list_target_names
from sonde.design.layout.planned_roles import exclude_other_file_systems
from sonde.design.layout.planned_values import list_planned_values
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command
from sonde.design.layout.xfs import LEGACY_LARGEST_LOG, LEGACY_LOG_RATE, SMALLEST_LOG
from sonde.model.units import format_bytes, format_count_with_noun

# With fewer groups creates wait for each other; with more groups allocation takes processor time.
_FEW_GROUPS, _MANY_GROUPS = 4, 1024
_SMALL_GROUP = 256 * MIB
_STRIPED = ("xfs", "ext4", "ldiskfs")
_LISTS_OF_UNKNOWN = (list_unknown_spare_groups, list_running_scrubs, list_unknown_states, list_unknown_queueing)


def check_layout(
    observed_storage: ObservedStorage,
    planned_layout: FileSystemLayout | None = None,
    directories: Sequence[Path] = (),
    mount_points: Collection[str] = (),
    written: Sequence[WrittenAttribute] = (),
    target_results: Sequence[LayoutFault | CheckedItem] | None = None,
    written_by_plan: Sequence[WrittenAttribute] = (),
) -> LayoutCheck:
    """Checks all observed storage. `planned_layout` is the planned layout of one file system, which is mounted at one
    of `mount_points`; other observed file systems are not compared with it. `directories` are those of this machine,
    whose permissions are checked if the file system is for checkpoints. `written` is what the scripts of the file
    system write, `written_by_plan` what those of all file systems of the plan write. `target_results` are those of the
    targets of Lustre where several hosts are checked; else they are computed."""
    results: list[LayoutFault | CheckedItem] = []
    unknown = list(observed_storage.unknown) + [
        f"a line that could not be parsed: {line}" for line in observed_storage.unread
    ]
    planned: tuple[ObservedFileSystem, ...] = ()
    if planned_layout is not None:
        mount_points = list_planned_mount_points(mount_points, written)
        planned, mount_results = select_mounted_file_systems(observed_storage, planned_layout, written, mount_points)
        results += mount_results
    for file_system in observed_storage.file_systems:
        own_plan = planned_layout if file_system in planned else None
        results += _check_file_system(observed_storage, file_system, own_plan)
        unknown += _list_unchecked_items(observed_storage, file_system, own_plan, has_plan=planned_layout is not None)
    unused = list_unused_drives(observed_storage)
    for disk in observed_storage.disks.values():
        results += find_disk_faults(observed_storage, disk, is_used=disk.name not in unused)
    used_disks = [disk for disk in observed_storage.disks.values() if disk.name not in unused]
    results += find_attribute_faults(observed_storage.file_systems, used_disks)
    results += [*find_path_faults(observed_storage), *find_peer_faults(observed_storage)]
    lustre = observed_storage.file_systems if target_results is None else select_clients(observed_storage.file_systems)
    planned_values = list_planned_values(observed_storage, written_by_plan or written)
    results += find_attribute_differences(observed_storage, lustre, planned_values)
    results += find_device_faults_without_plan(observed_storage)
    results += find_spare_faults(observed_storage, planned_layout, written_by_plan or written)
    unknown += [text for list_texts in _LISTS_OF_UNKNOWN for text in list_texts(observed_storage)]
    results += find_content_faults(observed_storage)
    results += find_fstab_faults(observed_storage, mount_points if planned_layout is not None else ())
    results += find_mount_differences(observed_storage)
    results += [*find_target_faults(lustre), *(target_results or ())]
    results += find_default_stripe_faults(observed_storage.file_systems, planned_layout, mount_points)
    results += [*find_lustre_service_faults(observed_storage.file_systems), *find_target_line_faults(observed_storage)]
    if target_results is None:
        results += [*find_placement_faults({"": observed_storage}), *find_own_failover_nodes({"": observed_storage})]
    results += find_shared_devices(observed_storage, list_planned_targets(group_by_command(written).values()))
    for table in observed_storage.slices:
        results += find_slice_faults(observed_storage, table)
    for file in observed_storage.files:
        results += find_extent_faults(observed_storage, file)
    results += find_foreign_luns(observed_storage, written_by_plan)
    if planned_layout is not None:
        results += find_unknown_targets(observed_storage, written)
        planned_storage = exclude_other_file_systems(observed_storage, planned)
        results += find_plan_faults(planned_storage, planned_layout)
        results += find_written_faults(replace(observed_storage, disks=planned_storage.disks), planned, written)
        results += find_device_faults(observed_storage, planned, written, mount_points)
        results += find_planned_inode_faults(observed_storage.file_systems, list_target_names(written))
        for directory in directories if planned_layout.table.purpose == "checkpoint" else ():
            results += find_permission_faults(directory)
    faults, checked_items = split_faults_and_comparisons(merge_faults(results, observed_storage))
    not_compared = list_not_compared(written, {item.subject for item in checked_items}, observed_storage)
    return LayoutCheck(faults, tuple(dict.fromkeys(unknown)), checked_items, not_compared)


def _list_unchecked_items(
    observed_storage: ObservedStorage,
    file_system: ObservedFileSystem,
    planned_layout: FileSystemLayout | None,
    *,
    has_plan: bool,
) -> Iterator[str]:
    if file_system.kind == "ldiskfs":
        return  # the plan compares it by the label of its target
    if file_system.kind == "zfs" and (text := describe_unknown_scrub(file_system, observed_storage.date)):
        yield text
    if file_system.kind in _STRIPED and file_system.unit is None:
        yield f"the stripe unit of {file_system.location}"
    stripe = find_unit_and_stripe_below(observed_storage, file_system, planned_layout)
    if file_system.kind in _STRIPED and stripe == (None, None) and not lies_on_mirrors(observed_storage, file_system):
        advice = "; give the system file with --plan"
        if has_plan:
            advice = ", and the plan has none" if planned_layout is not None else ", and it is not in the plan"
        yield f"the RAID stripe below {file_system.location}: no disk reports it{advice}"


def _check_file_system(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_layout: FileSystemLayout | None
) -> Iterator[LayoutFault | CheckedItem]:
    if file_system.kind in _STRIPED:
        yield from find_stripe_faults(observed_storage, file_system, planned_layout)
        yield from _check_log(observed_storage, file_system)
        yield from find_block_faults(
            observed_storage, file_system, planned_layout.capacity if planned_layout is not None else None
        )
    if file_system.kind == "xfs":
        yield from _check_groups(file_system, planned_layout)
        yield from _check_blocks(observed_storage, file_system, planned_layout)
    if file_system.kind == "lustre":
        yield from find_object_faults(file_system, _find_target_stripe(observed_storage, planned_layout))
        yield from find_layout_faults(file_system)
    if file_system.kind == "zfs":
        yield from find_pool_faults(file_system, observed_storage.date)
    yield from find_mount_faults(observed_storage, file_system)


def _find_target_stripe(observed_storage: ObservedStorage, planned_layout: FileSystemLayout | None) -> int | None:
    """The full stripe below the targets: of the plan, else the one that all observed arrays have, unless a local
    file system is on one of them."""
    if planned_layout is not None and planned_layout.devices and planned_layout.first_device.full_stripe_bytes:
        return planned_layout.first_device.full_stripe_bytes
    arrays = [disk for disk in observed_storage.disks.values() if disk.kind in ("md", "lun") and disk.full_stripe_bytes]
    tops = (
        find_top_disk(observed_storage, file_system)
        for file_system in observed_storage.file_systems
        if file_system.kind in _STRIPED
    )
    local = {disk.name for top in tops if top is not None for disk in observed_storage.iterate_disks_below(top.name)}
    if any(array.name in local or array.settings.get("mountpoint") for array in arrays):
        return None  # a server of local file systems: which arrays hold targets is not known
    if any(disk.settings.get("fs_kind") for disk in observed_storage.disks.values()):
        # what is on the disks was observed: a target looks like ext4 (ldiskfs)
        arrays = [array for array in arrays if array.settings.get("fs_kind") in ("ext4", "ldiskfs")]
    stripes = {array.full_stripe_bytes for array in arrays}
    return stripes.pop() if len(stripes) == 1 else None


def _check_log(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem
) -> Iterator[LayoutFault | CheckedItem]:
    disk = find_top_disk(observed_storage, file_system)
    if file_system.log is not None:
        yield CheckedItem("log", file_system.location)
    small = file_system.size_bytes is not None and file_system.size_bytes < 8 * GIB
    if file_system.log is not None and file_system.log < SMALLEST_LOG and not small:
        yield LayoutFault(
            "log too small", file_system.location, f"the log has {format_bytes(file_system.log)}",
            f"writing that allocates stops growing at about {LEGACY_LOG_RATE / 1e6:.0f} to 350 MB/s, and creates wait",
            f"save the data, then make it with -l size={LEGACY_LARGEST_LOG // 4096}b (128 MiB) or more, or with an"
            " external log",
            ("log",),
        )  # fmt: skip
    if file_system.log_device and file_system.log_device.startswith("/dev/") and disk is not None:
        data_disks = {inner.name for inner in observed_storage.iterate_disks_below(disk.name)}
        if file_system.log_device.rsplit("/", 1)[-1] in data_disks:
            yield LayoutFault(
                "log on the same disks", file_system.location,
                f"its external log {file_system.log_device} is on a disk of the data",
                "every commit moves the heads away from the data", "put the log on a mirror of its own",
            )  # fmt: skip


def _has_planned_groups(file_system: ObservedFileSystem, planned_layout: FileSystemLayout | None) -> bool:
    planned = planned_layout.groups if planned_layout is not None else None
    return planned is not None and (planned.count, planned.size) == (file_system.group_count, file_system.group_blocks)


def _check_groups(
    file_system: ObservedFileSystem, planned_layout: FileSystemLayout | None
) -> Iterator[LayoutFault | CheckedItem]:
    if file_system.group_count is None or file_system.group_blocks is None or not file_system.block:
        return
    yield CheckedItem("allocation groups", file_system.location)
    size = file_system.group_blocks * file_system.block
    large = file_system.size_bytes is not None and file_system.size_bytes >= 64 * GIB
    if file_system.group_count < _FEW_GROUPS and large:
        yield LayoutFault(
            "too few allocation groups", file_system.location,
            f"it has {format_count_with_noun(file_system.group_count, 'allocation group')}",
            "creates and allocations at the same time wait for each other",
            "grow it (xfs_growfs), or save the data and make it with -d agcount=16 or more",
        )  # fmt: skip
    beginnings = (file_system.device[:9], file_system.device[:4], file_system.location[:9])
    legacy = bool({"/dev/dsk/", "/hw/"} & set(beginnings)) or size <= 4 * GIB
    is_planned = _has_planned_groups(file_system, planned_layout)
    if (
        not is_planned
        and file_system.group_count > _MANY_GROUPS
        and file_system.size_bytes is not None
        and file_system.size_bytes // file_system.group_count < 16 * GIB
    ):
        grown = "" if not legacy else ", the size that mkfs of 2004 chose"
        yield LayoutFault(
            "too many allocation groups", file_system.location,
            f"it has {file_system.group_count:,} allocation groups of {format_bytes(size)}{grown}",
            "large files are cut at the ends of groups, and allocation takes processor time when it is nearly full",
            "save the data, then make it with fewer groups (-d agsize=), up to 1 TiB each",
        )  # fmt: skip
    elif size < _SMALL_GROUP and large and not is_planned:
        yield LayoutFault(
            "too many allocation groups", file_system.location,
            f"groups have {format_bytes(size)} only (a file system that was grown?)",
            "large files are cut at the ends of groups", "save the data, then make it again at its final size",
        )  # fmt: skip
    if file_system.unit and size % file_system.unit:
        yield LayoutFault(
            "groups are not aligned", file_system.location,
            f"a group has {file_system.group_blocks} blocks, no whole number of stripe units of "
            f"{file_system.unit // file_system.block}",
            "every group begins at another place in a stripe",
            "save the data, then make it with agsize a multiple of sunit",
        )  # fmt: skip
    if (
        file_system.width
        and file_system.unit
        and file_system.width > file_system.unit
        and size % file_system.width == 0
        and file_system.group_count > 1
    ):
        yield LayoutFault(
            "groups begin on one drive", file_system.location,
            f"a group has {file_system.group_blocks} blocks, a multiple of swidth: all of them begin on the same drive",
            "headers of all groups, which every allocation writes, lie on one drive",
            "save the data, then make it with agsize one sunit smaller",
        )  # fmt: skip


def _check_blocks(
    observed_storage: ObservedStorage, file_system: ObservedFileSystem, planned_layout: FileSystemLayout | None
) -> Iterator[LayoutFault | CheckedItem]:
    unit, _ = find_unit_and_stripe_below(observed_storage, file_system, planned_layout)
    if file_system.block and unit and file_system.block >= unit > 4096:
        yield LayoutFault(
            "blocks as large as segments", file_system.location,
            f"a block has {format_bytes(file_system.block)}, a drive holds {format_bytes(unit)} before the next",
            "the smallest file and every piece of metadata take a whole segment",
            "save the data, then make it with -b size=4096",
        )  # fmt: skip
