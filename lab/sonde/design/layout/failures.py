# SPDX-License-Identifier: Apache-2.0
"""What a failed part costs a file system: bandwidth while it is missing, and how long a rebuild takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sonde.design.layout.bandwidth import REBUILD_SHARE, RollUp, rates_of, roll_up
from sonde.design.layout.stores import Store
from sonde.model.system import System
from sonde.model.system.storage import Drive, RaidGroup

# Names of kinds of parts, in the order of the way up; one part of each kind is let fail, that which costs most.
_KINDS = ("drive", "box", "controller", "link", "cabinet", "server")
# Parts of a kind that are tried; at a site all are alike.
_TRIED = {"drive": 2, "box": 2, "server": 2}
_TRIED_OTHERS = 24
# Kind of part -> the stage whose rates say what its loss costs; without them nobody knows.
_STAGE = {"drive": "drives"}


@dataclass(frozen=True)
class Failure:
    """One part gone: bytes/s that are left (None is unknown), what limits them, seconds of a rebuild at the share of
    the rate that it gets, and why the file system is lost, if it is."""

    kind: str
    part: str
    read: float | None
    write: float | None
    limit: str
    rebuild_s: float | None
    lost: str


def failures(system: System, file_system: str, stores: Sequence[Store]) -> Iterator[Failure]:
    """For each kind of part, the one whose loss costs most."""
    whole = roll_up(system, file_system, stores)
    for kind, parts in _parts(system, file_system, stores).items():
        found = [
            (part, roll_up(system, file_system, stores, [part])) for part in parts[: _TRIED.get(kind, _TRIED_OTHERS)]
        ]
        if not found:
            continue
        part, rates = min(found, key=lambda one: _left(one[1], whole))
        seconds = rebuild_seconds(system, part, stores) if kind == "drive" else None
        told = next((stage for stage in whole.stages if stage.name == _STAGE.get(kind)), None)
        if told is not None and told.write is None and not rates.lost:
            yield Failure(kind, part, None, None, "unknown, because no drive has a rate", seconds, "")
            continue
        yield Failure(kind, part, rates.read, rates.write, rates.limits["write"], seconds, rates.lost)


def _left(rates: RollUp, whole: RollUp) -> float:
    """What is left of a file system, for comparing: nothing when it is lost."""
    if rates.lost:
        return -1.0
    shares = [after / before for after, before in ((rates.read, whole.read), (rates.write, whole.write))
              if after is not None and before]  # fmt: skip
    return min(shares, default=1.0)


def _parts(system: System, file_system: str, stores: Sequence[Store]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {kind: {} for kind in _KINDS}
    for store in stores:
        for one in store.walk():
            if one.kind == "drives":
                found["drive"][one.id] = None
                box = system.reference(one.id, "enclosure")
                if box:
                    found["box"][box] = None
            elif one.kind in ("luns", "raid_groups") and one.id in system.index:
                owner = system.reference(one.id, "controller")
                if owner:
                    found["controller"][owner] = None
    far = set(found["controller"])
    for _ in range(4):  # links above links, as deep as any machine has them
        for item in system.items("links"):
            if far & set(system.references(item.id, "far")):
                found["link"][item.id] = None
                near = system.references(item.id, "near")
                found["cabinet"] |= {one: None for one in near if system.item(one).kind == "enclosures"}
                far |= set(near)
    if file_system:
        found["server"] |= dict.fromkeys(system.servers_of(file_system, "") if system.targets_of(file_system) else ())
    return {kind: list(parts) for kind, parts in found.items() if parts}


def rebuild_seconds(system: System, drive: str, stores: Sequence[Store]) -> float | None:
    """Seconds until a spare holds what a drive held: its capacity at the rebuild's share of its rate of writing."""
    table = system.item(drive).table
    if not isinstance(table, Drive):
        return None
    rate = rates_of(table.rate)["write"]
    group = next((one for store in stores for one in store.walk() if one.kind == "raid_groups"
                  and drive in [inner.id for inner in one.members]), None)  # fmt: skip
    if rate is None or table.capacity is None or group is None or not group.geometry or not group.geometry.failures:
        return None
    assert isinstance(group.table, RaidGroup)
    share = float((group.table.model or {}).get("rebuild_share", REBUILD_SHARE))
    return int(table.capacity) / (rate * share) if share > 0 else None
