# SPDX-License-Identifier: Apache-2.0
"""Estimates bandwidth: what each stage between drives and hosts allows, and which stage is the limit.

Streaming of full stripes is spread evenly over the members of a volume. Each part carries a fraction of the bytes and
allows its own rate divided by that fraction. A stage allows what its slowest part does, and the file system what its
slowest stage does. A part without a rate in the system file does not limit the estimate and is reported as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.design.layout.block_devices import BlockDevice
from sonde.model.system import System
from sonde.model.system.index import PartItem
from sonde.model.system.network import Host, Link, Network
from sonde.model.system.network import StoragePath as SystemPath
from sonde.model.system.service import FileSystem, Unit
from sonde.model.system.storage import Controller, Drive, Enclosure, RaidGroup
from sonde.model.tables.quantity import ReadWriteRates
from sonde.model.units import format_rate

# From the drives up to the hosts.
STAGES = ("drives", "boxes", "controllers", "controller ports", "links", "cabinets", "targets", "servers", "nodes",
          "journal", "units (stated)")  # fmt: skip
DIRECTIONS = ("read", "write")
# Fraction of the drives' rate that a rebuild takes by default: controllers ship with 20 to 40 %.
REBUILD_SHARE = 0.3


@dataclass
class _Load:
    """The fraction of each byte of the file system that one part carries, and the part's own rate in bytes/s."""

    rate: Mapping[str, float | None]
    share: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})


@dataclass(frozen=True)
class BandwidthStage:
    """Maximum rates of one stage, in bytes/s; None if unknown. `part` is the slowest part, `how` the arithmetic."""

    name: str
    parts: int
    read: float | None
    write: float | None
    part: str
    how: str


@dataclass(frozen=True)
class BandwidthEstimate:
    """All stages, and the lowest of their rates. `lost` is the reason why the file system cannot be reached, if any."""

    stages: tuple[BandwidthStage, ...]
    read: float | None
    write: float | None
    limits: Mapping[str, str]  # read, write -> name of the stage
    lost: str = ""


def split_rate_by_direction(rate: ReadWriteRates | None) -> dict[str, float | None]:
    """Bytes per second in each direction."""
    values = (rate.read, rate.write) if rate is not None else (None, None)
    return {
        direction: None if value is None else float(value) for direction, value in zip(DIRECTIONS, values, strict=True)
    }


