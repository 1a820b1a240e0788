# SPDX-License-Identifier: Apache-2.0
"""Plans in words: a report like that of csmreport, rows of tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.layout.alternatives import Outcome
from sonde.design.layout.failures import Failure
from sonde.design.layout.geometry import csm_words
from sonde.design.layout.laid import Laid
from sonde.design.layout.live.seen import Seen
from sonde.design.layout.measuring import Measured, Stripe
from sonde.design.layout.stock import outermost
from sonde.design.layout.stores import Store, store_of
from sonde.model.ranges import fold
from sonde.model.system import System
from sonde.model.system.storage import Controller, Lun, RaidGroup
from sonde.model.units import counted, format_bytes, format_rate, format_seconds

UNKNOWN = "unknown"


def rate_words(value: float | None) -> str:
    """A rate, or that nobody knows."""
    return UNKNOWN if value is None else format_rate(value)


def size_words(value: int | None) -> str:
    """A size in both kinds of units, because the two differ by 10 % at a terabyte."""
    return UNKNOWN if value is None else f"{format_bytes(value)} ({csm_words(value)})"


def where_words(laid: Laid) -> str:
    """What a file system lies on: 2 x rs1-L10 8+1, striped."""
    stores = laid.stores
    if not stores:
        return f"{counted(len(laid.targets), 'target')}; what they lie on is not described"
    groups = [group for store in stores for group in store.groups()]
    kinds = sorted({f"{one.geometry}" for one in groups if one.geometry is not None}) or ["one drive"]
    if len(stores) > 1:
        return f"{counted(len(stores), 'target')}, each {', '.join(kinds)}"
    store = stores[0]
    if store.kind == "volumes" and len(store.members) > 1:
        return f"{len(store.members)} x {', '.join(kinds)}, striped"
    return f"{store.id}, {', '.join(kinds)}"


def plan_rows(laid: Sequence[Laid]) -> Iterator[tuple[str, ...]]:
    """Rows of a table: file system, where, capacity, unit and width, groups, log, read, write, limit."""
    for one in laid:
        stripe = f"{format_bytes(one.unit)} / {format_bytes(one.width)}" if one.unit else "none"
        groups = f"{one.groups.count:,}" if one.groups is not None else "-"
        log = "-" if one.log_size is None else format_bytes(one.log_size)
        if one.log is not None:
            log += f" on {one.log.id}"
        limit = one.rates.limits["write"] or one.rates.limits["read"] or "no rates known"
        name = f"{one.id} ({one.table.kind}{', ' + one.table.purpose if one.table.purpose else ''})"
        yield (name, where_words(one), size_words(one.capacity), stripe, groups, log,
               rate_words(one.rates.read), rate_words(one.rates.write), limit)  # fmt: skip


def unknown_stages(laid: Laid) -> list[str]:
    """Stages that limit nothing because no part of them has a rate in the file."""
    return [stage.name for stage in laid.rates.stages if stage.read is None and stage.write is None]


def failure_rows(found: Sequence[Failure], whole: Laid) -> Iterator[tuple[str, str, str, str]]:
    """Rows: what fails, reading, writing, what else."""
    for one in found:
        more = one.lost or (f"limit {one.limit}" if one.limit else "")
        if one.rebuild_s is not None:
            more = f"rebuilt after {format_seconds(one.rebuild_s)} at best; {more}"
        yield (f"{one.kind} {one.part}", _against(one.read, whole.rates.read, one.lost),
               _against(one.write, whole.rates.write, one.lost), more)  # fmt: skip


def _against(after: float | None, before: float | None, lost: str) -> str:
    if lost:
        return "lost"
    if after is None or not before:
        return UNKNOWN
    return f"{format_rate(after)} ({100 * after / before:.0f} %)"


def outcome_rows(found: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """Rows of alternatives, side by side."""
    for one in found:
        rebuild = UNKNOWN if one.rebuild_s is None else format_seconds(one.rebuild_s)
        degraded = UNKNOWN
        if one.degraded_write is not None and one.write:
            degraded = f"{format_rate(one.degraded_write)} ({100 * one.degraded_write / one.write:.0f} %)"
        yield (one.name, f"{one.members} of {one.drives} drives", size_words(one.capacity), rate_words(one.read),
               rate_words(one.write), rate_words(one.single_write), one.limit or UNKNOWN, degraded, rebuild,
               f"{counted(one.bears, 'drive')}, then {100 * one.at_risk:.0f} %")  # fmt: skip


def measured_words(stripe: Stripe, found: Measured) -> Iterator[str]:
    """What was measured, and whether it is what was predicted."""
    yield (
        f"segment {format_bytes(stripe.segment)}, full stripe {format_bytes(stripe.stripe)}, "
        f"width {format_bytes(stripe.width)}: {stripe.source}"
    )
    for name, values in found.rates.items():
        low, high = min(values), max(values)
        yield f"  {name}: {format_rate(low)} to {format_rate(high)} in {counted(len(values), 'turn')}"
    for one in found.answers:
        between = f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None and one.high is not None else ""
        rate = one.question.startswith("rate")
        value = format_rate(one.measured) if rate else f"{one.measured:.2f}{between}"
        told = "" if one.predicted is None else (
            f", predicted up to {format_rate(one.predicted[1])}" if rate
            else f", predicted {one.predicted[0]:.2f} to {one.predicted[1]:.2f}"
        )  # fmt: skip
        yield f"{one.question}: {value}{told}: {one.verdict}. {one.why}."


def seen_words(seen: Seen) -> Iterator[str]:
    """A line for each file system that was seen, and one for what lies beneath it."""
    for one in seen.file_systems:
        facts = [one.kind]
        if one.size is not None:
            facts.append(format_bytes(one.size))
        if one.unit is not None and one.kind != "lustre":
            facts.append(f"unit {format_bytes(one.unit)}" if one.unit else "no stripe unit")
        if one.width:
            facts.append(f"width {format_bytes(one.width)}")
        if one.group_count is not None:
            facts.append(f"{one.group_count:,} groups of {one.group_blocks} blocks")
        if one.log is not None:
            facts.append(f"log {format_bytes(one.log)} {one.log_device or ''}".rstrip())
        facts += [f"{name} {value}" for name, value in one.facts.items() if value and name != "log_unit"]
        yield f"{one.where}: {', '.join(facts)}"
    for file in seen.files:
        yield f"{file.path}: {counted(len(file.pieces), 'extent')}, {format_bytes(sum(one[2] for one in file.pieces))}"
    for disk in seen.disks.values():
        facts = [disk.kind, *([format_bytes(disk.size)] if disk.size is not None else []), disk.level, disk.geometry]
        if disk.stripe:
            facts.append(f"stripe {format_bytes(disk.stripe)}")
        if disk.start is not None:
            facts.append(f"begins at {format_bytes(disk.start)} of {disk.on}")
        if disk.paths:
            active = sum(bool(path.active) for path in disk.paths)
            facts.append(f"{counted(len(disk.paths), 'path')}, {active} active")
        yield f"  {disk.name}: {', '.join(one for one in facts if one)}"


# ---- a report of what there is, in the shape of csmreport


def report(system: System, laid: Sequence[Laid], *, binary: bool = False) -> str:
    """Every subsystem with its boxes, controllers, drives, RAID groups and LUNs; then the file systems. Sizes of drives
    and LUNs are in powers of 1000, or with `binary` of 1024, as csmreport has them with its option -G."""
    lines = [f"{system.id}: {system.title}".rstrip(": ")]
    for box, members in _subsystems(system).items():
        lines += ["", *_subsystem(system, box, members, binary)]
    if laid:
        lines += ["", "File systems"]
        for row in plan_rows(laid):
            name, where, size, stripe, groups, log, read, write, limit = row
            lines.append(f"  {name}: {size} on {where}")
            lines.append(f"    unit / width {stripe}, {groups} groups, log {log}")
            lines.append(f"    read {read}, write {write}; limit {limit}")
    return "\n".join(lines) + "\n"


def _subsystems(system: System) -> dict[str, list[str]]:
    """RAID groups by the outermost box that their controller or first drive is in."""
    found: dict[str, list[str]] = {}
    for item in system.items("raid_groups"):
        owner = system.reference(item.id, "controller")
        drives = system.references(item.id, "drives")
        box = system.reference(owner, "enclosure") if owner else None
        if not box and drives:
            box = system.reference(drives[0], "enclosure") or system.reference(drives[0], "server")
        found.setdefault(outermost(system, box or ""), []).append(item.id)
    return found


def _subsystem(system: System, box: str, groups: Sequence[str], binary: bool) -> Iterator[str]:
    kind = getattr(system.item(box).table, "kind", "") if box else ""
    yield f"{box or 'RAID groups'}{' (' + kind + ')' if kind else ''}"
    drives = [one for group in groups for one in system.references(group, "drives")]
    sizes = sorted({system.capacity_of(one) or 0 for one in drives})
    each = ", ".join(csm_words(one, binary=binary) for one in sizes if one) or "size unknown"
    yield f"  {counted(len(drives), 'drive')} in groups, {each}"
    for owner in dict.fromkeys(system.reference(group, "controller") for group in groups):
        if owner:
            yield from _controller(system, owner)
    for group in groups:
        store = store_of(system, group)
        yield f"  {_group_words(store)}  drives {fold(system.references(group, 'drives')) or 'not described'}"
        for item in system.items("luns"):
            if group in system.references(item.id, "raid_group"):
                yield _lun_words(system, item.id, store, binary)


def _controller(system: System, name: str) -> Iterator[str]:
    table = system.item(name).table
    assert isinstance(table, Controller)
    partner = system.reference(name, "partner")
    ports = f", {int(table.ports)} ports" if table.ports is not None else ""
    yield f"  {table.title or name} {table.address}".rstrip() + ports + (f", partner {partner}" if partner else "")


def _group_words(store: Store) -> str:
    table = store.table
    assert isinstance(table, RaidGroup)
    segment = f"/{store.unit // 1024}KB" if store.unit else ""
    return f"{store.id}  RAID-{table.level}/{store.geometry or '?'}{segment}  {size_words(store.capacity)}"


def _lun_words(system: System, name: str, group: Store, binary: bool) -> str:
    item = system.item(name)
    table = item.table
    assert isinstance(table, Lun)
    number = f"{int(table.number) + item.position}" if table.number is not None else "-"
    assert isinstance(group.table, RaidGroup)
    segment = f"/{group.unit // 1024}KB" if group.unit else ""
    size = system.capacity_of(name)
    what = f"RAID-{group.table.level}/{group.geometry}{segment}"
    words = csm_words(size, binary=binary) if size else UNKNOWN
    return f"    LUN {number:>3}  {table.label or name:<14} {what:<18} {words:>8}  {table.purpose}".rstrip()
