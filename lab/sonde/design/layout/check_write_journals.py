# SPDX-License-Identifier: Apache-2.0
"""Checks the write journals of parity arrays of md (mdadm --write-journal)."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.md_output import REDUNDANT_LEVELS
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage


def list_failed_journals(array: ObservedDisk) -> list[str]:
    """The journal devices of an array that md has marked as failed."""
    failed = array.settings.get("failed_devices", "").split()
    return [name for name in array.settings.get("journal_devices", "").split() if name in failed]


def lacks_journal(array: ObservedDisk) -> bool:
    """Whether an array that needs a write journal has none, or one that has failed. md makes it read-only then."""
    if journals := array.settings.get("journal_devices", "").split():
        return len(list_failed_journals(array)) == len(journals)
    needs_journal = array.settings.get("consistency_policy") == "journal"
    return needs_journal and array.settings.get("array_state") == "readonly"


def find_journal_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Journals that are lost, that one drive can lose, or that are slower than the drives of their array."""
    for array in observed_storage.disks.values():
        journals = array.settings.get("journal_devices", "").split()
        if array.kind != "md" or not (journals or array.settings.get("consistency_policy") == "journal"):
            continue
        yield CheckedItem("the write journal", array.name)
        if lacks_journal(array):
            yield _describe_lost_journal(array)
        elif journals and array.settings.get("journal_mode") and not _is_redundant(observed_storage, journals[0]):
            yield from _check_journal_mode(array, journals[0])
        for name in journals:
            drives = [disk.flash for disk in observed_storage.iterate_disks_below(name) if disk.kind == "disk"]
            if False in drives:
                yield LayoutFault(
                    "write journal on rotating drives", array.name, f"its journal {name} is on rotating drives",
                    "everything is written there first: all writes of the array wait for its heads",
                    "put the journal on a mirror of flash", parts=(array.name, name),
                )  # fmt: skip


def _describe_lost_journal(array: ObservedDisk) -> LayoutFault:
    failed = list_failed_journals(array)
    state = array.settings.get("array_state", "")
    path = f"/dev/{array.name}"
    return LayoutFault(
        "write journal lost", array.name,
        (f"its write journal {', '.join(failed)} has failed" if failed else "it needs a write journal and has none")
        + (f"; array_state is {state}" if state == "readonly" else ""),
        "md makes an array without its journal read-only: every write fails; all drives of its data work",
        (f"mdadm --manage {path} --remove {' '.join(f'/dev/{name}' for name in failed)}, then " if failed else "")
        + f"unmount what is on it, mdadm --readonly {path}, mdadm --manage {path} --add-journal DEVICE (a mirror of"
        f" flash), and mdadm --readwrite {path}",
        ("array_state",), (array.name, *failed),
    )  # fmt: skip


def _is_redundant(observed_storage: ObservedStorage, device_name: str) -> bool:
    """Whether a device lies on an array with redundancy or on a LUN; also where no output shows what it lies on."""
    below = list(observed_storage.iterate_disks_below(device_name))
    return not below or any(disk.level in REDUNDANT_LEVELS or disk.kind == "multipath" for disk in below)


def _check_journal_mode(array: ObservedDisk, journal: str) -> Iterator[LayoutFault]:
    if "[write-back]" in array.settings["journal_mode"]:
        yield LayoutFault(
            "write-back journal on one drive", array.name,
            f"its journal {journal} is one drive, and holds writes that the array does not have yet (journal_mode is"
            " write-back)",
            "when this drive fails, writes that were acknowledged are lost, and the file system may be damaged",
            f"echo write-through > /sys/block/{array.name}/md/journal_mode, or a journal on a mirror of flash",
            ("journal_mode",), (array.name, journal),
        )  # fmt: skip