class _PartLoads:
    """Sums up the load of every part."""

    def __init__(self, system: System, failed_parts: frozenset[str]) -> None:
        self.system, self.without = system, failed_parts
        self.loads: dict[tuple[str, str], _Load] = {}
        self.lost = ""
        self._links_by_far_end: dict[str, list[PartItem]] = {}
        for item in system.list_parts("links"):
            for far in system.find_references(item.id, "far"):
                self._links_by_far_end.setdefault(far, []).append(item)
        self._paths_by_end: dict[str, list[PartItem]] = {}
        for item in system.list_parts("paths"):
            for end in system.find_references(item.id, "to"):
                self._paths_by_end.setdefault(end, []).append(item)

    def add_load(
        self,
        part_id: str,
        stage_name: str,
        rate_by_direction: Mapping[str, float | None],
        read_share: float,
        write_share: float,
    ) -> None:
        load = self.loads.setdefault((stage_name, part_id), _Load(rate_by_direction))
        load.share["read"] += read_share
        load.share["write"] += write_share

    # ---- below the controllers

    def add_block_device(self, block_device: BlockDevice, read_share: float, write_share: float) -> None:
        """Adds the loads of everything below a block device; `read_share` and `write_share` are fractions of the
        bytes."""
        if block_device.kind == "volumes":
            mirror = getattr(block_device.table, "kind", "") == "mirror"
            count = len(block_device.members)
            for member in block_device.members:  # a mirror reads from any member and writes each byte to all of them
                self.add_block_device(member, read_share / count, write_share if mirror else write_share / count)
            return
        group = block_device.list_raid_groups()[0]
        lun = next((device for device in block_device.iterate_top_down() if device.kind == "luns"), None)
        self.add_raid_group(group, read_share, write_share)
        self.add_controller(lun.id if lun else "", self._find_owning_controller(lun, group), read_share, write_share)

    def _find_owning_controller(self, lun_or_none: BlockDevice | None, raid_group: BlockDevice) -> str:
        for device in (lun_or_none, raid_group):
            if device is not None and device.kind in ("luns", "raid_groups") and device.id in self.system.index:
                controller = self.system.find_first_reference(device.id, "controller")
                if controller:
                    return controller
        return ""

    def add_raid_group(self, raid_group: BlockDevice, read_share: float, write_share: float) -> None:
        drives = [device for device in raid_group.iterate_top_down() if device.kind == "drives"]
        geometry = raid_group.raid_geometry
        missing = [drive.id for drive in drives if drive.id in self.without or self._is_in_failed_enclosure(drive.id)]
        if len(missing) > (geometry.tolerated_failures if geometry is not None else 0):
            self.lost = self.lost or f"{raid_group.id} has lost {len(missing)} drives, more than its geometry tolerates"
        data = geometry.data if geometry is not None else max(1, len(drives))
        slow = self._compute_rebuild_factor(raid_group, bool(missing))
        written = geometry.write_amplification if geometry is not None else 1.0
        for drive in drives:
            table = drive.table
            assert isinstance(table, Drive)
            rate = {
                direction: None if value is None else value * slow
                for direction, value in split_rate_by_direction(table.rate).items()
            }
            self.add_load(drive.id, "drives", rate, read_share / data, write_share / data)
            box = self.system.find_first_reference(drive.id, "enclosure")
            if box:
                self._add_enclosure(box, read_share / len(drives), written * write_share / len(drives))

    def _compute_rebuild_factor(self, raid_group: BlockDevice, is_degraded: bool) -> float:
        """The fraction of the drives' rate that remains in a group with a failed drive, next to its rebuild."""
        if not is_degraded:
            return 1.0
        model = (raid_group.table.model if isinstance(raid_group.table, RaidGroup) else None) or {}
        if "degraded_share" in model:
            return float(model["degraded_share"])
        return 1.0 - float(model.get("rebuild_share", REBUILD_SHARE))

    def _add_enclosure(self, enclosure: str, read_share: float, write_share: float) -> None:
        table = self.system.get_part(enclosure).table
        assert isinstance(table, Enclosure)
        self.add_load(enclosure, "boxes", split_rate_by_direction(table.rate), read_share, write_share)

    def _is_in_failed_enclosure(self, part_id: str) -> bool:
        box = self.system.find_first_reference(part_id, "enclosure")
        while box:
            if box in self.without:
                return True
            box = self.system.find_first_reference(box, "inside")
        return False

    # ---- controllers and what is above them

    def add_controller(self, lun_id: str, controller: str, read_share: float, write_share: float) -> None:
        if not controller:
            return
        if self._has_failed(controller):
            partner = self.system.find_first_reference(controller, "partner")
            if not partner or self._has_failed(partner):
                self.lost = self.lost or f"no controller takes over from {controller}"
                return
            controller = partner
        table = self.system.get_part(controller).table
        assert isinstance(table, Controller)
        self.add_load(controller, "controllers", split_rate_by_direction(table.rate), read_share, write_share)
        ports = {direction: None if value is None or table.ports is None else value * int(table.ports)
                 for direction, value in split_rate_by_direction(table.port_rate).items()}  # fmt: skip
        self.add_load(controller, "controller ports", ports, read_share, write_share)
        all_paths = self._find_paths(lun_id, controller)
        paths = [path for path in all_paths if not any(self._has_failed(link) for link in path)]
        if not paths and all_paths:
            self.lost = self.lost or f"no path to {controller} remains"
        for path in paths:
            for link in path:
                self._add_link(link, read_share / len(paths), write_share / len(paths))

    def _has_failed(self, part_id: str) -> bool:
        if part_id in self.without:
            return True
        item = self.system.get_part(part_id)
        if item.kind == "links":
            near = (*self.system.find_references(part_id, "near"), *self.system.find_references(part_id, "far"))
            return any(end in self.without for end in near)
        return item.kind == "controllers" and self._is_in_failed_enclosure(part_id)

    def _find_paths(self, lun_id: str, controller_id: str) -> list[tuple[str, ...]]:
        """The chains of links over which bytes for a LUN reach its controller; all are used equally."""
        paths = []
        for item in self._paths_by_end.get(lun_id, ()):
            table = item.table
            assert isinstance(table, SystemPath)
            if (
                self.system.find_first_reference(item.id, "controller") in (controller_id, None)
                and table.state != "failed"
            ):
                links = self.system.find_references(item.id, "links")
                if item.id not in self.without and links:
                    paths.append(tuple(links))
        return paths or self._find_link_chains(controller_id)

    def _find_link_chains(self, part_id: str) -> list[tuple[str, ...]]:
        paths: list[tuple[str, ...]] = []
        for link in self._links_by_far_end.get(part_id, ()):
            for near in self.system.find_references(link.id, "near"):
                above = self._find_link_chains(near) if near != part_id else []
                paths += [(*path, link.id) for path in above] or [(link.id,)]
        return paths

    def _add_link(self, link_id: str, read_share: float, write_share: float) -> None:
        table = self.system.get_part(link_id).table
        assert isinstance(table, Link)
        rate = table.rate
        network = self.system.find_first_reference(link_id, "network")
        if rate is None and network:
            network_record = self.system.get_part(network).table
            assert isinstance(network_record, Network)
            rate = network_record.rate
        count = int(table.count) if table.count is not None else 1
        rates = {
            direction: None if value is None else value * count
            for direction, value in split_rate_by_direction(rate).items()
        }
        self.add_load(link_id, "links", rates, read_share, write_share)
        near = self.system.find_first_reference(link_id, "near")
        if near and isinstance(self.system.get_part(near).table, Enclosure):
            box = self.system.get_part(near).table
            assert isinstance(box, Enclosure)
            self.add_load(near, "cabinets", split_rate_by_direction(box.rate), read_share, write_share)

    def add_host(self, host_id: str, stage_name: str, read_share: float, write_share: float) -> None:
        """Adds the load of a server or node, limited by its own rate and by that of its interfaces."""
        table = self.system.get_part(host_id).table
        assert isinstance(table, Host)
        own_rates = split_rate_by_direction(getattr(table, "rate", None))
        wires: dict[str, float | None] = {"read": None, "write": None}
        for interface in table.interfaces:
            network = self.system.index.resolve_references(
                self.system.index.get_source(table), "interfaces.network", interface.network, ("networks",)
            )
            network_record = self.system.get_part(network[0]).table
            assert isinstance(network_record, Network)
            count = int(interface.count) if interface.count is not None else 1
            for direction, rate in split_rate_by_direction(interface.rate or network_record.rate).items():
                if rate is not None:
                    wires[direction] = (wires[direction] or 0.0) + rate * count
        rates: dict[str, float | None] = {}
        for direction in DIRECTIONS:
            limits = [rate for rate in (own_rates[direction], wires[direction]) if rate is not None]
            rates[direction] = min(limits, default=None)
        self.add_load(host_id, stage_name, rates, read_share, write_share)


