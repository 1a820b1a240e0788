# SPDX-License-Identifier: Apache-2.0
"""Compares every attribute of parts that have one role: members of an array, paths of a map, physical volumes of a
group, arrays, maps and targets alike. An attribute in which a part differs from its peers is a fault with both values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_path_identity import find_foreign_paths
from sonde.design.layout.check_peers import find_disk_of_partition
from sonde.design.layout.check_planned_pools import find_vdev_disk
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.peer_groups import PeerGroup, group_targets
from sonde.design.layout.peer_mounts import group_mounts

# In groups of parts that are only likely to be alike, the odd ones are at most this fraction.
_MAX_ODD_FRACTION = 1 / 3
_MIN_PEERS = 3
# Attributes that identify a part, count something or follow from its model: they differ between equals.
_INDIVIDUAL_ATTRIBUTE_PATTERN = re.compile(
    r"name|(?:full_)?array_name|inactive_members|spare_group|number|links|serial|wwn|wwid|uuid|fs_uuid|fs_label|mountpoint"
    r"|partlabel|hctl|ata_port|model|rev|vendor|product"
    r"|rotational|size|slots|(?:spare|journal)_devices|spares|failed|degraded|sync_action|sync_completed|sync_speed|mismatch_cnt"
    r"|reshape_position|resync_start|array_state|devices|raid_disks|level|used_bytes|superblock_version|array_size"
    r"|volume_group|volume_type|origin|data_percent|metadata_percent|copy_percent|pool|lvm_kernel_name|twice|mapper_targets|group_of_pv|volume_bytes|device_bytes|bad_blocks|map_size|dev"
    r"|access_state|queueing|preferred_path|device_b\w+|\w+_busy|inflight|stat|cntlid|address|firmware_rev|numa_node|nsid|nguid"
    r"|eui|\w+nqn|hostid|local_cpu\w*|sync_m\w+|new_dev|reshape_direction|io_poll_delay|queue_count|sqsize"
    r"|health|smart_\w+|used_percent|mapper_unit|write_mostly|failfast|io\w+_cnt|evt_media_change|modalias|uevent|type|scsi_level|inquiry|sas_\w+|vpd_pg\w+"
    r"|max_segment\w*|max_integrity_segments|max_discard_segments|max_hw_sectors_kb|dma_alignment|virt_boundary_mask"
    r"|discard_\w+|write_same_max_bytes|write_zeroes\w*|zone_\w+|nr_zones|max_open_zones|max_active_zones"
    r"|stripe_cache_active|last_sync_action|consistency_policy|rd\d+|component_size|protection|block_device_state"
    r"|bitmap/(?:backlog|can_clear|location|max_backlog_used|space|time_base|metadata)|uuid_sub|suspend_\w+|safe_mode\w*"
    r"|configured_\w+|array_uuid|superblock_\w+|(?:port_)?max_link_\w+"
    r"|failed_devices|%rd|avg \w+|maxor|nor|wait|sz/GBs"  # the second and later ones are counters of pm
)
_TARGET_PATTERN = re.compile(r"(\w+[-:=](?:OST|MDT))[0-9a-f]{4}")
_QUEUE_SETTINGS = frozenset(
    {"write_cache", "scheduler", "read_ahead_kb", "nr_requests", "max_sectors_kb", "queue_depth"}
)
# Attributes that follow from the chunk of an array.
_OF_THE_UNIT = frozenset({"width", "read_ahead_kb", "minimum_io_size", "optimal_io_size"})
# Names of attributes for people; without an entry the name itself.
_TITLES = {
    "timeout": "timeout of commands", "unit": "chunk", "data_start": "start of data", "extent_bytes": "extent size",
    "error_recovery": "error recovery", "rotation_rate": "rotation rate", "data_offset": "data offset",
    "tran": "transport", "fs_kind": "signature",
}  # fmt: skip
_DEFAULT_COST = "the {parts} do not behave alike: the slowest, or the one that gives up first, decides for all"
ATTRIBUTE_COSTS = {
    "timeout": "a drive or path is given up earlier or later than the others: it leaves its array, or all wait for it",
    "eh_timeout": "the recovery of this device takes another time than that of the others: all wait for it",
    "queue_depth": "this one has fewer or more commands under way than the others, and its requests wait longer",
    "nr_requests": "the scheduler sorts and merges fewer or more requests than on the others",
    "scheduler": "requests are sorted in another way than on the others",
    "read_ahead_kb": "readers get another amount ahead than from the others",
    "max_sectors_kb": "requests are split that are not split on the others, or the reverse",
    "write_cache": "a flush takes as long as the slowest of them needs",
    "error_recovery": "this drive repeats a bad read for another time than the others before it reports it",
    "rotation_rate": "its heads wait longer for each sector: the slowest drive decides for all",
    "data_offset": "this member was added in another way, and may be aligned in another way",
    "data_start": "extents begin at another offset than on the others, maybe within a stripe",
    "extent_bytes": "extents have another size than on the others",
    "layout": "parity and data lie on other drives than in the others, and reads have another rate",
    "unit": "another stripe than in the others: requests that suit them are parts of stripes here",
    "metadata": "data begins at another offset, and older versions have smaller limits",
    "bitmap": "writes, or the synchronization after a crash, take another time than in the others",
    "bitmap_position": "writes of its bitmap go to other drives than those of the others",
    "bitmap/chunksize": "the bitmap is written more or less often than that of the others",
    "stripe_cache_size": "full stripes are gathered better or worse than in the others",
    "group_thread_cnt": "another number of threads computes parity than in the others",
    "sync_speed_max": "a rebuild takes another time than that of the others",
    "zoned": "one of them is zoned: writes to it must be sequential",
    "tran": "this drive is connected in another way than the others, with other rates and error handling",
    "fs_kind": "tools take this one for something else, and may assemble, mount or overwrite it",
    "policy": "requests are spread over paths in another way than on the others",
    "features": "it behaves in another way than the others when all of its paths are lost",
    "handler": "a change of the controller is handled in another way than on the others",
    "path groups": "another number of paths is used at a time than on the others",
    "members": "it has another capacity and bandwidth than the others",
}

_DEFAULT_REMEDY = "give it the value of the others, or find out why it has another one"
_CLASS_REMEDY = "replace it by a drive of the class of the others"
# Attributes that define the class of a drive. A newer model of the same class is no difference.
_CLASS_ATTRIBUTES = ("rotation_rate", "tran")


def find_attribute_differences(
    observed_storage: ObservedStorage,
    targets: Sequence[ObservedFileSystem],
    planned_values: Mapping[tuple[str, str], str] | None = None,
) -> Iterator[LayoutFault | CheckedItem]:
    """All attributes in which a part differs from its peers, each once. `targets` are the targets of Lustre to compare.
    Parts with different `planned_values` (by part and attribute) of an attribute are no peers in it."""
    yield from find_foreign_paths(observed_storage)
    yield from find_group_differences([*_list_groups(observed_storage), *group_targets(targets)], planned_values or {})


def find_group_differences(
    groups: Iterable[PeerGroup], planned_values: Mapping[tuple[str, str], str]
) -> Iterator[LayoutFault | CheckedItem]:
    """All attributes in which a part of a group differs from the others, each once."""
    reported: set[tuple[str, str]] = set()
    for group in groups:
        names = dict.fromkeys(attribute for values in group.peers.values() for attribute in values)
        for attribute in sorted(names, key=lambda name: name in _OF_THE_UNIT):
            values = {part: peer[attribute] for part, peer in group.peers.items() if attribute in peer}
            if len(values) < (2 if group.is_strict else _MIN_PEERS):
                continue
            yield CheckedItem(f"{_TITLES.get(attribute, attribute)} of {group.parts}", group.location or group.parts)
            differences = (difference for peers in _split_by_plan(group, attribute, values, planned_values)
                           for difference in _describe_differences(group, attribute, peers))  # fmt: skip
            for parts, problem in differences:
                part = parts[0]
                follows = attribute in _OF_THE_UNIT and (part, "unit") in reported
                if (part, attribute) not in reported and not follows:
                    reported.add((part, attribute))
                    cost = ATTRIBUTE_COSTS.get(attribute, _DEFAULT_COST.format(parts=group.parts))
                    yield LayoutFault(
                        "differs from its peers", part, problem, cost,
                        _CLASS_REMEDY if attribute in _CLASS_ATTRIBUTES else _DEFAULT_REMEDY, (attribute,),
                        parts if len(parts) > 1 else (),
                    )  # fmt: skip


def drop_repeated_differences(
    faults_and_checked_items: Iterable[LayoutFault | CheckedItem],
) -> list[LayoutFault | CheckedItem]:
    """The results without differences between peers whose parts and attribute another fault is about, and without
    those between members of an array of which all are faults against the plan."""
    all_results = list(faults_and_checked_items)
    faults = [each for each in all_results if isinstance(each, LayoutFault)]
    others = [each for each in faults if each.kind != "differs from its peers"]
    planned = [each for each in faults if each.kind == "not as planned"]
    devices = [each for each in faults if each.kind in ("target with another name", "vdev not planned")]
    covering = {
        "differs from its peers": others,
        "unequal members of a stripe": planned,
        "not as planned": devices,
    }
    covered = {kind: {pair for other in others for pair in _list_covered(other)} for kind, others in covering.items()}
    return [
        each for each in all_results
        if not isinstance(each, LayoutFault) or not _is_covered(each, covered.get(each.kind, set()))
    ]  # fmt: skip


def _split_by_plan(
    group: PeerGroup,
    attribute_name: str,
    value_by_part: Mapping[str, str],
    planned_values: Mapping[tuple[str, str], str],
) -> Iterator[Mapping[str, str]]:
    """The observed values of parts for which the plan has the same value. A member without a planned value, as a spare
    that took over, is compared with the others of its array."""
    peers_by_value: dict[str, dict[str, str]] = {}
    for part, value in value_by_part.items():
        peers_by_value.setdefault(planned_values.get((part, attribute_name), ""), {})[part] = value
    if group.is_strict and len(peers_by_value.keys() - {""}) < 2:
        yield value_by_part
        return
    yield from (peers for peers in peers_by_value.values() if group.is_strict or len(peers) >= _MIN_PEERS)


def _list_covered(fault: LayoutFault) -> Iterator[tuple[str, str]]:
    """The parts and attributes that a fault is about."""
    for part in fault.parts or (fault.location,):
        yield from ((part, attribute) for attribute in fault.attributes)


def _is_covered(difference: LayoutFault, covered: Container[tuple[str, str]]) -> bool:
    # where no value is that of most parts, a fault of any of them explains the difference
    is_enough = any if difference.kind == "differs from its peers" else all
    parts = difference.parts or (difference.location,)
    return any(is_enough((part, attribute) in covered for part in parts) for attribute in difference.attributes)


def _describe_differences(
    group: PeerGroup, attribute_name: str, value_by_part: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The odd parts, each with a sentence; all of them in a strict group without a majority."""
    counts = Counter(value_by_part.values()).most_common()
    title = _TITLES.get(attribute_name, attribute_name)
    if len(counts) < 2:
        return
    common, count = counts[0]
    has_majority = counts[1][1] < count and 2 * count > len(value_by_part)
    odd = [part for part, value in value_by_part.items() if value != common
           and not (attribute_name == "rotation_rate" and _is_faster(value, common))]  # fmt: skip
    if has_majority and (group.is_strict or len(odd) <= _MAX_ODD_FRACTION * len(value_by_part)):
        for part in odd:
            yield (
                (part,),
                f"{title} is {value_by_part[part]}; on {count} of {len(value_by_part)} {group.parts} it is {common}",
            )
    elif group.is_strict:
        texts = ", ".join(f"{value} on {' '.join(part for part in value_by_part if value_by_part[part] == value)}"
                          for value, _ in counts)  # fmt: skip
        yield tuple(value_by_part), f"{title} is not the same on all {group.parts}: {texts}"


