# SPDX-License-Identifier: Apache-2.0
"""Checks striped files and parameters of Lustre."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import MIB
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.model.units import format_bytes

# obdfilter.*.brw_size in MiB that Lustre chooses itself since 2.10
_DEFAULT_REQUEST = 4
# The cost and remedy of a default stripe count of -1.
ALL_TARGETS = (
    "each file, also a small one, has an object on every target: creates, stat and removal ask all of them",
    "lfs setstripe -c 1 or a progressive layout (-E) for the root of the file system",
)
_SETTING_FLOORS = {
    "brw_size": (_DEFAULT_REQUEST, "requests to the disks of the server are cut", "lctl set_param -P"),
    "max_pages_per_rpc": (256, "requests of clients are shorter than 1 MiB", "lctl set_param -P"),
    "max_rpcs_in_flight": (8, "a client waits for one answer after another", "lctl set_param -P"),
}


def find_object_faults(file_system: ObservedFileSystem, raid_stripe: int | None) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of a striped file or directory, or of the parameters of one target or client."""
    facts = file_system.facts
    yield from _check_sizes(file_system, raid_stripe)
    targets = facts.get("targets", "").split()
    if targets:
        yield CheckedItem("objects", file_system.location)
        yield from _check_shared_targets(file_system, targets, "")
    if facts.get("components"):
        yield CheckedItem("objects", file_system.location)
        yield from _check_components(file_system)
    offset = facts.get("default_offset", "")
    if offset.isdigit():
        yield LayoutFault(
            "files begin on one target", file_system.location,
            f"its default layout has the stripe offset {offset}: all new files begin on target {offset}",
            "this target fills first and gets the traffic of all files", "lfs setstripe -i -1",
        )  # fmt: skip
    count = facts.get("stripe_count", "")
    if count.isdigit() and targets and int(count) != len(targets):
        yield LayoutFault(
            "objects are missing", file_system.location,
            f"its stripe count is {count}, but it has {len(targets)} objects",
            "part of the file cannot be read", "run lfs check and lctl get_param osc.*.active",
        )  # fmt: skip
    yield from _check_parameters(file_system)


def _check_sizes(file_system: ObservedFileSystem, raid_stripe: int | None) -> Iterator[LayoutFault | CheckedItem]:
    sizes = (file_system.facts.get("stripe_sizes") or file_system.facts.get("stripe_size", "")).split()
    for size in (int(text) for text in sizes if text.isdigit() and int(text)):
        yield CheckedItem("stripe size", file_system.location)
        if size % MIB:
            yield LayoutFault(
                "stripe does not fit RPCs", file_system.location, f"its stripe size, {size} bytes, is no multiple of"
                " 1 MiB",
                "requests of 1 MiB touch two targets, and their locks are fought for", "lfs setstripe -S 1M, 4M or 16M",
            )  # fmt: skip
        elif raid_stripe and size % raid_stripe:
            yield LayoutFault(
                "stripe does not fit the RAID stripe", file_system.location,
                f"its stripe size is {format_bytes(size)}, no multiple of the {format_bytes(raid_stripe)} of one full"
                " stripe below its targets",
                "the last RAID stripe of every object piece is written in part: RAID 5 and 6 read before that",
                f"lfs setstripe -S {_round_up_stripe_size(size, raid_stripe)}",
            )  # fmt: skip


def _round_up_stripe_size(size_bytes: int, step_bytes: int) -> str:
    """The smallest multiple of the step and of 64 KiB that holds `size_bytes`, as lfs accepts it."""
    rounded = -(-size_bytes // step_bytes) * step_bytes
    return f"{rounded // MIB}M" if rounded % MIB == 0 else f"{rounded // 1024}K"


def _check_shared_targets(
    file_system: ObservedFileSystem, target_names: list[str], component: str
) -> Iterator[LayoutFault]:
    if len(set(target_names)) < len(target_names):
        yield LayoutFault(
            "objects on one target", file_system.location,
            f"{len(target_names)} objects{component} are on {len(set(target_names))} targets",
            "a target gets several shares of the traffic", "lfs migrate the file with a stripe count of the targets",
        )  # fmt: skip


def _check_components(file_system: ObservedFileSystem) -> Iterator[LayoutFault]:
    """Objects of one component on one target, and targets that several components use."""
    components = [part.split() for part in file_system.facts["components"].split(" / ")]
    for number, targets in enumerate(components, start=1):
        yield from _check_shared_targets(file_system, targets, f" of component {number}")
    sets = [set(targets) for targets in components]
    # a component on all targets shares those of every other one
    indexes = {int(target) for targets in sets for target in targets}
    widest = {str(index) for index in range(max(indexes, default=0) + 1)}
    narrow = [targets for targets in sets if targets != widest or len(widest) == 1]
    shared = sorted({target for number, targets in enumerate(narrow) for other in narrow[:number]
                     for target in targets & other}, key=int)  # fmt: skip
    if shared and file_system.facts.get("mirrors"):
        yield LayoutFault(
            "objects on one target", file_system.location,
            f"several mirrors have an object on target {', '.join(shared)}",
            "when this target fails, all of its mirrors lose data",
            "lfs mirror extend it on other targets (--pool or -o), then lfs mirror split the old mirror",
        )  # fmt: skip
    elif shared:
        yield LayoutFault(
            "objects on one target", file_system.location,
            f"several components have an object on target {', '.join(shared)}",
            "this target gets several shares of a file that all components hold",
            "lfs migrate the file, or give its components pools of their own",
        )  # fmt: skip


def _check_parameters(file_system: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    facts = file_system.facts
    for name, (least, cost, command) in _SETTING_FLOORS.items():
        value = facts.get(name, "").removesuffix("M")
        if not value.isdigit():
            continue
        yield CheckedItem(name, file_system.location)
        if int(value) < least:
            yield LayoutFault(
                "parameter too small", f"{file_system.location} {name}", f"{name} is {value}", cost,
                f"{command} …{name}={least} on the management server", (name,), (file_system.location,),
            )  # fmt: skip
    state, active = facts.get("device_state", ""), facts.get("active", "")
    if state or active:
        yield CheckedItem("state", file_system.location)
    if state not in ("", "UP") or active == "0":
        yield LayoutFault(
            "target inactive", file_system.location, f"it is {state if state not in ('', 'UP') else 'inactive'}",
            "files with objects on it cannot be read or written", "look at its server, then lctl set_param active=1",
        )  # fmt: skip
