# SPDX-License-Identifier: Apache-2.0
"""Checks what an array still bears: missing drives, spares, the bitmap; and how a disk is reached by several paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_scrubs import CHECK_ACTIONS
from sonde.design.layout.check_stripe_units import find_top_disk
from sonde.design.layout.check_write_journals import lacks_journal, list_failed_journals
from sonde.design.layout.device_use import SYSTEM_MOUNT_POINTS
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.md_output import REDUNDANT_LEVELS, WAITING_RESYNC
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.model.units import format_bytes

_TOLERATED_FAILURES = {"raid0": 0, "linear": 0, "raid4": 1, "raid5": 1, "raid6": 2}
_LONG_REBUILD_DAYS = 4
_LOCAL_KINDS = ("xfs", "ext2", "ext3", "ext4", "btrfs")
_USED_SHARE = 0.9
# States of arrays of md and of SCSI devices in which no request, or no write, succeeds: kind, problem, cost, remedy.
_ARRAY_STATES = {
    "readonly": ("array read-only", "md does not write to it (array_state is readonly)", "every write fails",
                 "look at the log of the kernel for the reason, then mdadm --readwrite it"),
    "broken": ("array broken", "more of its drives are lost than it bears (array_state is broken)",
               "requests to it fail", "look for the drives (slot, cable, lsblk), mdadm --stop it, then mdadm --assemble"
               " it, and check its file system"),
}  # fmt: skip
_SILENT_STATES = {
    "transport-offline": "the transport has given the device up: no request reaches it",
    "blocked": "the transport recovers, or waits for the device: its requests wait",
    "quiesce": "the driver holds all requests to it", "offline": "the kernel has given the device up after errors",
}  # fmt: skip
_FINE_STATES = frozenset(
    {
        "",
        "optimal",
        "active",
        "running",
        "live",
        "clean",
        "optimal active",
        "active sync",
        "checking",
        "resyncing",
        "recovering",
    }
)  # the action of md is another fault, or none


def find_redundancy_faults(
    observed_storage: ObservedStorage, disk: ObservedDisk
) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of the state, the spares and the bitmap of one disk."""
    missing = _read_disk_count(disk, "degraded")
    state = disk.state.lower().strip()
    is_degraded = bool(missing) or "degraded" in _split_state(state)
    if (disk.kind == "md" and missing is not None) or state:
        yield CheckedItem("state", disk.name)
    if is_degraded:
        lost = max(1, missing or 0)
        noun = "a drive" if lost == 1 else f"{lost} drives"
        yield LayoutFault(
            "degraded", disk.name,
            f"{disk.level or disk.kind} {disk.name} runs with {noun} missing"
            f"{_describe_failed_members(observed_storage, disk)}{_describe_idle_spares(observed_storage, disk)}",
            f"reads of what it held are computed from all others; {_describe_margin(disk, lost)}",
            "replace the drive (mdadm --manage --add)",
        )  # fmt: skip
    else:
        yield from _check_device_state(disk, state)
    failed = (_read_disk_count(disk, "failed") or 0) - len(list_failed_journals(disk))
    if failed > 0 and not is_degraded:
        yield LayoutFault(
            "failed drive in an array", disk.name,
            f"{failed} of its devices are marked as failed{_describe_failed_members(observed_storage, disk)}",
            "a spare took over, or the failed one was a spare: fewer drives can take over next time",
            "mdadm --manage --remove it, and add a new one",
        )  # fmt: skip
    yield from _check_metadata(disk)
    action = disk.settings.get("sync_action", "idle")
    if action == "frozen":
        yield LayoutFault(
            "rebuild is frozen", disk.name, "sync_action is frozen", "no spare takes over when a drive fails",
            "echo idle > md/sync_action",
        )  # fmt: skip
    if action == WAITING_RESYNC:
        yield LayoutFault(
            "resync waits", disk.name, "md has to synchronize its members and has not begun (PENDING or DELAYED)",
            "until then parity may not belong to the data: a drive that fails now can cost data",
            f"mdadm --readwrite /dev/{disk.name} where it is (auto-read-only), else wait for the other array",
        )  # fmt: skip
    elif action not in ("idle", "", "frozen", *CHECK_ACTIONS):
        noun = "rebuild" if action.startswith("recover") else action
        yield LayoutFault(
            "rebuilding", disk.name, f"md is busy: {action}", f"the {noun} takes its share of every drive's rate",
            "measure after it has ended (cat /proc/mdstat)",
        )  # fmt: skip
    yield from _check_bitmap(disk)
    yield from _check_rebuild_rate(disk)