def _is_faster(rotation_rate: str, other_rate: str) -> bool:
    return int(rotation_rate.split()[0]) > int(other_rate.split()[0])


def _list_groups(observed_storage: ObservedStorage) -> Iterator[PeerGroup]:
    disks = list(observed_storage.disks.values())
    for disk in disks:
        if disk.kind == "md" and disk.level not in ("", "linear"):
            yield from _group_by_technology(observed_storage, f"members of {disk.name}", disk.members, disk.name)
        if len(disk.paths) > 1:
            yield _make_path_group(observed_storage, disk)
        if disk.level == "raid0" and disk.kind != "md" and len(disk.members) > 1:
            yield from _group_volume_members(observed_storage, disk)
    for pool in observed_storage.file_systems:
        names = [find_vdev_disk(observed_storage, vdev.name).name for vdev in pool.vdevs
                 if vdev.kind == "drive" and not vdev.use]  # fmt: skip
        yield from _group_by_technology(observed_storage, f"drives of {pool.location}", names, pool.location)
    yield from _group_physical_volumes(observed_storage)
    members = [name for disk in disks if disk.kind == "md" for name in disk.members]
    yield from _group_by_technology(observed_storage, "drives of all arrays", members, "")
    yield from group_arrays(observed_storage)
    yield from _group_maps(observed_storage, disks)
    yield from group_mounts(observed_storage.file_systems)
    yield from _group_single_drives(observed_storage)


