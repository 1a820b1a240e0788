# SPDX-License-Identifier: Apache-2.0
"""Finds drives that pools, mdadm.conf and LVM name as the kernel does, which may be another drive after a start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_peers import find_disk_of_partition
from sonde.design.layout.check_planned_pools import KERNEL_NAME_PATTERN
from sonde.design.layout.check_pools import GOOD_STATES
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage


def find_unstable_names(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All devices of pools, mdadm.conf and LVM with names that may change."""
    for pool in observed_storage.file_systems:
        yield from _check_pool_names(observed_storage, pool)
    yield from _check_mdadm_conf(observed_storage)
    yield from _check_lvm_names(observed_storage)


def _check_pool_names(
    observed_storage: ObservedStorage, pool: ObservedFileSystem
) -> Iterator[LayoutFault | CheckedItem]:
    """Drives of a pool with names of the kernel, where links show names that last (a virtual machine may have none), or
    where most drives of that use have such names."""
    uses: dict[str, list[str]] = {}
    for vdev in pool.vdevs:
        if vdev.kind == "drive" and vdev.state in GOOD_STATES:
            uses.setdefault(vdev.use, []).append(vdev.name)
    links = {name: _find_lasting_link(observed_storage, name) for names in uses.values() for name in names
             if KERNEL_NAME_PATTERN.fullmatch(name)}  # fmt: skip
    odd: list[str] = []
    for names in uses.values():
        yield CheckedItem("the names of drives of one use", pool.location)
        unstable = [name for name in names if name in links]
        odd += [name for name in unstable if links[name] or 2 * len(unstable) < len(names)]
    lasting = sum(len(names) for names in uses.values()) - len(links)
    if odd:
        texts = [f"{name} is {link}" for name, link in links.items() if link]
        yield LayoutFault(
            "unstable name of a drive", pool.location,
            f"{join_first_names(odd)} {'is' if len(odd) == 1 else 'are'} named as the kernel does"
            + f"; the other {lasting} drives have names that last" * bool(lasting),
            "the kernel gives this name in the order in which it finds devices: after a start it may be another drive,"
            " an import by the cache file fails then, and zpool status names a wrong drive to replace",
            f"zpool export {pool.location}, then zpool import -d /dev/disk/by-id {pool.location}, when nobody uses it"
            + f" ({join_first_names(texts)})" * bool(texts), ("vdev names",), (pool.location, *odd),
        )  # fmt: skip


def _find_lasting_link(observed_storage: ObservedStorage, drive_name: str) -> str:
    disk = observed_storage.disks.get(find_disk_of_partition(observed_storage, drive_name.removeprefix("/dev/")))
    links = disk.settings.get("links", "").split() if disk is not None else []
    return next((link for folder in ("by-vdev", "by-id") for link in links
                 if link.startswith(f"/dev/disk/{folder}/")), "")  # fmt: skip


def _check_mdadm_conf(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Lines DEVICE of single drives by names of the kernel. Patterns like /dev/sd* match whatever comes."""
    arrays = [disk for disk in observed_storage.disks.values()
              if disk.kind == "md" and disk.settings.get("configured_devices")]  # fmt: skip
    patterns = dict.fromkeys(name for array in arrays for name in array.settings["configured_devices"].split())
    unstable = [name for name in patterns if re.match("/dev/(?:sd|vd)", name) and KERNEL_NAME_PATTERN.fullmatch(name)]
    if unstable:
        yield LayoutFault(
            "unstable names in mdadm.conf", ", ".join(array.name for array in arrays),
            f"DEVICE in mdadm.conf names {join_first_names(unstable)} as the kernel does",
            "the kernel gives these names in the order in which it finds devices: after a start they may be other"
            " drives, and the arrays lack members or do not run",
            "write DEVICE partitions, or remove the line, and make the initramfs again", ("configured_devices",),
            tuple(array.name for array in arrays),
        )  # fmt: skip


def _check_lvm_names(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """Devices that LVM looks at by a name of the kernel."""
    names_by_place: dict[str, list[str]] = {}
    for disk in observed_storage.disks.values():
        if config_file := disk.settings.get("lvm_kernel_name", ""):
            names_by_place.setdefault(config_file, []).append(disk.name)
    for config_file, names in names_by_place.items():
        yield LayoutFault(
            "unstable names for LVM", join_first_names(names),
            f"{config_file} names {join_first_names([f'/dev/{name}' for name in names])} as the kernel does",
            "the kernel gives these names in the order in which it finds devices: after a start LVM may not see its"
            " physical volumes, or takes a path for a map",
            "lvmdevices --delpvid and --adddev again where the device has a WWID" if "system.devices" in config_file
            else "write names of /dev/disk/by-id or /dev/mapper into the filter, and make the initramfs again",
            ("lvm_kernel_name",), tuple(names),
        )  # fmt: skip