def _split_state(state: str) -> set[str]:
    return {text.strip(",") for text in state.split()}


def _check_device_state(disk: ObservedDisk, state: str) -> Iterator[LayoutFault]:
    """States of devices without a missing drive in which requests fail or wait."""
    array_state = disk.settings.get("array_state", "")
    if lacks_journal(disk):
        return  # the cause, which has its own finding
    if array_state in _ARRAY_STATES and disk.kind == "md":
        kind, problem, cost, remedy = _ARRAY_STATES[array_state]
        yield LayoutFault(kind, disk.name, problem, cost, remedy)
    elif state in _SILENT_STATES and disk.kind == "disk":
        yield LayoutFault(
            "not optimal", disk.name, f"its state is {disk.state}", _SILENT_STATES[state],
            "look at cable and port, and at the drive or LUN in the log of the kernel; when it is back, echo running >"
            " device/state",
        )  # fmt: skip
    elif state not in _FINE_STATES and not _split_state(state) <= _FINE_STATES:
        yield LayoutFault(
            "not optimal", disk.name, f"its state is {disk.state}", "paths, spares or data are missing",
            "ask the log of the RAID controller or of md",
        )  # fmt: skip


def _list_names_of_devices(observed_storage: ObservedStorage, names_text: str) -> list[str]:
    """Names of the kernel, those of maps with the name of the map, which says where the drive is."""
    maps = {
        name: observed_storage.disks[name].settings.get("name", "")
        for name in names_text.split()
        if name in observed_storage.disks
    }
    return [f"{name} ({maps[name]})" if maps.get(name, name) not in ("", name) else name for name in names_text.split()]


def _describe_failed_members(observed_storage: ObservedStorage, array: ObservedDisk) -> str:
    journals = array.settings.get("journal_devices", "").split()
    failed = [name for name in array.settings.get("failed_devices", "").split() if name not in journals]
    names = _list_names_of_devices(observed_storage, " ".join(failed))
    return f"; failed: {', '.join(names)}" if names else ""


def _describe_idle_spares(observed_storage: ObservedStorage, array: ObservedDisk) -> str:
    """Spares of a degraded array that is not rebuilt, as far as an output shows whether it is."""
    is_idle = array.settings.get("sync_action", "idle" if array.state else "") == "idle"
    spares = _list_names_of_devices(observed_storage, array.settings.get("spare_devices", ""))
    return f"; no rebuild runs, although it has the spare {', '.join(spares)}" if is_idle and spares else ""