def _select_attributes(attributes: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in attributes.items() if value and not _INDIVIDUAL_ATTRIBUTE_PATTERN.fullmatch(name)
    }


def read_peer_attributes(disk: ObservedDisk) -> dict[str, str]:
    """The attributes of a device that its peers should have alike."""
    attributes = dict(_select_attributes({**disk.settings, **disk.queue}))
    if scheduler := re.search(r"\[([\w-]+)\]", attributes.get("scheduler", "")):
        attributes["scheduler"] = scheduler[1]
    if disk.queue_depth is not None:
        attributes["queue_depth"] = str(disk.queue_depth)
    return attributes


def _group_by_technology(
    observed_storage: ObservedStorage, parts_noun: str, disk_names: Sequence[str], location: str
) -> Iterator[PeerGroup]:
    """Members of arrays, those of flash apart: other settings suit them. A partition has the queue of its drive."""
    groups: dict[object, dict[str, dict[str, str]]] = {}
    for name in dict.fromkeys(disk_names):
        drive = observed_storage.disks.get(find_disk_of_partition(observed_storage, name))
        member = observed_storage.disks.get(name)
        if drive is None or drive.kind not in ("disk", "part", "multipath"):
            continue
        attributes = read_peer_attributes(drive) | (read_peer_attributes(member) if member is not None else {})
        if drive.settings.get("model") and drive.settings.get("rev"):
            attributes[f"firmware of {drive.settings['model'].strip()}"] = drive.settings["rev"].strip()
        if location:
            attributes |= _read_rotation_rate(observed_storage, drive)
        else:
            attributes.pop("rotation_rate", None)  # another array may be of slower drives
        size = drive.size if not location else None  # drives of other sizes have other purposes
        groups.setdefault((drive.flash, size), {})[name] = attributes
    for peers in groups.values():
        yield PeerGroup(parts_noun, peers, bool(location), location)


