# SPDX-License-Identifier: Apache-2.0
"""Makes one fault of an array's failed drive and what smartctl prints of it, and of a missing spare and the foreign
drive in its slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sonde.design.layout.check_inactive_arrays import list_inactive_arrays
from sonde.design.layout.check_peers import find_disk_of_partition
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_DRIVE_KINDS = ("drive about to fail", "bad sectors of a drive", "worn flash", "drive does not answer")
_FAILED_KINDS = ("failed drive in an array", "degraded")


def join_failed_drives(faults: Sequence[LayoutFault], observed_storage: ObservedStorage) -> list[LayoutFault]:
    """The faults, where what a drive reports belongs to the fault of the array that has marked it as failed."""
    arrays = {find_disk_of_partition(observed_storage, name): disk.name for disk in observed_storage.disks.values()
              for name in disk.settings.get("failed_devices", "").split()}  # fmt: skip
    causes = {fault.location: fault for fault in faults if fault.kind in _FAILED_KINDS}
    texts: dict[str, list[str]] = {}
    remaining = []
    for fault in faults:
        array_name = arrays.get(fault.location, "") if fault.kind in _DRIVE_KINDS else ""
        if array_name in causes:
            title = f"{fault.location}: " * (list(arrays.values()).count(array_name) > 1)
            texts.setdefault(array_name, []).append(f"{title}{fault.problem}")
        else:
            remaining.append(fault)
    return [replace(fault, problem=f"{fault.problem} ({'; '.join(texts[fault.location])})")
            if fault is causes.get(fault.location) and fault.location in texts else fault
            for fault in remaining]  # fmt: skip


def join_foreign_spares(faults: Sequence[LayoutFault], observed_storage: ObservedStorage) -> list[LayoutFault]:
    """The faults, where an inactive array of another host holds as many drives as an array lacks spares, and each of
    them is fit to be a spare of it: they are in the place of the spares."""
    remaining = list(faults)
    for fault in faults:
        array = observed_storage.disks.get(fault.location)
        if array is None or fault.attributes != ("spares",) or not fault.planned.isdigit():
            continue
        lacking = int(fault.planned) - int(array.settings.get("spares", "0"))
        foreign = [each for each in list_inactive_arrays(observed_storage)
                   if _is_foreign(each, array) and _list_fitting(observed_storage, each, array) == lacking]  # fmt: skip
        cause = next((each for each in remaining if len(foreign) == 1 and each.kind == "array inactive"
                      and each.location == foreign[0].name), None)  # fmt: skip
        if cause is not None:
            text = f"{fault.location}: {fault.problem}"
            joined = replace(
                cause, consequences=(*cause.consequences, text, *fault.consequences),
                remedy=f"{cause.remedy}; then add a spare (mdadm --manage /dev/{array.name} --add)",
            )  # fmt: skip
            remaining = [joined if each is cause else each for each in remaining if each is not fault]
    return remaining


def _is_foreign(inactive: ObservedDisk, array: ObservedDisk) -> bool:
    hosts = [disk.settings.get("full_array_name", "").partition(":") for disk in (inactive, array)]
    return all(separator for _, separator, _ in hosts) and hosts[0][0] != hosts[1][0]


def _list_fitting(observed_storage: ObservedStorage, inactive: ObservedDisk, array: ObservedDisk) -> int:
    """The number of drives of an inactive array, if each is as large as the members of the other array and of their
    kind; else 0."""
    names = inactive.settings["inactive_members"].split()
    drives = [observed_storage.disks[name] for name in names if name in observed_storage.disks]
    members = [observed_storage.disks[name] for name in array.members if name in observed_storage.disks]
    sizes = [member.size for member in members if member.size]
    kinds = {member.flash for member in members}
    is_fit = len(drives) == len(names) and bool(sizes) and all(
        drive.size is not None and drive.size >= min(sizes) and kinds <= {drive.flash} for drive in drives)  # fmt: skip
    return len(names) if is_fit else 0
