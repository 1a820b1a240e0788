# SPDX-License-Identifier: Apache-2.0
"""From wishes to a layout: which LUNs and drives hold which file system, how many side by side, where logs go.

Small file systems of the transaction class share a mirrored LUN in slices; large ones get as many equal LUNs as their
capacity and bandwidth take, alternating over subsystems, controllers and boxes, each with one aligned slice. The result
is a system like the one that was read, with everything that is new in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.design.layout import xfs
from sonde.design.layout.bandwidth import RollUp, roll_up
from sonde.design.layout.cuts import Piece
from sonde.design.layout.geometry import MIB, Geometry, modulo
from sonde.design.layout.stock import (
    Candidate,
    alternating,
    drives_alike,
    formed,
    free_drives,
    free_stores,
    geometries_for,
    size,
)
from sonde.design.layout.stores import Store
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.service import PURPOSES, FileSystem
from sonde.model.system.storage import Drive, Volume
from sonde.model.units import counted, format_bytes, format_rate

# Purpose -> the class of what it should lie on, then what will do.
_CLASSES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("root", "home", "spool", "tmp"), ("transaction", "bandwidth", "capacity")),
    **dict.fromkeys(("scratch", "checkpoint"), ("bandwidth", "transaction", "capacity")),
    "archive": ("capacity", "bandwidth", "transaction"),
}
LOCAL = ("xfs", "ext4", "btrfs", "zfs", "other")
WITH_TARGETS = ("lustre", "gpfs", "beegfs")
# Room beside the slices of a shared disk: partition table and steps of the alignment.
_LABEL_STEPS = 2


@dataclass(frozen=True)
class Wish:
    """A file system that is to be laid out. Bytes and bytes/s; None is "nobody said"."""

    id: str
    table: FileSystem
    capacity: int | None
    read: float | None
    write: float | None

    @property
    def purpose(self) -> str:
        return self.table.purpose


@dataclass(frozen=True)
class Placed:
    """Where a wish goes: its members, all alike, or a slice of a shared one."""

    wish: Wish
    members: tuple[Candidate, ...]
    shared: bool
    size: int | None  # of the slice on a shared disk
    log: str = ""  # the candidate that gets a slice for its log
    log_size: int = 0


@dataclass
class Placement:
    """All wishes placed, and what could not be had."""

    placed: list[Placed] = field(default_factory=list)
    bins: dict[str, list[Piece]] = field(default_factory=dict)  # shared disk -> its slices, in order
    candidates: dict[str, Candidate] = field(default_factory=dict)
    spares: dict[str, list[Store]] = field(default_factory=dict)  # drives that nobody got, by box
    short: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def wishes(system: System) -> list[Wish]:
    """File systems that say what they should offer but not what they lie on, in the order in which they are placed."""
    found = []
    for item in system.items("file_systems"):
        table = item.table
        assert isinstance(table, FileSystem)
        if table.wanted is None or table.device or system.targets_of(item.id):
            continue
        source = system.index.source_of(table)
        if not table.purpose:
            raise source.wrong(
                "purpose", f"is missing, but the file system is to be laid out; write one of {', '.join(PURPOSES)}."
            )
        if table.kind not in LOCAL + WITH_TARGETS:
            raise source.wrong("kind", f'is "{table.kind}", which cannot be laid out on drives; write xfs or ext4.')
        wanted = table.wanted
        if wanted.capacity is None and table.purpose not in ("scratch", "checkpoint", "archive"):
            raise source.wrong("wanted.capacity", f"is missing; a file system for {table.purpose} needs a size.")
        read, write = (None if one is None else float(one) for one in (wanted.read, wanted.write))
        found.append(Wish(item.id, table, None if wanted.capacity is None else int(wanted.capacity), read, write))
    return sorted(found, key=lambda wish: PURPOSES.index(wish.purpose))


def place(system: System, asked: Sequence[Wish], geometry: Geometry | None = None,
          members: int | None = None) -> Placement:  # fmt: skip
    """Places every wish. `geometry` is that of groups made of drives for large file systems, `members` how many LUNs or
    groups a large one gets; otherwise the planner chooses both. Raises UserError when there is nothing to use."""
    return _Placing(system, geometry, members).place(asked)


def options_for(system: System, wish: Wish, geometry: Geometry | None) -> list[list[Candidate]]:
    """Lists of equal members of a geometry for a wish, alternating as in a plan, those first that suit it best."""
    placing = _Placing(system, geometry, None)
    options = [option for kind in _CLASSES[wish.purpose] for option in placing.options(wish, kind) if option]
    return [one for one in options if geometry is None or str(one[0].store.geometry) == str(geometry)]


class _Placing:
    def __init__(self, system: System, geometry: Geometry | None, members: int | None) -> None:
        self.system, self.geometry, self.count = system, geometry, members
        self.free = free_stores(system)
        self.drives = {box: list(drives) for box, drives in free_drives(system).items()}
        self.result = Placement()

    def place(self, asked: Sequence[Wish]) -> Placement:
        if asked and not self.free and not any(self.drives.values()):
            raise UserError(
                f"{self.system.id} has no free drives, RAID groups or LUNs of known size; describe them, with capacity."
            )
        for wish in asked:
            small = _CLASSES[wish.purpose][0] == "transaction" and wish.table.kind in LOCAL
            placed = self._shared(wish) if small else None
            self.result.placed.append(placed or self._whole(wish))
        self.result.spares = self.drives
        return self.result

    # ---- small file systems share a disk

    def _shared(self, wish: Wish) -> Placed | None:
        wanted = wish.capacity or 0
        for name, pieces in self.result.bins.items():
            home = self.result.candidates[name]
            if self._room(home, pieces) >= wanted and self._enough(wish, (home,)):
                return self._slice(wish, home, wanted)
        for kind in _CLASSES[wish.purpose]:
            for option in self.options(wish, kind):
                for home in option:
                    if self._room(home, ()) >= wanted and self._enough(wish, (home,)):
                        self._take((home,))
                        self.result.bins[home.id] = []
                        return self._slice(wish, home, wanted)
        return None

    def _slice(self, wish: Wish, home: Candidate, wanted: int) -> Placed:
        self.result.bins[home.id].append(Piece(f"{home.id}-{wish.id}", wanted))
        return Placed(wish, (home,), True, wanted)

    def _room(self, home: Candidate, pieces: Sequence[Piece]) -> int:
        step = modulo(home.store.stripe or MIB)
        taken = sum(-(-(piece.size or 0) // step) * step for piece in pieces)
        return (home.store.capacity or 0) - taken - (_LABEL_STEPS + 1) * step

    # ---- large ones get whole disks

    def _whole(self, wish: Wish) -> Placed:
        best: tuple[tuple[Candidate, ...], RollUp] | None = None
        for kind in _CLASSES[wish.purpose]:
            for option in self.options(wish, kind):
                found = self._fewest(wish, option)
                if found is not None:
                    return self._settle(wish, found)
                every = tuple(option[: self.count or len(option)])
                if every and (best is None or _worth(wish, every, self._rates(every)) > _worth(wish, *best)):
                    best = (every, self._rates(every))
        if best is None:
            raise UserError(
                f"Nothing is left for {wish.id} ({wish.purpose}): every drive, RAID group and LUN is used; "
                "describe more of them, or want less."
            )
        self._say_short(wish, *best)
        return self._settle(wish, best[0])

    def _fewest(self, wish: Wish, option: Sequence[Candidate]) -> tuple[Candidate, ...] | None:
        numbers = [self.count] if self.count is not None else range(1, len(option) + 1)
        if wish.capacity is None and wish.read is None and wish.write is None and self.count is None:
            numbers = [len(option)]
        for number in numbers:
            some = tuple(option[:number])
            if len(some) == number and _bytes(some) >= (wish.capacity or 0) and self._enough(wish, some):
                return some
        return None

    def _settle(self, wish: Wish, some: tuple[Candidate, ...]) -> Placed:
        self._take(some, alone=True)
        log, length = self._log(wish, some)
        rates = self._rates(some)
        for way in ("read", "write"):
            if getattr(wish, way) is not None and getattr(rates, way) is None:
                self.result.notes.append(
                    f"{wish.id}: whether it can {way} {format_rate(getattr(wish, way))} is unknown; "
                    "no part on the way has a rate in the system file"
                )
        return Placed(wish, some, False, None, log, length)

    def _log(self, wish: Wish, some: Sequence[Candidate]) -> tuple[str, int]:
        """A striped XFS on platters gets its log on a mirror that shares no drive with it."""
        fast = len(some) > 1 or (wish.write or 0) > xfs.LEGACY_LOG_RATE
        platters = any(isinstance(one.table, Drive) and one.table.kind in ("hdd", "")
                       for member in some for one in member.store.walk())  # fmt: skip
        if wish.table.kind != "xfs" or not (fast and platters):
            return "", 0
        length = xfs.log_size(_bytes(some), 1 << 40, wish.write, external=True)[0]
        if some[0].store.legacy:
            length = xfs.LEGACY_LARGEST_LOG
        for name, pieces in self.result.bins.items():
            home = self.result.candidates[name]
            if _mirrored(home) and self._room(home, pieces) >= length:
                pieces.append(Piece(f"{name}-{wish.id}-log", length))
                return name, length
        for home in alternating(self.free):
            if _mirrored(home) and home.good_for == "transaction" and self._room(home, ()) >= length:
                self._take((home,))
                self.result.bins[home.id] = [Piece(f"{home.id}-{wish.id}-log", length)]
                return home.id, length
        self.result.notes.append(
            f"{wish.id}: its log stays inside, because there is no free mirrored LUN that it could have to itself"
        )
        return "", 0

    # ---- what both ask

    def options(self, wish: Wish, kind: str) -> Iterator[list[Candidate]]:
        """Lists of candidates alike and alternating, that are good for `kind`: first what is described, then groups of
        free drives."""
        # a geometry that was asked for is that of large file systems; small ones go where they always do
        fixed = self.geometry if _CLASSES[wish.purpose][0] != "transaction" else None
        alike: dict[tuple[object, ...], list[Candidate]] = {}
        for one in self.free:
            if one.good_for == kind and (fixed is None or str(one.store.geometry) == str(fixed)):
                together = alike.setdefault(one.alike, [])
                if one.store.groups()[0].id not in {other.store.groups()[0].id for other in together}:
                    together.append(one)  # two LUNs of one RAID group in a stripe would wait for each other
        largest = sorted(alike.values(), key=lambda ones: -(ones[0].store.capacity or 0))
        yield from map(alternating, largest)
        for boxes in drives_alike(self.drives, kind):
            most = max(map(len, boxes.values()))
            sample = next(drives[0].table for drives in boxes.values())
            assert isinstance(sample, Drive)
            for geometry in [fixed] if fixed is not None else geometries_for(kind, sample, most):
                if geometry.drives <= most:
                    yield alternating(formed(self.system, boxes, kind, geometry, wish.id))

    def _enough(self, wish: Wish, some: tuple[Candidate, ...]) -> bool:
        rates = self._rates(some)
        for wanted, offered in ((wish.read, rates.read), (wish.write, rates.write)):
            if wanted is not None and offered is not None and offered < wanted:
                return False
        return True

    def _rates(self, some: tuple[Candidate, ...]) -> RollUp:
        return roll_up(self.system, "", (as_one(some),))

    def _take(self, some: Sequence[Candidate], *, alone: bool = False) -> None:
        """Marks members as used; `alone`: what else lies on the same drives is not offered to others."""
        names = {one.id for one in some}
        used = {one.id for member in some for one in member.store.walk()}
        self.free = [one for one in self.free if one.id not in names
                     and not (alone and used & {inner.id for inner in one.store.groups()})]  # fmt: skip
        self.drives = {box: [one for one in drives if one.id not in used] for box, drives in self.drives.items()}
        self.result.candidates |= {one.id: one for one in some}

    def _say_short(self, wish: Wish, some: tuple[Candidate, ...], rates: RollUp) -> None:
        what = counted(len(some), "LUN" if some[0].store.kind == "luns" else "group")
        if wish.capacity is not None and _bytes(some) < wish.capacity:
            self.result.short.append(
                f"{wish.id} wants {format_bytes(wish.capacity)}; all that is free and alike, {what}, offers "
                f"{format_bytes(_bytes(some))}"
            )
        for way in ("read", "write"):
            wanted, offered = getattr(wish, way), getattr(rates, way)
            if wanted is not None and offered is not None and offered < wanted:
                self.result.short.append(
                    f"{wish.id} wants to {way} {format_rate(wanted)}; with {what} it is {format_rate(offered)}, "
                    f"and the limit is {rates.limits[way]}"
                )


def _mirrored(one: Candidate) -> bool:
    geometry = one.store.geometry
    return geometry is not None and geometry.copies > 1


def _bytes(some: Sequence[Candidate]) -> int:
    return len(some) * min((one.store.capacity or 0 for one in some), default=0)


def _worth(wish: Wish, some: Sequence[Candidate], rates: RollUp) -> tuple[float, float]:
    """How much of a wish is fulfilled: capacity, then bandwidth."""
    share = min(1.0, _bytes(some) / wish.capacity) if wish.capacity else 1.0
    ways = [
        min(1.0, offered / wanted)
        for wanted, offered in ((wish.read, rates.read), (wish.write, rates.write))
        if wanted and offered is not None
    ]
    return share, min(ways, default=1.0)


def as_one(some: Sequence[Candidate]) -> Store:
    """The members as one store: itself, or a volume striped over all, one full stripe on each before the next."""
    if len(some) == 1:
        return some[0].store
    stripe = some[0].store.stripe
    table = Volume(
        id="-", kind="stripe", members=tuple(one.id for one in some),
        stripe_unit=None if stripe is None else size(stripe),
    )  # fmt: skip
    return Store("-", "volumes", table, tuple(one.store for one in some), _bytes(some))
