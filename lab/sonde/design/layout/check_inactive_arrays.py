# SPDX-License-Identifier: Apache-2.0
"""Finds arrays of md that have drives but do not run: parts of an array of this host, or drives of another host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.checked_items import join_first_names
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage


def list_inactive_arrays(observed_storage: ObservedStorage) -> list[ObservedDisk]:
    """The arrays that md shows as inactive."""
    return [disk for disk in observed_storage.disks.values() if disk.settings.get("inactive_members")]


def find_inactive_arrays(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """Inactive arrays, with what their superblocks say of the array and host that they belong to."""
    for array in list_inactive_arrays(observed_storage):
        members = array.settings["inactive_members"].split()
        names = join_first_names(members)
        title = array.settings.get("full_array_name", "")
        problem = f"the array {f'{title} ' if title else ''}is inactive; it holds {names}"
        running = _find_running_part(observed_storage, array)
        if running:
            yield LayoutFault(
                "array inactive", array.name, f"{problem}, which {'has' if len(members) == 1 else 'have'} the UUID of"
                f" {running}", f"{running} runs without what it holds, which is old",
                f"mdadm --stop /dev/{array.name}, look why its drives came late or were left out (mdadm --examine),"
                f" then mdadm --manage /dev/{running} --re-add them", parts=(array.name, *members),
            )  # fmt: skip
            continue
        host, local_hosts = title.partition(":")[0] if ":" in title else "", _list_hosts(observed_storage)
        is_foreign = bool(host and local_hosts) and host not in local_hosts
        if is_foreign:
            problem += f"; their superblocks are of host {host}, the other arrays are of {', '.join(local_hosts)}"
        yield LayoutFault(
            "array inactive", array.name, problem,
            "its drives cannot be used for anything else, and it may take the name of an array of this host"
            if is_foreign else "what is on it is out of reach",
            f"mdadm --stop /dev/{array.name}; return the drives to {host}, or mdadm --zero-superblock them when nothing"
            " there is needed" if is_foreign
            else f"mdadm --examine of its drives says what each lacks; mdadm --stop /dev/{array.name}, then mdadm"
            " --assemble --scan, never --create", parts=(array.name, *members),
        )  # fmt: skip


def normalize_uuid(uuid_text: str) -> str:
    """The digits of a UUID, which mdadm divides by colons and blkid by hyphens."""
    return re.sub(r"[^0-9a-f]", "", uuid_text.lower())


def _find_running_part(observed_storage: ObservedStorage, array: ObservedDisk) -> str:
    """The running array with the UUID of an inactive one."""
    uuid = normalize_uuid(array.settings.get("array_uuid", ""))
    return next((disk.name for disk in observed_storage.disks.values() if disk.kind == "md" and uuid
                 and normalize_uuid(disk.settings.get("array_uuid", "")) == uuid), "")  # fmt: skip


def _list_hosts(observed_storage: ObservedStorage) -> list[str]:
    """The hosts that the names of running arrays begin with."""
    names = [disk.settings.get("full_array_name", "") for disk in observed_storage.disks.values() if disk.kind == "md"]
    return sorted({name.partition(":")[0] for name in names if ":" in name})