def estimate_bandwidth(
    system: System, file_system: str, devices: Sequence[BlockDevice], failed_parts: Iterable[str] = ()
) -> BandwidthEstimate:
    """The bandwidth of a file system on `devices` (one, or one per target) with the parts in `failed_parts` failed.

    An empty `file_system` stands for one that does not exist yet: only its devices count. Raises SystemFileError for an
    unknown part.
    """
    failed = frozenset(failed_parts)
    for name in failed:
        system.get_part(name)  # raises SystemFileError with the nearest id
    accumulator = _PartLoads(system, failed)
    shares = list_data_targets(system, file_system) if file_system else []
    for device in devices:
        accumulator.add_block_device(device, 1 / len(devices), 1 / len(devices))
    for target in shares:
        _add_loads_of_target(accumulator, target, 1 / len(shares))
    _add_nodes(accumulator)
    table = system.get_part(file_system).table if file_system else None
    if isinstance(table, FileSystem) and table.model and "log_rate" in table.model and not table.log:
        rate = float(table.model["log_rate"])
        accumulator.add_load(file_system, "journal", {"read": None, "write": rate}, 0.0, 1.0)
    if file_system and (not devices or shares):
        _add_units(accumulator, file_system)
    return _estimate_from_loads(accumulator)


def list_data_targets(system: System, file_system: str) -> list[str]:
    """The targets that hold data, in order."""
    return [
        target for kind in ("ost", "nsd", "target", "brick", "osd") for target in system.find_targets(file_system, kind)
    ]


