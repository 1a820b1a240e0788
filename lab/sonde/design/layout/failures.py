# SPDX-License-Identifier: Apache-2.0
"""Estimates what a failed part costs a file system: bandwidth while it is missing, and the duration of a rebuild."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sonde.design.layout.bandwidth import REBUILD_SHARE, BandwidthEstimate, estimate_bandwidth, split_rate_by_direction
from sonde.design.layout.block_devices import BlockDevice
from sonde.model.system import System
from sonde.model.system.storage import Drive, RaidGroup

# Kinds of parts from the drives up. For each kind, the part whose loss costs most is reported.
_KINDS = ("drive", "box", "controller", "link", "cabinet", "server")
# Number of parts of a kind that are tried; the parts of a machine are usually equal.
_TRIED = {"drive": 2, "box": 2, "server": 2}
_TRIED_OTHERS = 24
# Kind of part -> the stage whose rates determine the cost of its loss.
_STAGE = {"drive": "drives"}


@dataclass(frozen=True)
class FailureEffect:
    """The effect of one failed part: remaining bytes/s (None is unknown), the limit, seconds of a rebuild at its share
    of the rate, and the reason why the file system is lost, if it is."""

    kind: str
    part: str
    read: float | None
    write: float | None
    limit: str
    rebuild_s: float | None
    lost: str


def list_failure_effects(system: System, file_system: str, devices: Sequence[BlockDevice]) -> Iterator[FailureEffect]:
    """For each kind of part, the effect of the failure that costs most."""
    intact = estimate_bandwidth(system, file_system, devices)
    for kind, parts in _list_parts(system, file_system, devices).items():
        estimates = [
            (part, estimate_bandwidth(system, file_system, devices, [part]))
            for part in parts[: _TRIED.get(kind, _TRIED_OTHERS)]
        ]
        if not estimates:
            continue
        part, rates = min(estimates, key=lambda estimate: _compute_remaining_share(estimate[1], intact))
        seconds = estimate_rebuild_seconds(system, part, devices) if kind == "drive" else None
        weakest = next((stage for stage in intact.stages if stage.name == _STAGE.get(kind)), None)
        if weakest is not None and weakest.write is None and not rates.lost:
            yield FailureEffect(kind, part, None, None, "unknown, because no drive has a rate", seconds, "")
            continue
        yield FailureEffect(kind, part, rates.read, rates.write, rates.limits["write"], seconds, rates.lost)


def _compute_remaining_share(failed_bandwidth: BandwidthEstimate, intact_bandwidth: BandwidthEstimate) -> float:
    """The remaining fraction of the bandwidth, for comparison: -1 when the file system is lost."""
    if failed_bandwidth.lost:
        return -1.0
    shares = [
        after / before
        for after, before in (
            (failed_bandwidth.read, intact_bandwidth.read),
            (failed_bandwidth.write, intact_bandwidth.write),
        )
        if after is not None and before
    ]
    return min(shares, default=1.0)


def _list_parts(system: System, file_system: str, devices: Sequence[BlockDevice]) -> dict[str, list[str]]:
    by_kind: dict[str, dict[str, None]] = {kind: {} for kind in _KINDS}
    for base in devices:
        for device in base.iterate_top_down():
            if device.kind == "drives":
                by_kind["drive"][device.id] = None
                box = system.find_first_reference(device.id, "enclosure")
                if box:
                    by_kind["box"][box] = None
            elif device.kind in ("luns", "raid_groups") and device.id in system.index:
                owner = system.find_first_reference(device.id, "controller")
                if owner:
                    by_kind["controller"][owner] = None
    far = set(by_kind["controller"])
    for _ in range(4):  # chains of links; no machine has longer ones
        for item in system.list_parts("links"):
            if far & set(system.find_references(item.id, "far")):
                by_kind["link"][item.id] = None
                near = system.find_references(item.id, "near")
                by_kind["cabinet"] |= {name: None for name in near if system.get_part(name).kind == "enclosures"}
                far |= set(near)
    if file_system:
        by_kind["server"] |= dict.fromkeys(
            system.find_servers(file_system, "") if system.find_targets(file_system) else ()
        )
    return {kind: list(parts) for kind, parts in by_kind.items() if parts}


def estimate_rebuild_seconds(system: System, drive: str, devices: Sequence[BlockDevice]) -> float | None:
    """Seconds to write the capacity of a drive to a spare at the rebuild's fraction of the write rate; None if
    unknown."""
    table = system.get_part(drive).table
    if not isinstance(table, Drive):
        return None
    rate = split_rate_by_direction(table.rate)["write"]
    group = next((device for base in devices for device in base.iterate_top_down() if device.kind == "raid_groups"
                  and drive in [inner.id for inner in device.members]), None)  # fmt: skip
    if (
        rate is None
        or table.capacity is None
        or group is None
        or not group.raid_geometry
        or not group.raid_geometry.tolerated_failures
    ):
        return None
    assert isinstance(group.table, RaidGroup)
    share = float((group.table.model or {}).get("rebuild_share", REBUILD_SHARE))
    return int(table.capacity) / (rate * share) if share > 0 else None
