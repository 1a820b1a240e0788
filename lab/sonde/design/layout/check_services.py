# SPDX-License-Identifier: Apache-2.0
"""Checks that the services run which the observed storage needs, and names failed units of storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.device_use import SYSTEM_MOUNT_POINTS
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.md_output import REDUNDANT_LEVELS
from sonde.design.layout.live.observations import ObservedStorage

_STORAGE_UNIT_PATTERN = re.compile(
    r"(?:mdadm|mdmonitor|mdcheck|raid-check|lvm2|dm-event|multipathd|zfs|zed|smart|fstrim|lustre|lnet|iscsi|nvm"
    r"|beegfs|gpfs|ceph|gluster|e2scrub|xfs_scrub|systemd-fsck|blk-availability|nfs|rpc-)[\w@.\\:-]*|.*\.(?:mount|swap)"
)


def _has_redundant_array(storage: ObservedStorage) -> bool:
    return any(disk.kind == "md" and disk.level in REDUNDANT_LEVELS for disk in storage.disks.values())


def _has_smart_drive(storage: ObservedStorage) -> bool:
    return any(name.startswith(("smart_", "health")) for disk in storage.disks.values() for name in disk.settings)


def _has_pool(storage: ObservedStorage) -> bool:
    return any(each.vdevs for each in storage.file_systems)


def _has_map(storage: ObservedStorage) -> bool:
    return any(disk.kind == "multipath" for disk in storage.disks.values())


def _has_data_on_flash(storage: ObservedStorage) -> bool:
    """Whether a local file system for data lies on flash and is mounted without discard."""
    disks = {each.settings.get("mountpoint"): each.name for each in storage.disks.values()}
    for each in storage.file_systems:
        is_local = each.kind in ("xfs", "ext4") and each.location.startswith("/") and bool(each.options)
        top = disks.get(each.location) or each.device.rsplit("/", 1)[-1]
        drives = [disk for disk in storage.iterate_disks_below(top) if not (disk.members or disk.on)]
        if (is_local and each.location not in SYSTEM_MOUNT_POINTS and "discard" not in each.options
                and drives and all(disk.flash for disk in drives)):  # fmt: skip
            return True
    return False


@dataclass(frozen=True)
class ServiceRule:
    """Units of which one must be active where the storage `needs` them. Units that are not installed do not count."""

    units: tuple[str, ...]
    needs: Callable[[ObservedStorage], bool]
    problem: str
    cost: str


RULES = (
    ServiceRule(("mdmonitor.service", "mdadm.service"), _has_redundant_array, "nothing watches the arrays of md",
                "nobody hears of a failed drive, and spares do not move between arrays"),
    ServiceRule(("smartd.service", "smartmontools.service"), _has_smart_drive, "nothing watches the drives",
                "nobody hears of a drive that is about to fail"),
    ServiceRule(("zfs-zed.service", "zed.service"), _has_pool, "nothing watches the pools of ZFS",
                "spares do not replace failed drives, and nobody hears of errors"),
    ServiceRule(("multipathd.service",), _has_map, "nothing watches the paths of the maps",
                "failed paths are not tried again, and after a failure of the controller no path comes back"),
    ServiceRule(("fstrim.timer",), _has_data_on_flash, "nothing tells the flash drives which blocks are free",
                "their writes become slower and wear them more as they fill"),
    ServiceRule(("raid-check.timer", "mdcheck_start.timer"), _has_redundant_array, "nothing scrubs the arrays of md",
                "bad sectors are noticed when a drive has failed and its data must be read from the others"),
)  # fmt: skip


def find_service_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Services that do not run though the storage needs them, and failed units of storage."""
    units = {each.name: each.attributes for each in reversed(observed_storage.components) if each.kind == "service"}
    reported = set[str]()
    for rule in RULES:
        states = {name: units[name] for name in rule.units
                  if name in units and units[name].get("LoadState") in ("loaded", "masked")}  # fmt: skip
        if not states or not rule.needs(observed_storage):
            continue
        yield CheckedItem("services", ", ".join(states))
        if not any(values.get("ActiveState") in ("active", "activating", "reloading") for values in states.values()):
            name, values = next(iter(states.items()))
            reported |= set(states)
            text = " ".join(filter(None, (values.get("ActiveState", ""), values.get("UnitFileState", ""))))
            verb = "unmask it, then " if "masked" in (values.get("LoadState"), values.get("UnitFileState")) else ""
            yield LayoutFault(
                "service does not run", name, f"{name} is {text}: {rule.problem}", rule.cost,
                f"{verb}systemctl enable --now {name}; systemctl status {name} has the reason if it failed",
                ("service",),
            )  # fmt: skip
    for name, values in units.items():
        if values.get("ActiveState") == "failed" and name not in reported and _STORAGE_UNIT_PATTERN.fullmatch(name):
            yield LayoutFault(
                "service does not run", name, f"{name} has failed", "what it does for the storage is missing",
                f"systemctl status {name} and journalctl -u {name} have the reason", ("service",),
            )  # fmt: skip