def _add_loads_of_target(part_loads: _PartLoads, target_id: str, byte_share: float) -> None:
    server = part_loads.system.find_first_reference(target_id, "server")
    if server and server in part_loads.without:
        server = part_loads.system.find_failover_server(target_id)
        if not server or server in part_loads.without:
            part_loads.lost = part_loads.lost or f"no server remains for {target_id}"
            return
    if server:
        part_loads.add_host(server, "servers", byte_share, byte_share)
    table = part_loads.system.get_part(target_id).table
    part_loads.add_load(
        target_id, "targets", split_rate_by_direction(getattr(table, "rate", None)), byte_share, byte_share
    )


def _add_nodes(part_loads: _PartLoads) -> None:
    """Adds the hosts at the near end of links."""
    hosts: dict[str, tuple[float, float]] = {}
    for (stage, part), load in list(part_loads.loads.items()):
        if stage == "links":
            near = part_loads.system.find_first_reference(part, "near")
            if near and isinstance(part_loads.system.get_part(near).table, Host):
                before = hosts.get(near, (0.0, 0.0))
                hosts[near] = (before[0] + load.share["read"], before[1] + load.share["write"])
    for name, (read, write) in hosts.items():
        part_loads.add_host(name, "nodes", read, write)


def _add_units(part_loads: _PartLoads, file_system: str) -> None:
    """Adds the stated rate of each unit, in proportion to the targets of the unit."""
    system = part_loads.system
    units = [
        item for item in system.list_parts("units") if file_system in system.find_references(item.id, "file_system")
    ]
    targets = list_data_targets(system, file_system)
    for unit in units:
        table = unit.table
        assert isinstance(table, Unit)
        own_targets = [target for target in system.find_targets(unit.id) if target in targets]
        share = len(own_targets) / len(targets) if targets else 1 / len(units)
        if table.peak is not None and share:
            peak = {direction: None if rate is None else float(rate) for direction, rate in
                    (("read", table.peak.read), ("write", table.peak.write))}  # fmt: skip
            part_loads.add_load(unit.id, "units (stated)", peak, share, share)


def _estimate_from_loads(part_loads: _PartLoads) -> BandwidthEstimate:
    stages = []
    for name in STAGES:
        loads = {part: load for (stage, part), load in part_loads.loads.items() if stage == name}
        if loads:
            stages.append(_estimate_bandwidth_of_stage(name, loads))
    least: dict[str, float | None] = {}
    limits: dict[str, str] = {}
    for direction in DIRECTIONS:
        limits_here = [(value, stage.name) for stage in stages if (value := getattr(stage, direction)) is not None]
        least[direction], limits[direction] = min(limits_here) if limits_here else (None, "")
        if part_loads.lost:
            least[direction], limits[direction] = 0.0, part_loads.lost
    return BandwidthEstimate(tuple(stages), least["read"], least["write"], limits, part_loads.lost)


def _estimate_bandwidth_of_stage(stage_name: str, loads: Mapping[str, _Load]) -> BandwidthStage:
    allowed: dict[str, float | None] = {}
    how, tightest = [], ""
    for direction in DIRECTIONS:
        candidates = []
        for part, load in loads.items():
            rate, share = load.rate[direction], load.share[direction]
            if rate is not None and share > 0:
                candidates.append((rate / share, part, rate, share))
        if not candidates:
            allowed[direction] = None
            continue
        value, tightest, rate, share = min(candidates)
        allowed[direction] = value
        how.append(f"{direction}: {tightest} moves {format_rate(rate)} and carries 1/{1 / share:.4g} of the bytes")
    if how and len(how) == 2 and how[0].partition(": ")[2] == how[1].partition(": ")[2]:
        how = [how[0].partition(": ")[2]]
    text = "; ".join(how) or "no rate is described"
    return BandwidthStage(stage_name, len(loads), allowed["read"], allowed["write"], tightest, text)
