# SPDX-License-Identifier: Apache-2.0
"""Compares the logical sectors of drives of one model: a drive may be formatted with smaller ones than the others."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.device_use import SYSTEM_MOUNT_POINTS, list_mounted_drives, list_unused_drives
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_SYSTEM_FOLDERS = (*SYSTEM_MOUNT_POINTS, "[SWAP]")


def find_sector_format_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Drives in use with smaller logical sectors than others of their model. Drives of the system do not count: some
    firmware starts from sectors of 512 bytes only."""
    excluded = list_unused_drives(observed_storage) | list_mounted_drives(observed_storage, _SYSTEM_FOLDERS)
    models: dict[str, list[ObservedDisk]] = {}
    for disk in observed_storage.disks.values():
        sector = disk.queue.get("logical_block_size", "")
        if disk.kind == "disk" and disk.settings.get("model") and sector.isdigit() and disk.name not in excluded:
            models.setdefault(disk.settings["model"], []).append(disk)
    for drives in models.values():
        if len(drives) > 1:
            yield from _compare_sectors(drives)


def _compare_sectors(drives: list[ObservedDisk]) -> Iterator[LayoutFault | CheckedItem]:
    sectors = {disk.name: int(disk.queue["logical_block_size"]) for disk in drives}
    largest = max(sectors.values())
    small = [name for name, size in sectors.items() if size < largest]
    for name in sectors:
        yield CheckedItem("logical sectors of a model", name)
    if not small:
        return
    others = [name for name in sectors if name not in small]
    formats = [text for disk in drives if disk.name in small and (text := disk.settings.get("better_format"))]
    yield LayoutFault(
        "drive formatted with small sectors", ", ".join(small),
        f"{'its' if len(small) == 1 else 'their'} logical sectors have {sectors[small[0]]} B; those of"
        f" {join_first_names(others)}, of the same model ({drives[0].settings['model']}), {largest} B"
        + "".join(f" ({text})" for text in formats[:1]),
        "the drive handles more and smaller sectors for the same bytes, and behaves unlike its partners",
        "take it out of its array or pool, format it with the sectors of the others (nvme format --lbaf, sg_format"
        " --size, hdparm --set-sector-size; all data on it is lost), and add it again",
        ("logical_block_size", "physical_block_size"), tuple(small),
    )  # fmt: skip