def _read_rotation_rate(observed_storage: ObservedStorage, drive: ObservedDisk) -> dict[str, str]:
    """The rotation rate of a drive; smartctl prints that of a map for its paths."""
    disks = [drive, *(observed_storage.disks[path.name] for path in drive.paths if path.name in observed_storage.disks)]
    rates = [disk.settings["rotation_rate"] for disk in disks if disk.settings.get("rotation_rate")]
    return {"rotation_rate": rates[0]} if rates else {}


def _make_path_group(observed_storage: ObservedStorage, disk: ObservedDisk) -> PeerGroup:
    name = disk.settings.get("name") or disk.name
    peers = {}
    for path in disk.paths:
        device = observed_storage.disks.get(path.name)
        if device is not None:
            identity = {key: device.settings[key] for key in ("model", "rev", "vendor")
                        if device.settings.get(key)}  # fmt: skip
            size = {"size": str(device.size)} if device.size is not None else {}
            peers[path.name] = read_peer_attributes(device) | identity | size
    return PeerGroup(f"paths of {name}", peers, True, disk.name)


def _group_volume_members(observed_storage: ObservedStorage, disk: ObservedDisk) -> Iterator[PeerGroup]:
    """The arrays or maps below a striped volume; those of another geometry are a fault of the volume."""
    groups: dict[object, dict[str, dict[str, str]]] = {}
    for name in disk.members:
        for below in observed_storage.iterate_disks_below(name):
            if below.kind in ("md", "multipath", "lun"):
                attributes = read_peer_attributes(below)
                attributes.pop("fs_kind", None)  # a partition below the volume may hold it
                attributes |= {"map_size": below.settings["map_size"]} if "map_size" in below.settings else {}
                groups.setdefault((below.kind, below.geometry, below.unit), {})[below.name] = attributes
                break
    for peers in groups.values():
        yield PeerGroup(f"members of {disk.name}", peers, True, disk.name)


def _group_physical_volumes(observed_storage: ObservedStorage) -> Iterator[PeerGroup]:
    """Physical volumes of a group on equal stripes: data begins at a multiple of the stripe below."""
    groups: dict[tuple[str, int | None], dict[str, dict[str, str]]] = {}
    for disk in observed_storage.disks.values():
        if group := disk.settings.get("group_of_pv", ""):
            below = observed_storage.iterate_disks_below(disk.name)
            stripe = next((each.full_stripe_bytes for each in below if each.full_stripe_bytes), None)
            values = {key: disk.settings[key] for key in ("data_start", "extent_bytes") if key in disk.settings}
            groups.setdefault((group, stripe), {})[disk.name] = values
    for (group, _), peers in groups.items():
        yield PeerGroup(f"physical volumes of {group}", peers, True, group)


