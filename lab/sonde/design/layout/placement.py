# SPDX-License-Identifier: Apache-2.0
"""Places required file systems: which LUNs and drives hold which file system, how many in a stripe, and where logs go.

Small file systems share a mirrored LUN in slices. Large ones get as many equal LUNs as their capacity and bandwidth
require, each with one aligned slice, alternating over subsystems, controllers and enclosures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.design.layout import xfs
from sonde.design.layout.bandwidth import BandwidthEstimate, estimate_bandwidth
from sonde.design.layout.block_devices import BlockDevice
from sonde.design.layout.candidates import (
    Candidate,
    group_equal_drives,
    list_free_candidates,
    list_free_drives,
    list_geometries,
    make_planned_size,
    propose_raid_groups,
    sort_candidates_by_least_sharing,
)
from sonde.design.layout.geometry import MIB, Geometry, compute_slice_alignment
from sonde.design.layout.slicing import SliceRequest
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.service import FILE_SYSTEM_PURPOSES, SYSTEM_PURPOSES, FileSystem
from sonde.model.system.storage import Drive, Volume
from sonde.model.units import format_bytes, format_count_with_noun, format_rate

# Purpose -> classes of LUNs, the best first.
_CLASSES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SYSTEM_PURPOSES, ("transaction", "bandwidth", "capacity")),
    **dict.fromkeys(("scratch", "checkpoint", "dump"), ("bandwidth", "transaction", "capacity")),
    "archive": ("capacity", "bandwidth", "transaction"),
}
LOCAL = ("xfs", "ext4", "btrfs", "zfs", "swap", "other")
WITH_TARGETS = ("lustre", "gpfs", "beegfs")
# Space of a shared disk that is not for slices, in steps of the alignment: partition table and rounding.
_LABEL_STEPS = 2


@dataclass(frozen=True)
class LayoutRequirement:
    """A file system that must be laid out. Bytes and bytes/s; None is unspecified."""

    id: str
    table: FileSystem
    capacity: int | None
    read: float | None
    write: float | None

    @property
    def purpose(self) -> str:
        return self.table.purpose


@dataclass(frozen=True)
class PlacedFileSystem:
    """The place of a required file system: its members, all equal, or a slice of a shared disk."""

    requirement: LayoutRequirement
    members: tuple[Candidate, ...]
    shared: bool
    size: int | None  # of the slice, on a shared disk
    log: str = ""  # id of the candidate that holds the slice for its log
    log_size: int = 0


@dataclass
class Placement:
    """All placed file systems, and the requirements that cannot be met."""

    placed: list[PlacedFileSystem] = field(default_factory=list)
    bins: dict[str, list[SliceRequest]] = field(default_factory=dict)  # shared disk -> its slices, in order
    candidates: dict[str, Candidate] = field(default_factory=dict)
    spares: dict[str, list[BlockDevice]] = field(default_factory=dict)  # unused drives, by enclosure
    unmet: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def list_requirements(system: System) -> list[LayoutRequirement]:
    """File systems that state what they must offer but have no device yet, in the order in which they are placed.
    Raises SystemFileError."""
    requirements = []
    for item in system.list_parts("file_systems"):
        table = item.table
        assert isinstance(table, FileSystem)
        if table.requirement is None or table.device or system.find_targets(item.id):
            continue
        source = system.index.get_source(table)
        if not table.purpose:
            raise source.make_error(
                "purpose",
                f"is missing, but the file system must be laid out; write one of {', '.join(FILE_SYSTEM_PURPOSES)}.",
            )
        if table.kind not in LOCAL + WITH_TARGETS:
            raise source.make_error(
                "kind", f'is "{table.kind}", which cannot be laid out on drives; write xfs or ext4.'
            )
        required = table.requirement
        if required.capacity is None and table.purpose not in ("scratch", "checkpoint", "archive"):
            hint = " The Cray X1 took 500 MB a system node and 55 MB an application node." * (table.purpose == "dump")
            raise source.make_error(
                "requirement.capacity", f"is missing; a file system for {table.purpose} needs a size.{hint}"
            )
        read, write = (None if rate is None else float(rate) for rate in (required.read, required.write))
        requirements.append(
            LayoutRequirement(
                item.id, table, None if required.capacity is None else int(required.capacity), read, write
            )
        )
    return sorted(requirements, key=lambda requirement: FILE_SYSTEM_PURPOSES.index(requirement.purpose))


def place_file_systems(system: System, requirements: Sequence[LayoutRequirement], geometry: Geometry | None = None,
          member_count: int | None = None) -> Placement:  # fmt: skip
    """Places all required file systems. `geometry` applies to new groups for large file systems, `member_count` is
    their number of LUNs or groups; by default the planner chooses both. Raises UserError when there is nothing to
    use."""
    return _PlacementPlanner(system, geometry, member_count).place_all_file_systems(requirements)


def list_member_options(
    system: System, requirement: LayoutRequirement, geometry: Geometry | None
) -> list[list[Candidate]]:
    """Lists of equal members with a geometry, in the order of a plan; the most suitable lists come first."""
    placing = _PlacementPlanner(system, geometry, None)
    options = [
        option
        for kind in _CLASSES[requirement.purpose]
        for option in placing.iterate_candidate_lists(requirement, kind)
        if option
    ]
    return [option for option in options if geometry is None or str(option[0].device.raid_geometry) == str(geometry)]


class _PlacementPlanner:
    def __init__(self, system: System, geometry: Geometry | None, member_count: int | None) -> None:
        self.system, self.geometry, self.count = system, geometry, member_count
        self.free = list_free_candidates(system)
        self.drives = {box: list(drives) for box, drives in list_free_drives(system).items()}
        self.result = Placement()

    def place_all_file_systems(self, requirements: Sequence[LayoutRequirement]) -> Placement:
        if requirements and not self.free and not any(self.drives.values()):
            raise UserError(
                f"{self.system.id} has no free drives, RAID groups or LUNs of known size; describe them, with capacity."
            )
        for requirement in requirements:
            small = _CLASSES[requirement.purpose][0] == "transaction" and requirement.table.kind in LOCAL
            placed = self._place_on_shared_disk(requirement) if small else None
            self.result.placed.append(placed or self._place_whole_devices(requirement))
        self.result.spares = self.drives
        return self.result

    # ---- small file systems share a disk

    def _place_on_shared_disk(self, requirement: LayoutRequirement) -> PlacedFileSystem | None:
        size = requirement.capacity or 0
        # Copies (one table with several ids) go to different devices, so that one loss leaves a copy.
        copies = {
            placed.members[0].id for placed in self.result.placed if placed.requirement.table is requirement.table
        }
        for name, pieces in self.result.bins.items():
            if name in copies:
                continue
            candidate = self.result.candidates[name]
            if self._compute_free_bytes(candidate, pieces) >= size and self._meets_rates(requirement, (candidate,)):
                return self._place_slice(requirement, candidate, size)
        for kind in _CLASSES[requirement.purpose]:
            for option in self.iterate_candidate_lists(requirement, kind):
                for candidate in option:
                    if self._compute_free_bytes(candidate, ()) >= size and self._meets_rates(requirement, (candidate,)):
                        self._reserve_members((candidate,))
                        self.result.bins[candidate.id] = []
                        return self._place_slice(requirement, candidate, size)
        return None

    def _place_slice(self, requirement: LayoutRequirement, candidate: Candidate, size_bytes: int) -> PlacedFileSystem:
        self.result.bins[candidate.id].append(SliceRequest(f"{candidate.id}-{requirement.id}", size_bytes))
        return PlacedFileSystem(requirement, (candidate,), True, size_bytes)

    def _compute_free_bytes(self, candidate: Candidate, slice_requests: Sequence[SliceRequest]) -> int:
        step = compute_slice_alignment(candidate.device.full_stripe_bytes or MIB)
        used = sum(-(-(piece.size or 0) // step) * step for piece in slice_requests)
        return (candidate.device.capacity or 0) - used - (_LABEL_STEPS + 1) * step

    # ---- large file systems get whole disks

    def _place_whole_devices(self, requirement: LayoutRequirement) -> PlacedFileSystem:
        best: tuple[tuple[Candidate, ...], BandwidthEstimate] | None = None
        for kind in _CLASSES[requirement.purpose]:
            for option in self.iterate_candidate_lists(requirement, kind):
                members = self._find_fewest_members(requirement, option)
                if members is not None:
                    return self._commit_members(requirement, members)
                every = tuple(option[: self.count or len(option)])
                if every and (
                    best is None
                    or _compute_met_capacity_and_rate_shares(requirement, every, self._estimate_rates(every))
                    > _compute_met_capacity_and_rate_shares(requirement, *best)
                ):
                    best = (every, self._estimate_rates(every))
        if best is None:
            raise UserError(
                f"No storage is left for {requirement.id} ({requirement.purpose}): every drive, RAID group and LUN "
                f"is used; "
                "describe more of them, or require less."
            )
        self._record_unmet_requirement(requirement, *best)
        return self._commit_members(requirement, best[0])

    def _find_fewest_members(
        self, requirement: LayoutRequirement, candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...] | None:
        numbers = [self.count] if self.count is not None else range(1, len(candidates) + 1)
        if (
            requirement.capacity is None
            and requirement.read is None
            and requirement.write is None
            and self.count is None
        ):
            numbers = [len(candidates)]
        for number in numbers:
            members = tuple(candidates[:number])
            if (
                len(members) == number
                and _sum_member_bytes(members) >= (requirement.capacity or 0)
                and self._meets_rates(requirement, members)
            ):
                return members
        return None

    def _commit_members(
        self, requirement: LayoutRequirement, chosen_candidates: tuple[Candidate, ...]
    ) -> PlacedFileSystem:
        self._reserve_members(chosen_candidates, exclusively=True)
        log, length = self._place_log(requirement, chosen_candidates)
        rates = self._estimate_rates(chosen_candidates)
        for direction in ("read", "write"):
            if getattr(requirement, direction) is not None and getattr(rates, direction) is None:
                self.result.notes.append(
                    f"{requirement.id}: whether it can {direction} {format_rate(getattr(requirement, direction))} "
                    f"is unknown; "
                    "no part on its path has a rate in the system file"
                )
        return PlacedFileSystem(requirement, chosen_candidates, False, None, log, length)

    def _place_log(self, requirement: LayoutRequirement, chosen_candidates: Sequence[Candidate]) -> tuple[str, int]:
        """Places the log of a striped XFS on hard disks onto a mirror that shares no drive with its data. Returns the
        candidate and the size."""
        fast = len(chosen_candidates) > 1 or (requirement.write or 0) > xfs.LEGACY_LOG_RATE
        platters = any(isinstance(device.table, Drive) and device.table.kind in ("hdd", "")
                       for member in chosen_candidates for device in member.device.iterate_top_down())  # fmt: skip
        if requirement.table.kind != "xfs" or not (fast and platters):
            return "", 0
        length = xfs.compute_log_size_and_reason(
            _sum_member_bytes(chosen_candidates), 1 << 40, requirement.write, is_external=True
        )[0]
        if chosen_candidates[0].device.is_cray_x1:
            length = xfs.LEGACY_LARGEST_LOG
        for name, pieces in self.result.bins.items():
            candidate = self.result.candidates[name]
            if _is_mirrored(candidate) and self._compute_free_bytes(candidate, pieces) >= length:
                pieces.append(SliceRequest(f"{name}-{requirement.id}-log", length))
                return name, length
        for candidate in sort_candidates_by_least_sharing(self.free):
            if (
                _is_mirrored(candidate)
                and candidate.suitable_class == "transaction"
                and self._compute_free_bytes(candidate, ()) >= length
            ):
                self._reserve_members((candidate,))
                self.result.bins[candidate.id] = [SliceRequest(f"{candidate.id}-{requirement.id}-log", length)]
                return candidate.id, length
        self.result.notes.append(
            f"{requirement.id}: its log stays internal, because there is no free mirrored LUN for it"
        )
        return "", 0

    # ---- for both

    def iterate_candidate_lists(
        self, requirement: LayoutRequirement, candidate_class: str
    ) -> Iterator[list[Candidate]]:
        """Lists of equal candidates of a class, alternating over components: described ones first, then groups of free
        drives."""
        # a requested geometry applies to large file systems only
        fixed = self.geometry if _CLASSES[requirement.purpose][0] != "transaction" else None
        alike: dict[tuple[object, ...], list[Candidate]] = {}
        for candidate in self.free:
            if candidate.suitable_class == candidate_class and (
                fixed is None or str(candidate.device.raid_geometry) == str(fixed)
            ):
                together = alike.setdefault(candidate.equality_key, [])
                if candidate.device.list_raid_groups()[0].id not in {
                    other.device.list_raid_groups()[0].id for other in together
                }:
                    together.append(candidate)  # two LUNs of one RAID group would wait for each other in a stripe
        largest = sorted(alike.values(), key=lambda ones: -(ones[0].device.capacity or 0))
        yield from map(sort_candidates_by_least_sharing, largest)
        for boxes in group_equal_drives(self.drives, candidate_class):
            most = max(map(len, boxes.values()))
            sample = next(drives[0].table for drives in boxes.values())
            assert isinstance(sample, Drive)
            for geometry in [fixed] if fixed is not None else list_geometries(candidate_class, sample, most):
                if geometry.drive_count <= most:
                    yield sort_candidates_by_least_sharing(
                        propose_raid_groups(self.system, boxes, candidate_class, geometry, requirement.id)
                    )

    def _meets_rates(self, requirement: LayoutRequirement, chosen_candidates: tuple[Candidate, ...]) -> bool:
        rates = self._estimate_rates(chosen_candidates)
        for required, offered in ((requirement.read, rates.read), (requirement.write, rates.write)):
            if required is not None and offered is not None and offered < required:
                return False
        return True

    def _estimate_rates(self, chosen_candidates: tuple[Candidate, ...]) -> BandwidthEstimate:
        return estimate_bandwidth(self.system, "", (join_members(chosen_candidates),))

    def _reserve_members(self, chosen_candidates: Sequence[Candidate], *, exclusively: bool = False) -> None:
        """Marks members as used. With `exclusively` nothing else on their drives is offered to other file systems."""
        names = {member.id for member in chosen_candidates}
        used = {device.id for member in chosen_candidates for device in member.device.iterate_top_down()}
        self.free = [
            candidate
            for candidate in self.free
            if candidate.id not in names
            and not (exclusively and used & {inner.id for inner in candidate.device.list_raid_groups()})
        ]
        self.drives = {box: [drive for drive in drives if drive.id not in used] for box, drives in self.drives.items()}
        self.result.candidates |= {member.id: member for member in chosen_candidates}

    def _record_unmet_requirement(
        self, requirement: LayoutRequirement, chosen_candidates: tuple[Candidate, ...], rates: BandwidthEstimate
    ) -> None:
        count_text = format_count_with_noun(
            len(chosen_candidates), "LUN" if chosen_candidates[0].device.kind == "luns" else "group"
        )
        if requirement.capacity is not None and _sum_member_bytes(chosen_candidates) < requirement.capacity:
            self.result.unmet.append(
                f"{requirement.id} requires {format_bytes(requirement.capacity)}; all equal free members, "
                f"{count_text}, "
                f"offer {format_bytes(_sum_member_bytes(chosen_candidates))}"
            )
        for direction in ("read", "write"):
            required, offered = getattr(requirement, direction), getattr(rates, direction)
            if required is not None and offered is not None and offered < required:
                self.result.unmet.append(
                    f"{requirement.id} wants to {direction} {format_rate(required)}; with {count_text} it is "
                    f"{format_rate(offered)}, "
                    f"and the limit is {rates.limits[direction]}"
                )


def _is_mirrored(candidate: Candidate) -> bool:
    geometry = candidate.device.raid_geometry
    return geometry is not None and geometry.copies > 1


def _sum_member_bytes(chosen_candidates: Sequence[Candidate]) -> int:
    return len(chosen_candidates) * min((member.device.capacity or 0 for member in chosen_candidates), default=0)


def _compute_met_capacity_and_rate_shares(
    requirement: LayoutRequirement, chosen_candidates: Sequence[Candidate], rates: BandwidthEstimate
) -> tuple[float, float]:
    """How far the members meet a requirement: capacity, then bandwidth."""
    share = min(1.0, _sum_member_bytes(chosen_candidates) / requirement.capacity) if requirement.capacity else 1.0
    ways = [
        min(1.0, offered / required)
        for required, offered in ((requirement.read, rates.read), (requirement.write, rates.write))
        if required and offered is not None
    ]
    return share, min(ways, default=1.0)


def join_members(chosen_candidates: Sequence[Candidate]) -> BlockDevice:
    """The members as one device: the only one, or a volume striped over all with one full stripe per member."""
    if len(chosen_candidates) == 1:
        return chosen_candidates[0].device
    stripe = chosen_candidates[0].device.full_stripe_bytes
    table = Volume(
        id="-", kind="stripe", members=tuple(member.id for member in chosen_candidates),
        stripe_unit=None if stripe is None else make_planned_size(stripe),
    )  # fmt: skip
    return BlockDevice(
        "-",
        "volumes",
        table,
        tuple(member.device for member in chosen_candidates),
        _sum_member_bytes(chosen_candidates),
    )