def _check_rebuild_rate(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """How long a rebuild takes at the largest rate that md is allowed."""
    rate = re.match(r"\d+", disk.settings.get("sync_speed_max", ""))
    size = min((size for size in disk.member_sizes if size), default=0)
    if rate is None or not size or disk.level in ("raid0", "linear"):
        return
    yield CheckedItem("the rate of a rebuild", disk.name)
    days = size / (max(1, int(rate[0])) * 1024) / 86400
    if days > _LONG_REBUILD_DAYS:
        yield LayoutFault(
            "rebuild too slow", disk.name,
            f"sync_speed_max is {rate[0]} KiB/s: the rebuild of a drive of {format_bytes(size)} takes {days:.0f} days",
            "another drive may fail in that time", "echo 200000 > md/sync_speed_max", ("sync_speed_max",),
        )  # fmt: skip


def _check_metadata(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """The version of the metadata, where parity lies, and how much of each member is used."""
    settings = disk.settings
    if settings.get("metadata"):
        yield CheckedItem("metadata", disk.name)
    if settings.get("metadata", "").startswith("0."):
        yield LayoutFault(
            "old metadata", disk.name, f"its metadata have version {settings['metadata']}",
            "at most 28 devices of 2 TiB, and a partition at the end of a drive is taken for the whole drive",
            "assemble it with --update=metadata (1.0), or save the data and make it again with 1.2", ("metadata",),
        )  # fmt: skip
    layout = settings.get("layout", "")
    if layout.startswith("parity-"):
        yield LayoutFault(
            "parity on one drive", disk.name, f"its layout is {layout}: one drive holds all parity",
            "each write of any drive also writes this one, and reads never use it",
            "mdadm --grow --layout=left-symmetric", ("layout",),
        )  # fmt: skip
    used, size = _read_disk_count(disk, "used_bytes"), min((size for size in disk.member_sizes if size), default=0)
    if used and size:
        yield CheckedItem("the used part of members", disk.name)
        if used < _USED_SHARE * size:
            yield LayoutFault(
                "members partly unused", disk.name,
                f"it uses {format_bytes(used)} of the {format_bytes(size)} of each member: the rest is unused",
                "capacity is lost", "mdadm --grow --size=max, then grow the file system",
            )  # fmt: skip


def _read_disk_count(disk: ObservedDisk, fact_name: str) -> int | None:
    value = disk.settings.get(fact_name, "")
    return int(value) if value.isdigit() else None


def _describe_margin(disk: ObservedDisk, lost: int) -> str:
    """States the consequence of the loss of another drive."""
    tolerated = _TOLERATED_FAILURES.get(disk.level)
    if tolerated is None:
        return "the loss of the copy of the same data loses it"
    remaining = tolerated - lost
    if remaining < 0:
        return "its data is lost"
    if remaining > 0:
        return f"{remaining} more may fail"
    return "one more loses everything"


def _check_bitmap(disk: ObservedDisk) -> Iterator[LayoutFault | CheckedItem]:
    """The write-intent bitmap of an md array with redundancy."""
    if disk.level not in REDUNDANT_LEVELS:
        return
    # with a journal or a partial parity log md knows without a bitmap what a crash has interrupted
    has_other_log = disk.settings.get("consistency_policy") in ("journal", "ppl")
    bitmap = disk.settings["consistency_policy"] if has_other_log else disk.settings.get("bitmap")
    if bitmap is not None:
        yield CheckedItem("bitmap", disk.name)
    if bitmap == "none":
        yield LayoutFault(
            "no bitmap", disk.name, f"{disk.level} {disk.name} has no write-intent bitmap",
            "after a crash or a lost path the whole array is synchronized again, for hours",
            "mdadm --grow --bitmap=internal, best with --bitmap-chunk=128M",
            ("bitmap", "bitmap_position", "bitmap/chunksize"),
        )  # fmt: skip


def find_path_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of the number, the grouping and the queues of the paths of disks."""
    disks = [disk for disk in observed_storage.disks.values() if disk.paths]
    failover_devices = list_failover_devices(observed_storage)
    adapters: dict[str, set[str]] = {}
    for disk in disks:
        adapters.setdefault(disk.settings.get("product", ""), set()).update(path.adapter for path in disk.paths)
    for disk in disks:
        yield from _check_paths(disk, adapters[disk.settings.get("product", "")] - {""})
        yield from _check_queueing(disk, can_fail_over=disk.name in failover_devices)


def _check_paths(disk: ObservedDisk, adapter_names: AbstractSet[str]) -> Iterator[LayoutFault | CheckedItem]:
    """`adapter_names` are the adapters with paths of disks of the same product."""
    yield CheckedItem("paths", disk.name)
    if len(disk.paths) == 1:
        yield LayoutFault(
            "single path", disk.name, f"it is reached by {disk.paths[0].name} alone",
            "it is lost with this port, cable or controller",
            "look at cables and zoning of the other port; a local drive belongs in the blacklist of multipath.conf",
        )  # fmt: skip
    groups: dict[int, int] = {}
    for path in disk.paths:
        if path.group is not None and path.priority is not None and not path.state.startswith("fail"):
            groups[path.group] = path.priority
    best = max(groups.values(), default=0)
    equal = [group for group, priority in groups.items() if priority == best]
    if len(equal) > 1:
        yield LayoutFault(
            "multipath policy", disk.name,
            f"{len(equal)} path groups have the same priority {best}: one group is used at a time",
            "equal paths are idle until the first ones fail",
            'path_grouping_policy "group_by_prio" or "multibus" in multipath.conf', ("path groups",),
        )  # fmt: skip
    yield from _check_adapters(disk, adapter_names)
    if disk.settings.get("protection") == "ro":
        yield LayoutFault(
            "write-protected", disk.name, "its map is read-only (wp=ro): a path or the LUN is write-protected",
            "every write fails", "look at the write protection of the LUN, then multipathd reconfigure",
        )  # fmt: skip
    handler = disk.settings.get("handler", "")
    if handler == "0" and len(set(groups.values())) > 1:
        yield LayoutFault(
            "no hardware handler", disk.name,
            "its path groups have different priorities, but hwhandler is 0",
            "the array is not told to change controllers: after a failover requests fail or are slow",
            'hardware_handler "1 alua" in multipath.conf', ("handler",),
        )  # fmt: skip
    policy = disk.settings.get("policy", "")
    if policy.startswith("round-robin") and len(disk.paths) > 1:
        yield LayoutFault(
            "multipath policy", disk.name, f"paths are chosen by {policy}",
            "a slow path gets as many requests as a fast one, and all wait for it",
            'path_selector "service-time 0" in multipath.conf', ("policy",),
        )  # fmt: skip


def _check_queueing(disk: ObservedDisk, *, can_fail_over: bool) -> Iterator[LayoutFault]:
    """Requests that fail at once, or wait without end, when no path is left."""
    features = disk.settings.get("features")
    # a server of a failover pair must lose its target at once, so that its partner takes it
    if features is not None and "queue_if_no_path" not in features and len(disk.paths) > 1 and not can_fail_over:
        yield LayoutFault(
            "no queue without paths", disk.name, "requests fail at once when all paths are lost",
            "the restart of a switch or controller of some seconds is an I/O error for the file system",
            "no_path_retry 30 in multipath.conf", ("features",),
        )  # fmt: skip
    is_endless = "queue_if_no_path" in (features or "") and "pg_init_retries" not in (features or "")
    if can_fail_over and _queues_for_ever(disk):
        yield LayoutFault(
            "queue without end", disk.name, "requests wait without end when all paths are lost (no_path_retry queue)",
            "the target hangs instead of failing: its partner takes it over only after this server is switched off",
            "no_path_retry fail, or a few retries, in multipath.conf, then multipathd reconfigure",
            ("queueing", "features"),
        )  # fmt: skip
    elif is_endless and len(disk.paths) == 1 and disk.settings.get("queueing", "on") in ("on", "-"):
        yield LayoutFault(
            "multipath policy", disk.name, "requests wait without end when its only path is lost",
            "processes hang until the path returns", "no_path_retry with a number in multipath.conf", ("features",),
        )  # fmt: skip


def _queues_for_ever(disk: ObservedDisk) -> bool:
    """Whether a map queues without a limit. multipath -ll shows the same features while a limit counts."""
    queueing, features = disk.settings.get("queueing"), disk.settings.get("features", "")
    return queueing == "on" or (queueing == "-" and "queue_if_no_path" in features)


def list_unknown_queueing(observed_storage: ObservedStorage) -> list[str]:
    """The maps that a partner takes over of which no output shows how long they queue."""
    devices = list_failover_devices(observed_storage)
    disks = [disk for disk in observed_storage.disks.values()
             if disk.name in devices and "queueing" not in disk.settings]  # fmt: skip
    names = [disk.settings.get("name") or disk.name for disk in disks
             if "queue_if_no_path" in disk.settings.get("features", "")]  # fmt: skip
    if not names:
        return []
    return [f"how long {join_first_names(names)} queue without a path: multipathd show maps status prints it"]


def list_failover_devices(observed_storage: ObservedStorage) -> set[str]:
    """The devices of a server with failover partners, without those below mounts that no partner takes over."""
    if not any(map(_has_failover_server, observed_storage.file_systems)):
        return set()
    disks = observed_storage.disks.values()
    tops = [disk for disk in disks if disk.settings.get("mountpoint") in (*SYSTEM_MOUNT_POINTS, "[SWAP]")]
    tops += [top for each in observed_storage.file_systems if each.options and each.kind in _LOCAL_KINDS
             if (top := find_top_disk(observed_storage, each)) is not None]  # fmt: skip
    local_names = {disk.name for top in tops for disk in observed_storage.iterate_disks_below(top.name)}
    return observed_storage.disks.keys() - local_names


def _has_failover_server(target: ObservedFileSystem) -> bool:
    """Whether the label of a target names a second server: all of them, or only the others of its first server."""
    servers = target.facts.get("failover", "").replace(":", " ").split()
    return len(servers) > ("no_primnode" in target.facts.get("flags", ""))


def _check_adapters(disk: ObservedDisk, adapter_names: AbstractSet[str]) -> Iterator[LayoutFault | CheckedItem]:
    adapters = {path.adapter for path in disk.paths}
    if "" in adapters:
        return
    yield CheckedItem("adapters", disk.name)
    if len(disk.paths) > 1 and len(adapters) == 1:
        others = " and ".join(f"host{adapter}" for adapter in sorted(adapter_names - adapters))
        yield LayoutFault(
            "one adapter for all paths", disk.name,
            f"all {len(disk.paths)} paths lead through host{adapters.pop()}"
            + f"; other disks of this kind also have paths through {others}" * bool(others),
            "all are lost with this adapter, and its link limits the disk",
            f"map and zone it to {others} too, then rescan" if others else "connect a second adapter, and zone it",
        )  # fmt: skip