def group_arrays(observed_storage: ObservedStorage) -> Iterator[PeerGroup]:
    """Arrays of one level and number of drives on drives of one technology and size. Two that hold parts of one role,
    as two targets of one file system, must agree."""
    groups: dict[tuple[str, object], dict[str, dict[str, str]]] = {}
    for disk in observed_storage.disks.values():
        if disk.kind != "md" or disk.level in ("", "linear", "raid1"):
            continue
        drives = [observed_storage.disks[name] for member in disk.members
                  if (name := find_disk_of_partition(observed_storage, member)) in observed_storage.disks]  # fmt: skip
        sizes = {drive.size for drive in drives}
        is_flash = {drive.flash for drive in drives} == {True}
        key = (disk.level, (disk.data, len(sizes) == 1 and sizes.pop(), is_flash))
        unit = {"unit": str(disk.unit)} if disk.unit else {}
        position = disk.settings.get("bitmap_position", "")
        attributes = read_peer_attributes(disk) | unit
        attributes.pop("fs_kind", None)  # arrays may hold different file systems
        if position.startswith("/"):
            attributes["bitmap_position"] = "a file"  # each array has its own
        groups.setdefault(key, {})[disk.name] = attributes
    for role_key, peers in groups.items():
        roles = {_read_role(observed_storage.disks[name]) for name in peers}
        is_strict = len(peers) == 2 and len(roles) == 1 and roles != {""}
        yield PeerGroup(f"arrays of {role_key[0]}", peers, is_strict, key=role_key)


def _read_role(disk: ObservedDisk) -> str:
    """The label of a target, or the mount point, with * for its number; "" where there is none."""
    label, mount_point = disk.settings.get("fs_label", ""), disk.settings.get("mountpoint", "")
    if match := _TARGET_PATTERN.fullmatch(label):
        return f"{match[1]}*"
    return re.sub(r"\d+", "*", mount_point) if re.search(r"\d", mount_point) else ""


def _group_maps(observed_storage: ObservedStorage, disks: Sequence[ObservedDisk]) -> Iterator[PeerGroup]:
    """Multipath maps of one product, and all of their paths."""
    groups: dict[str, list[ObservedDisk]] = {}
    for disk in disks:
        if disk.kind == "multipath" and disk.paths:
            groups.setdefault(disk.settings.get("product", ""), []).append(disk)
    for product, maps in groups.items():
        peers = {}
        for disk in maps:
            path_groups = {path.group for path in disk.paths if path.group is not None}
            attributes = {name: text for name, text in read_peer_attributes(disk).items() if name != "fs_kind"}
            peers[disk.name] = attributes | ({"path groups": str(len(path_groups))} if path_groups else {})
        noun = f" of {product}" if product else ""
        yield PeerGroup(f"maps{noun}", peers, False)
        names = [path.name for disk in maps for path in disk.paths if path.name in observed_storage.disks]
        paths = {name: read_peer_attributes(observed_storage.disks[name]) for name in names}
        yield PeerGroup(f"paths of all maps{noun}", paths, False)


def _group_single_drives(observed_storage: ObservedStorage) -> Iterator[PeerGroup]:
    """Drives that hold one thing by themselves, as those of object stores: with a file system, or below one volume."""
    disks = observed_storage.disks.values()
    joined = {name for disk in disks if len(disk.members) > 1 or disk.kind in ("md", "multipath")
              for name in (*disk.members, *disk.settings.get("spare_devices", "").split())}  # fmt: skip
    joined |= {path.name for disk in disks for path in disk.paths}
    joined |= {find_vdev_disk(observed_storage, vdev.name).name
               for pool in observed_storage.file_systems for vdev in pool.vdevs}  # fmt: skip
    names_by_kind: dict[str, list[str]] = {}
    for disk in disks:
        if disk.kind == "disk" and disk.name not in joined and disk.settings.get("fs_kind"):
            names_by_kind.setdefault(disk.settings["fs_kind"], []).append(disk.name)
    for kind, names in names_by_kind.items():
        for group in _group_by_technology(observed_storage, f"single drives with {kind}", names, ""):
            yield replace(group, peers={name: {key: values[key] for key in _QUEUE_SETTINGS & set(values)}
                                        for name, values in group.peers.items()})  # fmt: skip
