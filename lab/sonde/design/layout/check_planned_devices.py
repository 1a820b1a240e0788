# SPDX-License-Identifier: Apache-2.0
"""Compares the devices that a plan names with those that outputs show: members of arrays, volumes and pools, disks of
targets and file systems, and mount points."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_arrays import compare_arrays, find_absent_arrays
from sonde.design.layout.check_planned_pools import compare_pool
from sonde.design.layout.check_target_devices import find_unmounted_targets, list_target_labels
from sonde.design.layout.check_volumes import MISSING_VOLUME, UNPLANNED_TARGETS
from sonde.design.layout.device_identity import (
    describe_device,
    describe_planned_devices,
    find_planned_names,
    is_planned_device,
    split_device_arguments,
)
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import list_disks_below
from sonde.design.layout.planned_roles import TARGET_NAME_PATTERN
from sonde.design.layout.written_attributes import WrittenAttribute, group_by_command

# The subjects of the comparisons of devices by the command whose arguments name them.
DEVICE_SUBJECTS: Mapping[tuple[str, str], str] = {
    ("mdadm", ""): "the planned drives of an array", ("mdadm", "--create"): "the planned drives of an array",
    ("pvcreate", ""): "the planned physical volumes", ("vgcreate", ""): "the planned physical volumes",
    ("mkfs.lustre", ""): "the planned device of a target", ("mkfs.xfs", ""): "the planned device",
    ("mke2fs", ""): "the planned device", ("mount", ""): "the planned mount point",
}  # fmt: skip
_CHANGE_REMEDY = "exchange the devices, or change the plan if it is meant so"


@dataclass(frozen=True)
class _DeviceUse:
    """Use of a device: subject of the comparison, name in a sentence, and cost and remedy if another device is used."""

    subject: str
    owner: str
    cost: str
    remedy: str


_TARGET = _DeviceUse(
    "the planned device of a target", "it",
    "it has the bandwidth, redundancy and server of another device than planned",
    "look whether devices, aliases of maps or labels of two targets are exchanged, and correct those; the data is on"
    " the devices as it is: never make them again for this",
)  # fmt: skip
_FILE_SYSTEM = _DeviceUse(
    "the planned device", "it", "it has the bandwidth and redundancy of another device than planned",
    "mount the file system of the planned device, or move the data there",
)  # fmt: skip
_LOG = _DeviceUse(
    "the planned device of the log", "its log",
    "commits have the latency and redundancy of another device than planned",
    "mount it with the planned logdev= where its log is there; else save the data and make it with the planned one",
)  # fmt: skip


def find_device_faults(
    observed_storage: ObservedStorage,
    file_systems: Sequence[ObservedFileSystem],
    written: Sequence[WrittenAttribute],
    mount_points: Collection[str] = (),
) -> Iterator[LayoutFault | CheckedItem]:
    """Devices that are not where the plan puts them. Devices that no output identifies are not compared. `mount_points`
    are those that the plan has on any node."""
    names = {attribute.value for attribute in written if attribute.key == ("mkfs.lustre", "--fsname")}
    yield from _compare_client_mounts(observed_storage.file_systems, names, mount_points)
    yield from _compare_mount_sources(observed_storage.file_systems, names, written)
    commands = group_by_command(written)
    yield from compare_arrays(observed_storage, commands.values())
    if not names:  # the arrays of targets run on one server of a pair
        yield from find_absent_arrays(observed_storage, list(commands.values()), [
            *(each.location for each in file_systems), *_list_volume_names(observed_storage, commands.values())
        ])  # fmt: skip
    yield from _find_unplanned_layers(observed_storage, file_systems)
    targets = list_planned_targets(commands.values())
    yield from _compare_targets(observed_storage, targets)
    yield from find_unmounted_targets(observed_storage, targets)
    for options in commands.values():
        if ("vgcreate", "") in options:
            yield from _compare_volume_group(observed_storage, options["vgcreate", ""])
            yield from _compare_volume_members(observed_storage, options["vgcreate", ""])
        if ("zpool", "") in options:
            yield from compare_pool(observed_storage, file_systems, options["zpool", ""])
        for each in file_systems if ("mkfs.xfs", "-l logdev") in options else ():
            log = _find_disk(observed_storage, each.log_device or "")
            yield from _compare_device(observed_storage, log, options["mkfs.xfs", "-l logdev"], each.location, _LOG)
        for program in ("mkfs.xfs", "mke2fs"):
            for each in file_systems if (program, "") in options else ():
                disk = _find_disk(observed_storage, each.device)
                yield from _compare_device(observed_storage, disk, options[program, ""], each.location, _FILE_SYSTEM)
        if ("mount", "") in options:
            yield from _compare_mount_point(file_systems, options["mount", ""], mount_points)


def _list_volume_names(
    observed_storage: ObservedStorage, commands: Iterable[Mapping[tuple[str, str], str]]
) -> Iterator[str]:
    """The planned volume groups, and the volumes in them."""
    for options in commands:
        group = split_device_arguments(options.get(("vgcreate", ""), ""))[:1]
        yield from group
        yield from (disk.name for disk in observed_storage.disks.values()
                    if [disk.settings.get("volume_group")] == group)  # fmt: skip


def _find_unplanned_layers(
    observed_storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem]
) -> Iterator[LayoutFault]:
    """Mapped devices below a planned file system that no plan writes, as encryption or a cache."""
    names = {disk.name for disk in list_disks_below(observed_storage, tuple(file_systems))}
    for disk in observed_storage.disks.values():
        # raid5_ls and raid10 of LVM, thin-pool
        segment_kinds = {re.sub(r"^raid.*", "raid", segment.kind).removesuffix("-pool") for segment in disk.segments}
        for target in sorted((set(disk.settings.get("mapper_targets", "").split()) | segment_kinds) & set(
                UNPLANNED_TARGETS)) if disk.name in names else ():  # fmt: skip
            yield LayoutFault(
                "not as planned", disk.name, f"a layer that the plan does not have lies below: {target}",
                UNPLANNED_TARGETS[target], "make the file system on the planned device, or correct the plan",
                ("layer",),
            )  # fmt: skip


def _compare_volume_group(
    observed_storage: ObservedStorage, vgcreate_arguments: str
) -> Iterator[LayoutFault | CheckedItem]:
    group, *planned = split_device_arguments(vgcreate_arguments)
    for disk in list(observed_storage.disks.values()):
        if disk.settings.get("group_of_pv") != group or disk.name == MISSING_VOLUME:
            continue
        paths = find_planned_names(observed_storage, planned, disk)
        if paths is None:
            continue
        yield CheckedItem("the planned physical volumes", disk.name)
        if not paths:
            yield LayoutFault(
                "not as planned", disk.name,
                f"it is a physical volume of {group}; planned are {describe_planned_devices(planned[:4])}",
                "the volume lies on another device than planned, with other rates and failures", _CHANGE_REMEDY,
                ("physical volume",), planned=describe_planned_devices(planned[:4]),
            )  # fmt: skip


def _compare_volume_members(observed_storage: ObservedStorage, lvcreate_arguments: str) -> Iterator[LayoutFault]:
    """Planned physical volumes that a striped volume of the group does not use."""
    group, *planned = split_device_arguments(lvcreate_arguments)
    for disk in observed_storage.disks.values():
        if disk.settings.get("volume_group") != group or disk.level != "raid0":
            continue
        answers = [find_planned_names(observed_storage, planned, observed_storage.disks[name]) for name in disk.members
                   if name in observed_storage.disks]  # fmt: skip
        present = {path for paths in answers for path in paths or ()}
        absent = [path for path in planned if path not in present] if answers and None not in answers else []
        if absent:
            yield LayoutFault(
                "not as planned", disk.name,
                f"it does not use {describe_planned_devices(absent)}, which {'is' if len(absent) == 1 else 'are'}"
                " planned for it", "other capacity and bandwidth",
                "save the data, then make the volume again over all physical volumes", ("members",),
            )  # fmt: skip


def list_planned_targets(attributes_by_command: Iterable[Mapping[tuple[str, str], str]]) -> dict[str, str]:
    """The planned device of each target by its label."""
    targets = {}
    for options in attributes_by_command:
        if ("mkfs.lustre", "") in options:
            index = options.get(("mkfs.lustre", "--index"), "")
            role = "OST" if ("mkfs.lustre", "--ost") in options else "MDT"
            label = f"{options['mkfs.lustre', '--fsname']}-{role}{int(index):04x}" if index else "MGS"
            targets[label] = options["mkfs.lustre", ""]
    return targets


def _compare_targets(
    observed_storage: ObservedStorage, targets: Mapping[str, str]
) -> Iterator[LayoutFault | CheckedItem]:
    """The devices that have the labels of targets."""
    labels = list_target_labels(observed_storage)
    owners = {
        name: [
            label
            for label, path in targets.items()
            if is_planned_device(observed_storage, path, observed_storage.disks[name])
        ]
        for name in labels
    }
    done: set[str] = set()
    for name, label in labels.items():
        if label not in targets and not TARGET_NAME_PATTERN.fullmatch(label):
            continue
        disk = observed_storage.disks[name]
        missing = [target for target in owners[name] if target not in labels.values()]
        other = next((each for each, text in labels.items() if text in owners[name] and label in owners[each]), name)
        if missing and label not in owners[name]:
            yield CheckedItem("the planned device of a target", missing[0])
            yield LayoutFault(
                "target with another name", missing[0],
                f"it is missing: its device {describe_device(disk)} holds {label}",
                "clients look for one target in vain, and another one has or takes the name that this one has",
                "find out which target holds data (mount it as ldiskfs, read-only) before anything is written: only an"
                " empty one may be made again with the planned index (--index)",
                ("index", "file_system"), (missing[0], label),
            )  # fmt: skip
        elif other != name and label not in owners[name]:
            done.add(name)
            if other not in done:
                yield CheckedItem("the planned device of a target", label)
                yield _report_exchanged_targets(observed_storage, ((label, name), (labels[other], other)))
        elif label in targets:
            yield from _compare_device(observed_storage, disk, targets[label], label, _TARGET)


def _report_exchanged_targets(
    observed_storage: ObservedStorage, targets: tuple[tuple[str, str], tuple[str, str]]
) -> LayoutFault:
    names = tuple(sorted(label for label, _ in targets))
    texts = [f"{label} is on {describe_device(observed_storage.disks[name])}" for label, name in sorted(targets)]
    return LayoutFault(
        "not as planned", ", ".join(names), f"their devices are exchanged: {' and '.join(texts)}",
        _TARGET.cost, _TARGET.remedy, ("device",), (*names, *sorted(disk_name for _, disk_name in targets)),
    )  # fmt: skip


def _find_disk(observed_storage: ObservedStorage, device_path: str) -> ObservedDisk | None:
    """The disk that has the last part of a path as its name, or as that of its map."""
    name = device_path.rsplit("/", 1)[-1]
    disks = (
        disk for disk in observed_storage.disks.values() if name and name in (disk.name, disk.settings.get("name"))
    )
    return next(disks, None)


def _compare_device(
    observed_storage: ObservedStorage, disk: ObservedDisk | None, planned_path: str, location: str, use: _DeviceUse
) -> Iterator[LayoutFault | CheckedItem]:
    """Whether `disk` is the planned device of a target, file system or log, where an output identifies it."""
    answer = is_planned_device(observed_storage, planned_path, disk) if disk is not None else None
    if disk is None or answer is None:
        return
    yield CheckedItem(use.subject, location)
    if not answer:
        yield LayoutFault(
            "not as planned", location,
            f"{use.owner} is on {describe_device(disk)}; planned is {describe_planned_devices([planned_path])}",
            use.cost, use.remedy, ("device",), planned=describe_planned_devices([planned_path]),
        )  # fmt: skip


def _compare_mount_point(
    file_systems: Sequence[ObservedFileSystem], mount_arguments: str, mount_points: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    planned = split_device_arguments(mount_arguments)[-1]
    mounted = [each for each in file_systems if each.options and each.location.startswith("/")]
    # where several may be the planned one, which of them is elsewhere is not known
    for each in mounted if len({each.location for each in mounted}) == 1 else ():
        yield CheckedItem("the planned mount point", each.location)
        if each.location not in (planned, *mount_points):
            yield LayoutFault(
                "not as planned", each.location, f"it is mounted at {each.location}; planned is {planned}",
                f"programs that write to {planned} write to the file system below it", f"mount it at {planned}",
            )  # fmt: skip


def _compare_client_mounts(
    file_systems: Sequence[ObservedFileSystem], client_names: Collection[str], mount_points: Collection[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Where a client mounts a planned file system of Lustre: its source ends in the name of the file system."""
    for each in file_systems if mount_points else ():
        name = re.fullmatch(r"\S+:/(\w+)", each.device)
        if each.kind != "lustre" or name is None or name[1] not in client_names:
            continue
        yield CheckedItem("the planned mount point", each.location)
        if each.location not in mount_points:
            planned = " or ".join(mount_points)
            yield LayoutFault(
                "not as planned", each.location, f"it is mounted at {each.location}; planned is {planned}",
                f"programs that write to {planned} write to the file system below it", f"mount it at {planned}",
            )  # fmt: skip


def _compare_mount_sources(
    file_systems: Sequence[ObservedFileSystem], names: Collection[str], written: Sequence[WrittenAttribute]
) -> Iterator[LayoutFault | CheckedItem]:
    """The management servers in the source of a client's mount."""
    values = dict.fromkeys(each.value for each in written if each.key == ("mkfs.lustre", "--mgsnode"))
    planned = list(dict.fromkeys(address for value in values for address in re.split(r"[,:]", value)))
    for each in file_systems if planned and not any("$" in address for address in planned) else ():
        source = re.fullmatch(r"(\S+):/(\w+)", each.device)
        if each.kind != "lustre" or source is None or source[2] not in names:
            continue
        yield CheckedItem("the management servers of a mount", each.location)
        addresses = re.split(r"[,:]", source[1])
        if set(addresses) != set(planned):
            right_source = ":".join(values)
            yield LayoutFault(
                "not as planned", each.location,
                f"it is mounted from {source[1]}; planned management servers are {', '.join(planned)}",
                "the client cannot mount, or does not learn of changes, while the servers that it names are down",
                f"mount it from {right_source}:/{source[2]}, also in fstab", ("management",),
                planned=", ".join(planned),
            )  # fmt: skip
