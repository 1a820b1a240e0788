# SPDX-License-Identifier: Apache-2.0
"""Compares the members and spares of arrays of md with the drives that a plan names for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.device_identity import (
    describe_device,
    describe_planned_devices,
    find_planned_names,
    is_planned_device,
    split_device_arguments,
)
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_CHANGE_REMEDY = "exchange the drives, or change the plan if it is meant so"
_MOST_NAMES = 3


@dataclass(frozen=True)
class PlannedArray:
    """One array that a plan makes: its device, its members in the order of their slots, its spares, and all options
    of the command."""

    path: str
    members: tuple[str, ...]
    spares: tuple[str, ...]
    options: Mapping[tuple[str, str], str] = field(default_factory=dict)


def list_planned_arrays(attributes_by_command: Iterable[Mapping[tuple[str, str], str]]) -> list[PlannedArray]:
    """The arrays of the mdadm commands of a plan, on all of its servers."""
    arrays = []
    for options in attributes_by_command:
        if ("mdadm", "--create") in options:
            paths = split_device_arguments(options.get(("mdadm", ""), ""))
            count = int(options.get(("mdadm", "--raid-devices"), str(len(paths))))
            arrays.append(
                PlannedArray(options["mdadm", "--create"], tuple(paths[:count]), tuple(paths[count:]), options)
            )
    return arrays


def pair_arrays(observed_storage: ObservedStorage, planned: Sequence[PlannedArray]) -> dict[str, PlannedArray]:
    """The planned array of each observed one: that of its name, else the one with which it has most members in common.
    Each is used once; arrays of other servers stay without a pair."""
    observed = [disk for disk in observed_storage.disks.values() if disk.kind == "md"]
    pairs: dict[str, PlannedArray] = {}
    for array in planned:
        names = [disk.name for disk in observed if is_planned_device(observed_storage, array.path, disk)]
        if names and names[0] not in pairs:
            pairs[names[0]] = array
    scores = [
        (_count_planned_members(observed_storage, disk, array), disk.name, array)
        for disk in observed if disk.name not in pairs
        for array in planned if array not in pairs.values()
    ]  # fmt: skip
    for score, name, array in sorted(scores, key=lambda entry: -entry[0]):
        if score and name not in pairs and array not in pairs.values():
            pairs[name] = array
    return pairs


def _count_planned_members(observed_storage: ObservedStorage, disk: ObservedDisk, array: PlannedArray) -> int:
    members = [observed_storage.disks[name] for name in disk.members if name in observed_storage.disks]
    return sum(bool(find_planned_names(observed_storage, list(array.members), member)) for member in members)


def compare_arrays(
    observed_storage: ObservedStorage, attributes_by_command: Iterable[Mapping[tuple[str, str], str]]
) -> Iterator[LayoutFault | CheckedItem]:
    """Members and spares that are not those of the plan, for the arrays that the outputs show."""
    planned = list_planned_arrays(attributes_by_command)
    pairs = pair_arrays(observed_storage, planned)
    local_spares = [path for array in pairs.values() for path in array.spares]
    matches = {name: _match_members(observed_storage, name, array, local_spares) for name, array in pairs.items()}
    members = _find_strays(observed_storage, planned, {
        array: [name for name, paths in each.items() if not paths] for array, each in matches.items()
    })  # fmt: skip
    spares = _find_strays(observed_storage, planned, {
        name: _list_stray_spares(observed_storage, observed_storage.disks[name], array, local_spares)
        for name, array in pairs.items()
    })  # fmt: skip
    absent = {name: [path for path in array.members if path not in {each for paths in matches[name].values()
                                                                   for each in paths}]
              for name, array in pairs.items()}  # fmt: skip
    for noun, strays in (("member", members), ("spare", spares)):
        yield from _report_strays(observed_storage, noun, pairs, strays, absent)
    for name, array in pairs.items():
        disk = observed_storage.disks[name]
        if matches[name]:
            yield CheckedItem("the planned drives of an array", name)
        if _list_spares(observed_storage, disk):
            yield CheckedItem("the planned spares of an array", name)
        yield from _find_exchanged_spares(observed_storage, disk, array.members, matches[name])
        yield from _find_used_spares(observed_storage, disk, array, matches[name])
        yield from _compare_copies(disk, array.members, matches[name])


def find_absent_arrays(
    observed_storage: ObservedStorage, commands: Sequence[Mapping[tuple[str, str], str]], owners: Sequence[str]
) -> Iterator[LayoutFault]:
    """Planned arrays that do not run although this host sees their drives with superblocks of md. `owners` are the
    names of what lies on the arrays of the plan."""
    planned = list_planned_arrays(commands)
    pairs = pair_arrays(observed_storage, planned)
    used = {name for disk in observed_storage.disks.values() if disk.kind == "md" for name in (
        *disk.members, *disk.settings.get("spare_devices", "").split())}  # fmt: skip
    idle = [disk for disk in observed_storage.disks.values() if disk.name not in used
            and disk.settings.get("fs_kind") == "linux_raid_member"]  # fmt: skip
    for array in planned:
        members = [disk for disk in idle if find_planned_names(observed_storage, list(array.members), disk)]
        if array not in pairs.values() and members:
            yield LayoutFault(
                "array not assembled", array.path,
                f"it does not run, although {len(members)} of its {len(array.members)} drives are there, like"
                f" {describe_device(members[0])}",
                "what is on it is out of reach",
                "mdadm --examine of its drives says what each lacks; mdadm --assemble --scan, never --create",
                parts=(array.path, *owners, *(member.name for member in members)),
            )  # fmt: skip


def _match_members(
    observed_storage: ObservedStorage, array_name: str, array: PlannedArray, spares: Sequence[str]
) -> dict[str, list[str]]:
    """The planned paths of each member that outputs identify; a spare may have replaced a member."""
    matches = {}
    for name in observed_storage.disks[array_name].members:
        disk = observed_storage.disks.get(name)
        paths = find_planned_names(observed_storage, [*array.members, *spares], disk) if disk is not None else None
        if paths is not None:
            matches[name] = paths
    return matches


def _list_spares(observed_storage: ObservedStorage, array: ObservedDisk) -> list[ObservedDisk]:
    names = array.settings.get("spare_devices", "").split()
    return [observed_storage.disks[name] for name in names if name in observed_storage.disks]


def _list_stray_spares(
    observed_storage: ObservedStorage, disk: ObservedDisk, array: PlannedArray, local_spares: Sequence[str]
) -> list[str]:
    """Spares that are neither those of the array nor its members, which a spare may have replaced. An array without
    spares shares those of this machine, and so does one whose spare was used."""
    members = [observed_storage.disks[name] for name in disk.members if name in observed_storage.disks]
    has_used_spare = any(find_planned_names(observed_storage, list(array.spares), member) for member in members)
    allowed = [*array.members, *(local_spares if has_used_spare or not array.spares else array.spares)]
    return [
        each.name
        for each in _list_spares(observed_storage, disk)
        if find_planned_names(observed_storage, allowed, each) == []
    ]


def _find_strays(
    observed_storage: ObservedStorage, planned: Sequence[PlannedArray], names_by_array: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], list[str]]:
    """Drives by the array that has them and the device of the array that the plan has them for, which may be empty."""
    strays: dict[tuple[str, str], list[str]] = {}
    for array_name, names in names_by_array.items():
        for name in names:
            disk = observed_storage.disks[name]
            owner = next((
                array.path for array in planned
                if find_planned_names(observed_storage, [*array.members, *array.spares], disk)
            ), "")  # fmt: skip
            strays.setdefault((array_name, owner), []).append(name)
    return strays


def _report_strays(
    observed_storage: ObservedStorage,
    noun: str,
    planned_array_by_name: Mapping[str, PlannedArray],
    stray_drives: Mapping[tuple[str, str], list[str]],
    absent_drives: Mapping[str, Sequence[str]],
) -> Iterator[LayoutFault]:
    """Drives that the plan does not have in their array; those that two arrays have of each other are one fault."""
    names_by_path = {array.path: name for name, array in planned_array_by_name.items()}
    done: set[tuple[str, str]] = set()
    for (array_name, owner), names in stray_drives.items():
        other_name = names_by_path.get(owner, "")
        opposite = (other_name, planned_array_by_name[array_name].path)
        if (array_name, owner) in done:
            continue
        if opposite in stray_drives:
            done.add(opposite)
            yield _report_exchange(observed_storage, noun, (array_name, other_name), (names, stray_drives[opposite]))
        else:
            missing = absent_drives[array_name] if noun == "member" else ()
            yield _report_odd_drives(observed_storage, noun, array_name, names, owner, missing)


def _describe_devices(observed_storage: ObservedStorage, device_names: Sequence[str]) -> str:
    return join_first_names([describe_device(observed_storage.disks[name]) for name in device_names], _MOST_NAMES)


def _report_exchange(
    observed_storage: ObservedStorage,
    noun: str,
    array_names: tuple[str, str],
    drive_names_of_arrays: tuple[Sequence[str], Sequence[str]],
) -> LayoutFault:
    first, second = (_describe_devices(observed_storage, each) for each in drive_names_of_arrays)
    verbs = ["is" if len(each) == 1 else "are" for each in drive_names_of_arrays]
    return LayoutFault(
        "not as planned", ", ".join(array_names),
        f"{noun}s are exchanged: {first} in {array_names[0]} {verbs[0]} planned for {array_names[1]}, and {second} in"
        f" {array_names[1]} {verbs[1]} planned for {array_names[0]}",
        "failures that the plan keeps apart may coincide, and drives may have another size or rate", _CHANGE_REMEDY,
        parts=array_names,
    )  # fmt: skip


def _report_odd_drives(
    observed_storage: ObservedStorage,
    noun: str,
    array_name: str,
    drive_names: Sequence[str],
    owner_name: str,
    absent_drives: Sequence[str],
) -> LayoutFault:
    planned = describe_planned_devices(absent_drives[:_MOST_NAMES])
    planned_text = f"; planned {'are' if len(absent_drives) > 1 else 'is'} {planned}" if absent_drives else ""
    text = f"{noun} {_describe_devices(observed_storage, drive_names)} is no drive"
    if len(drive_names) > 1:
        text = f"{noun}s {_describe_devices(observed_storage, drive_names)} are no drives"
    owner_text = f" but of that for {owner_name}" if owner_name else ""
    cost = (
        "a drive of another size, rate or enclosure takes over, and what the plan has it for lacks it"
        if noun == "spare"
        else "failures that the plan keeps apart may coincide, and it may have another size or rate"
    )
    return LayoutFault(
        "not as planned", array_name, f"its {text} of the plan for it{owner_text}{planned_text}", cost, _CHANGE_REMEDY,
        ("member",), (array_name, *drive_names), planned=planned if absent_drives else "",
    )  # fmt: skip


def list_absent_spares(observed_storage: ObservedStorage, arrays: Sequence[PlannedArray]) -> list[str]:
    """Planned spares that no observed array has, as spare or as member, where outputs identify all of its drives."""
    names = [
        name for disk in observed_storage.disks.values() if disk.kind == "md"
        for name in (*disk.members, *disk.settings.get("spare_devices", "").split()) if name in observed_storage.disks
    ]  # fmt: skip
    spares = [path for array in arrays for path in array.spares]
    answers = {
        path: [is_planned_device(observed_storage, path, observed_storage.disks[name]) for name in names]
        for path in spares
    }
    return [path for path, states in answers.items() if states and not any(state is not False for state in states)]


def _find_exchanged_spares(
    observed_storage: ObservedStorage,
    array: ObservedDisk,
    members: Sequence[str],
    names_by_planned_drive: Mapping[str, list[str]],
) -> Iterator[LayoutFault]:
    """Planned spares that are members while planned members are spares. A spare that took over is no fault alone."""
    active = [name for name, paths in names_by_planned_drive.items() if paths and not set(paths) & set(members)]
    disks = observed_storage.disks
    idle = [name for name in array.settings.get("spare_devices", "").split()
            if name in disks and find_planned_names(observed_storage, list(members), disks[name])]  # fmt: skip
    if active and idle:
        slots = [slot for slot, _, name in (entry.partition("=") for entry in array.settings.get("slots", "").split())
                 if name in active]  # fmt: skip
        slot_text = f" of slot {', '.join(slots)}" if slots else ""
        texts = [", ".join(describe_device(observed_storage.disks[name]) for name in names) for names in (active, idle)]
        yield LayoutFault(
            "not as planned", array.name,
            f"its member {texts[0]} is planned as spare, and its spare {texts[1]} as member{slot_text}",
            "failures that the plan keeps apart may coincide in the array",
            f"mdadm --replace /dev/{active[0]} --with /dev/{idle[0]}, or change the plan if it is meant so",
        )  # fmt: skip


def _find_used_spares(
    observed_storage: ObservedStorage, disk: ObservedDisk, array: PlannedArray, matches: Mapping[str, list[str]]
) -> Iterator[LayoutFault]:
    """Planned spares that took the slots of planned drives while no other drive became a spare."""
    idle = _list_spares(observed_storage, disk)
    present = {path for paths in matches.values() for path in paths}
    absent = [path for path in array.members if path not in present
              and not any(is_planned_device(observed_storage, path, spare) for spare in idle)]  # fmt: skip
    active = [name for name, paths in matches.items() if set(paths) & set(array.spares)]
    count = disk.settings.get("spares", "")
    if not active or not absent or not count.isdigit() or int(count) >= len(array.spares):
        return
    slots = [slot for slot, _, name in (entry.partition("=") for entry in disk.settings.get("slots", "").split())
             if name in active]  # fmt: skip
    slot_text = f" slot {', '.join(slots)} of" if slots else ""
    states = {"failed" if each.name in disk.settings.get("failed_devices", "").split() else "is idle"
              for path in absent for each in observed_storage.disks.values()
              if is_planned_device(observed_storage, path, each)}  # fmt: skip
    state = states.pop() if len(states) == 1 else "this host does not show" if not states else "is missing"
    yield LayoutFault(
        "spare in the place of a drive", disk.name,
        f"its planned spare {_describe_devices(observed_storage, active)} is in{slot_text} {disk.name} for"
        f" {describe_planned_devices(absent[:_MOST_NAMES])}, which {state}",
        "a drive failed or was pulled, and the next one that fails has no spare",
        f"replace the drive that is missing, and add the new one as spare (mdadm --manage /dev/{disk.name} --add)",
        ("member",), (disk.name, *active),
    )  # fmt: skip


def _compare_copies(
    array: ObservedDisk, members: Sequence[str], names_by_planned_drive: Mapping[str, list[str]]
) -> Iterator[LayoutFault | CheckedItem]:
    """The drives that hold copies of the same data in RAID 10 with near copies: neighbors in the order of slots."""
    copies = re.fullmatch(r"near=(\d+)", array.settings.get("layout", ""))
    slots = dict(entry.split("=", 1) for entry in array.settings.get("slots", "").split())
    if array.level != "raid10" or copies is None or not slots:
        return
    size = int(copies[1])
    set_by_path = {path: index // size for index, path in enumerate(members)}
    sets: dict[int, list[tuple[str, int]]] = {}
    for slot, name in slots.items():
        planned = [set_by_path[path] for path in names_by_planned_drive.get(name, []) if path in set_by_path]
        if planned:
            sets.setdefault(int(slot) // size, []).append((name, planned[0]))
    odd = [" and ".join(name for name, _ in pairs) for pairs in sets.values() if len({each for _, each in pairs}) > 1]
    if odd:
        others = f", and so do {', '.join(odd[1:])}" if len(odd) > 1 else ""
        yield LayoutFault(
            "not as planned", array.name,
            f"{odd[0]} hold copies of the same data{others}; the plan pairs each with another",
            "both copies may be lost with one enclosure or path that the plan keeps apart", _CHANGE_REMEDY,
        )  # fmt: skip
