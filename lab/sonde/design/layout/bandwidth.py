# SPDX-License-Identifier: Apache-2.0
"""The bandwidth roll-up: what each stage between drives and hosts allows, and which of them is the limit.

Streaming of full stripes is spread evenly over the members of a volume. Each part then carries a share of the bytes,
and allows its own rate divided by that share; a stage allows what its tightest part does; the whole allows the least of
all stages. A part without a rate in the system file limits nothing, and is named as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.design.layout.stores import Store
from sonde.model.system import System
from sonde.model.system.index import Item
from sonde.model.system.network import Host, Link, Network
from sonde.model.system.network import Path as SystemPath
from sonde.model.system.service import FileSystem, Unit
from sonde.model.system.storage import Controller, Drive, Enclosure, RaidGroup
from sonde.model.tables.quantity import Rates
from sonde.model.units import format_rate

# In the order of the way from the drives up.
STAGES = ("drives", "boxes", "controllers", "controller ports", "links", "cabinets", "targets", "servers", "nodes",
          "journal", "units (stated)")  # fmt: skip
WAYS = ("read", "write")
# Share of the drives' rate that a rebuild takes where the system file does not say: controllers come with 20 to 40 %.
REBUILD_SHARE = 0.3


@dataclass
class _Load:
    """What one part carries of each byte of the file system, and how many bytes per second it moves itself."""

    rate: Mapping[str, float | None]
    share: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})


@dataclass(frozen=True)
class Stage:
    """What one stage allows, in bytes/s; None is unknown. `part` is the tightest one, `how` its arithmetic."""

    name: str
    parts: int
    read: float | None
    write: float | None
    part: str
    how: str


@dataclass(frozen=True)
class RollUp:
    """All stages, and the least of them. `lost` says that the file system cannot be reached at all."""

    stages: tuple[Stage, ...]
    read: float | None
    write: float | None
    limits: Mapping[str, str]  # read, write -> name of the stage
    lost: str = ""


def rates_of(rate: Rates | None) -> dict[str, float | None]:
    """Bytes per second in each direction."""
    ways = {"read": rate.read, "write": rate.write} if rate is not None else {}
    return {way: None if ways.get(way) is None else float(ways[way].value) for way in WAYS}  # type: ignore[union-attr]


class _Roll:
    """Adds up what every part carries."""

    def __init__(self, system: System, without: frozenset[str]) -> None:
        self.system, self.without = system, without
        self.loads: dict[tuple[str, str], _Load] = {}
        self.lost = ""
        self._links_to: dict[str, list[Item]] = {}
        for item in system.items("links"):
            for far in system.references(item.id, "far"):
                self._links_to.setdefault(far, []).append(item)
        self._paths_to: dict[str, list[Item]] = {}
        for item in system.items("paths"):
            for end in system.references(item.id, "to"):
                self._paths_to.setdefault(end, []).append(item)

    def carry(self, part: str, stage: str, rate: Mapping[str, float | None], read: float, write: float) -> None:
        load = self.loads.setdefault((stage, part), _Load(rate))
        load.share["read"] += read
        load.share["write"] += write

    # ---- beneath the controllers

    def store(self, store: Store, read: float, write: float) -> None:
        """Shares of the bytes that are read and written go to `store`."""
        if store.kind == "volumes":
            mirror = getattr(store.table, "kind", "") == "mirror"
            count = len(store.members)
            for member in store.members:  # a mirror reads from any member, and writes each byte to every one
                self.store(member, read / count, write if mirror else write / count)
            return
        group = store.groups()[0]
        lun = next((one for one in store.walk() if one.kind == "luns"), None)
        self.group(group, read, write)
        self.above(lun.id if lun else "", self._owner(lun, group), read, write)

    def _owner(self, lun: Store | None, group: Store) -> str:
        for one in (lun, group):
            if one is not None and one.kind in ("luns", "raid_groups") and one.id in self.system.index:
                told = self.system.reference(one.id, "controller")
                if told:
                    return told
        return ""

    def group(self, group: Store, read: float, write: float) -> None:
        drives = [one for one in group.walk() if one.kind == "drives"]
        geometry = group.geometry
        missing = [one.id for one in drives if one.id in self.without or self._boxed_out(one.id)]
        if len(missing) > (geometry.failures if geometry is not None else 0):
            self.lost = self.lost or f"{group.id} has lost {len(missing)} drives, more than its geometry bears"
        data = geometry.data if geometry is not None else max(1, len(drives))
        slow = self._rebuild_factor(group, bool(missing))
        written = geometry.written if geometry is not None else 1.0
        for drive in drives:
            table = drive.table
            assert isinstance(table, Drive)
            rate = {way: None if one is None else one * slow for way, one in rates_of(table.rate).items()}
            self.carry(drive.id, "drives", rate, read / data, write / data)
            box = self.system.reference(drive.id, "enclosure")
            if box:
                self._box(box, read / len(drives), written * write / len(drives))

    def _rebuild_factor(self, group: Store, degraded: bool) -> float:
        """What is left of the rate of the drives of a group that has lost one: what its rebuild does not take."""
        if not degraded:
            return 1.0
        model = (group.table.model if isinstance(group.table, RaidGroup) else None) or {}
        if "degraded_share" in model:
            return float(model["degraded_share"])
        return 1.0 - float(model.get("rebuild_share", REBUILD_SHARE))

    def _box(self, box: str, read: float, write: float) -> None:
        table = self.system.item(box).table
        assert isinstance(table, Enclosure)
        self.carry(box, "boxes", rates_of(table.rate), read, write)

    def _boxed_out(self, drive: str) -> bool:
        box = self.system.reference(drive, "enclosure")
        while box:
            if box in self.without:
                return True
            box = self.system.reference(box, "inside")
        return False

    # ---- controllers and what is above them

    def above(self, lun: str, owner: str, read: float, write: float) -> None:
        if not owner:
            return
        if self._gone(owner):
            partner = self._partner(owner)
            if not partner or self._gone(partner):
                self.lost = self.lost or f"nobody takes over from {owner}"
                return
            owner = partner
        table = self.system.item(owner).table
        assert isinstance(table, Controller)
        self.carry(owner, "controllers", rates_of(table.rate), read, write)
        ports = {way: None if one is None or table.ports is None else one * int(table.ports)
                 for way, one in rates_of(table.port_rate).items()}  # fmt: skip
        self.carry(owner, "controller ports", ports, read, write)
        ways = [one for one in self._ways(lun, owner) if not any(self._gone(link) for link in one)]
        if not ways and self._ways(lun, owner):
            self.lost = self.lost or f"no path leads to {owner} any more"
        for way in ways:
            for link in way:
                self._link(link, read / len(ways), write / len(ways))

    def _gone(self, part: str) -> bool:
        if part in self.without:
            return True
        item = self.system.item(part)
        if item.kind == "links":
            near = (*self.system.references(part, "near"), *self.system.references(part, "far"))
            return any(one in self.without for one in near)
        return item.kind == "controllers" and self._inside(part)

    def _inside(self, controller: str) -> bool:
        box = self.system.reference(controller, "enclosure")
        while box:
            if box in self.without:
                return True
            box = self.system.reference(box, "inside")
        return False

    def _partner(self, owner: str) -> str:
        told = self.system.reference(owner, "partner")
        return told or ""

    def _ways(self, lun: str, owner: str) -> list[tuple[str, ...]]:
        """The sequences of links over which bytes for a LUN reach its controller, all used alike."""
        told = []
        for item in self._paths_to.get(lun, ()):
            table = item.table
            assert isinstance(table, SystemPath)
            if self.system.reference(item.id, "controller") in (owner, None) and table.state != "failed":
                links = self.system.references(item.id, "links")
                if item.id not in self.without and links:
                    told.append(tuple(links))
        return told or self._climb(owner)

    def _climb(self, part: str) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for link in self._links_to.get(part, ()):
            for near in self.system.references(link.id, "near"):
                above = self._climb(near) if near != part else []
                found += [(*one, link.id) for one in above] or [(link.id,)]
        return found

    def _link(self, name: str, read: float, write: float) -> None:
        table = self.system.item(name).table
        assert isinstance(table, Link)
        rate = table.rate
        network = self.system.reference(name, "network")
        if rate is None and network:
            found = self.system.item(network).table
            assert isinstance(found, Network)
            rate = found.rate
        count = int(table.count) if table.count is not None else 1
        rates = {way: None if one is None else one * count for way, one in rates_of(rate).items()}
        self.carry(name, "links", rates, read, write)
        near = self.system.reference(name, "near")
        if near and isinstance(self.system.item(near).table, Enclosure):
            box = self.system.item(near).table
            assert isinstance(box, Enclosure)
            self.carry(near, "cabinets", rates_of(box.rate), read, write)

    def host(self, name: str, stage: str, read: float, write: float) -> None:
        """A server or node passes on shares of the bytes: its own rate and that of its interfaces."""
        table = self.system.item(name).table
        assert isinstance(table, Host)
        own = rates_of(getattr(table, "rate", None))
        wires: dict[str, float | None] = {"read": None, "write": None}
        for one in table.interfaces:
            network = self.system.index.resolve(
                self.system.index.source_of(table), "interfaces.network", one.network, ("networks",)
            )
            found = self.system.item(network[0]).table
            assert isinstance(found, Network)
            count = int(one.count) if one.count is not None else 1
            for way, rate in rates_of(one.rate or found.rate).items():
                if rate is not None:
                    wires[way] = (wires[way] or 0.0) + rate * count
        least = {way: min((one for one in (own[way], wires[way]) if one is not None), default=None) for way in WAYS}
        self.carry(name, stage, least, read, write)


def roll_up(system: System, file_system: str, stores: Sequence[Store], without: Iterable[str] = ()) -> RollUp:
    """The roll-up of a file system on `stores` (one, or one for each target), with the parts of `without` failed.

    An empty name stands for one that is not made yet: nothing but its stores counts."""
    gone = frozenset(without)
    for name in gone:
        system.item(name)  # a part that does not exist is named with the nearest one
    roll = _Roll(system, gone)
    shares = targets_of_data(system, file_system) if file_system else []
    for store in stores:
        roll.store(store, 1 / len(stores), 1 / len(stores))
    for target in shares:
        _serve(roll, target, 1 / len(shares))
    _nodes_above(roll)
    table = system.item(file_system).table if file_system else None
    if isinstance(table, FileSystem) and table.model and "log_rate" in table.model and not table.log:
        rate = float(table.model["log_rate"])
        roll.carry(file_system, "journal", {"read": None, "write": rate}, 0.0, 1.0)
    if file_system and (not stores or shares):
        _units(roll, file_system)
    return _summed(roll)


def targets_of_data(system: System, file_system: str) -> list[str]:
    """The targets that keep data, in order."""
    return [one for kind in ("ost", "nsd", "target", "brick", "osd") for one in system.targets_of(file_system, kind)]


def _serve(roll: _Roll, target: str, share: float) -> None:
    server = roll.system.reference(target, "server")
    if server and server in roll.without:
        server = roll.system.failover_of(target)
        if not server or server in roll.without:
            roll.lost = roll.lost or f"nobody serves {target} any more"
            return
    if server:
        roll.host(server, "servers", share, share)
    table = roll.system.item(target).table
    roll.carry(target, "targets", rates_of(getattr(table, "rate", None)), share, share)


def _nodes_above(roll: _Roll) -> None:
    """Hosts at the near end of links."""
    hosts: dict[str, tuple[float, float]] = {}
    for (stage, part), load in list(roll.loads.items()):
        if stage == "links":
            near = roll.system.reference(part, "near")
            if near and isinstance(roll.system.item(near).table, Host):
                before = hosts.get(near, (0.0, 0.0))
                hosts[near] = (before[0] + load.share["read"], before[1] + load.share["write"])
    for name, (read, write) in hosts.items():
        roll.host(name, "nodes", read, write)


def _units(roll: _Roll, file_system: str) -> None:
    """What is promised for one building block, where each has the same number of targets."""
    system = roll.system
    units = [one for one in system.items("units") if file_system in system.references(one.id, "file_system")]
    targets = targets_of_data(system, file_system)
    for one in units:
        table = one.table
        assert isinstance(table, Unit)
        own = [target for target in system.targets_of(one.id) if target in targets]
        share = len(own) / len(targets) if targets else 1 / len(units)
        if table.peak is not None and share:
            peak = {way: None if rate is None else float(rate) for way, rate in
                    (("read", table.peak.read), ("write", table.peak.write))}  # fmt: skip
            roll.carry(one.id, "units (stated)", peak, share, share)


def _summed(roll: _Roll) -> RollUp:
    stages = []
    for name in STAGES:
        loads = {part: load for (stage, part), load in roll.loads.items() if stage == name}
        if loads:
            stages.append(_stage(name, loads))
    least: dict[str, float | None] = {}
    limits: dict[str, str] = {}
    for way in WAYS:
        known = [(value, stage.name) for stage in stages if (value := getattr(stage, way)) is not None]
        least[way], limits[way] = min(known) if known else (None, "")
        if roll.lost:
            least[way], limits[way] = 0.0, roll.lost
    return RollUp(tuple(stages), least["read"], least["write"], limits, roll.lost)


def _stage(name: str, loads: Mapping[str, _Load]) -> Stage:
    allowed: dict[str, float | None] = {}
    how, tightest = [], ""
    for way in WAYS:
        found = []
        for part, load in loads.items():
            rate, share = load.rate[way], load.share[way]
            if rate is not None and share > 0:
                found.append((rate / share, part, rate, share))
        if not found:
            allowed[way] = None
            continue
        value, tightest, rate, share = min(found)
        allowed[way] = value
        how.append(f"{way}: {tightest} moves {format_rate(rate)} and carries 1/{1 / share:.4g} of the bytes")
    if how and len(how) == 2 and how[0].partition(": ")[2] == how[1].partition(": ")[2]:
        how = [how[0].partition(": ")[2]]
    words = "; ".join(how) or "no rate is known"
    return Stage(name, len(loads), allowed["read"], allowed["write"], tightest, words)
