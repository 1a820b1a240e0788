# SPDX-License-Identifier: Apache-2.0
"""Text and table rows for layouts, and a report in the form of csmreport."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.layout.alternatives import AlternativeResult
from sonde.design.layout.block_devices import BlockDevice, resolve_block_device
from sonde.design.layout.candidates import find_outermost_enclosure
from sonde.design.layout.failures import FailureEffect
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import format_csm_size
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.stripe_measurement import StripeGeometry, StripeMeasurement
from sonde.model.ranges import fold_names_into_ranges
from sonde.model.system import System
from sonde.model.system.storage import Controller, Lun, RaidGroup
from sonde.model.units import format_bytes, format_count_with_noun, format_rate, format_seconds

UNKNOWN = "unknown"


def format_rate_or_unknown(rate: float | None) -> str:
    """Returns the rate with its unit, or "unknown" for None."""
    return UNKNOWN if rate is None else format_rate(rate)


def format_size_or_unknown(size_bytes: int | None) -> str:
    """A size in binary and decimal units, which differ by 10 % at a terabyte."""
    return UNKNOWN if size_bytes is None else f"{format_bytes(size_bytes)} ({format_csm_size(size_bytes)})"


def describe_devices(layout: FileSystemLayout) -> str:
    """Describes the devices of a file system, for example "2 x 8+1, striped"."""
    devices = layout.devices
    if not devices:
        return f"{format_count_with_noun(len(layout.targets), 'target')}; their devices are not described"
    groups = [group for device in devices for group in device.list_raid_groups()]
    kinds = sorted({f"{group.raid_geometry}" for group in groups if group.raid_geometry is not None}) or ["one drive"]
    if len(devices) > 1:
        return f"{format_count_with_noun(len(devices), 'target')}, each {', '.join(kinds)}"
    base = devices[0]
    if base.kind == "volumes" and len(base.members) > 1:
        return f"{len(base.members)} x {', '.join(kinds)}, striped"
    return f"{base.id}, {', '.join(kinds)}"


def make_plan_rows(layouts: Sequence[FileSystemLayout]) -> Iterator[tuple[str, ...]]:
    """Rows of a table: file system, devices, capacity, unit and width, groups, log, read, write, limit."""
    for layout in layouts:
        stripe = f"{format_bytes(layout.unit)} / {format_bytes(layout.width)}" if layout.unit else "none"
        groups = f"{layout.groups.count:,}" if layout.groups is not None else "-"
        log = "-" if layout.log_size is None else format_bytes(layout.log_size)
        if layout.log is not None:
            log = f"{log} on {layout.log.id}".removeprefix("- ")
        limit = layout.rates.limits["write"] or layout.rates.limits["read"] or "no rates known"
        name = f"{layout.id} ({layout.table.kind}{', ' + layout.table.purpose if layout.table.purpose else ''})"
        yield (
            name,
            describe_devices(layout),
            format_size_or_unknown(layout.capacity),
            stripe,
            groups,
            log,
            format_rate_or_unknown(layout.rates.read),
            format_rate_or_unknown(layout.rates.write),
            limit,
        )


def list_stages_without_rate(layout: FileSystemLayout) -> list[str]:
    """Stages that do not limit the estimate because no part of them has a rate in the file."""
    return [stage.name for stage in layout.rates.stages if stage.read is None and stage.write is None]


def make_failure_rows(
    failure_effects: Sequence[FailureEffect], intact_layout: FileSystemLayout
) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: the failed part, reading, writing, further effects."""
    for effect in failure_effects:
        more = effect.lost or (f"limit {effect.limit}" if effect.limit else "")
        if effect.rebuild_s is not None:
            more = f"rebuilt after {format_seconds(effect.rebuild_s)} at best; {more}"
        yield (
            f"{effect.kind} {effect.part}",
            _format_rate_against_intact(effect.read, intact_layout.rates.read, effect.lost),
            _format_rate_against_intact(effect.write, intact_layout.rates.write, effect.lost),
            more,
        )


def _format_rate_against_intact(rate_after: float | None, rate_before: float | None, lost_text: str) -> str:
    if lost_text:
        return "lost"
    if rate_after is None or not rate_before:
        return UNKNOWN
    return f"{format_rate(rate_after)} ({100 * rate_after / rate_before:.0f} %)"


def make_alternative_rows(alternative_results: Sequence[AlternativeResult]) -> Iterator[tuple[str, ...]]:
    """Rows of a table with one alternative each."""
    for result in alternative_results:
        rebuild = UNKNOWN if result.rebuild_s is None else format_seconds(result.rebuild_s)
        degraded = UNKNOWN
        if result.degraded_write is not None and result.write:
            degraded = f"{format_rate(result.degraded_write)} ({100 * result.degraded_write / result.write:.0f} %)"
        yield (
            result.name,
            f"{result.members} of {result.drives} drives",
            format_size_or_unknown(result.capacity),
            format_rate_or_unknown(result.read),
            format_rate_or_unknown(result.write),
            format_rate_or_unknown(result.single_write),
            result.limit or UNKNOWN,
            degraded,
            rebuild,
            f"{format_count_with_noun(result.bears, 'drive')}, then {100 * result.at_risk:.0f} %",
        )


def describe_measurement(stripe: StripeGeometry, measurement: StripeMeasurement) -> Iterator[str]:
    """Lines with the measured rates and the check of each prediction."""
    yield (
        f"segment {format_bytes(stripe.segment)}, full stripe {format_bytes(stripe.stripe)}, "
        f"width {format_bytes(stripe.width)}: {stripe.source}"
    )
    for name, values in measurement.rates.items():
        low, high = min(values), max(values)
        yield f"  {name}: {format_rate(low)} to {format_rate(high)} in {format_count_with_noun(len(values), 'turn')}"
    for check in measurement.answers:
        between = f" ({check.low:.2f} to {check.high:.2f})" if check.low is not None and check.high is not None else ""
        rate = check.question.startswith("rate")
        value = format_rate(check.measured) if rate else f"{check.measured:.2f}{between}"
        prediction = "" if check.predicted is None else (
            f", predicted up to {format_rate(check.predicted[1])}" if rate
            else f", predicted {check.predicted[0]:.2f} to {check.predicted[1]:.2f}"
        )  # fmt: skip
        yield f"{check.question}: {value}{prediction}: {check.verdict}. {check.why}."


def describe_observations(observed_storage: ObservedStorage) -> Iterator[str]:
    """One line per observed file system, file and disk."""
    for file_system in observed_storage.file_systems:
        facts = [file_system.kind]
        if file_system.size_bytes is not None:
            facts.append(format_bytes(file_system.size_bytes))
        if file_system.unit is not None and file_system.kind != "lustre":
            facts.append(f"unit {format_bytes(file_system.unit)}" if file_system.unit else "no stripe unit")
        if file_system.width:
            facts.append(f"width {format_bytes(file_system.width)}")
        if file_system.group_count is not None:
            facts.append(f"{file_system.group_count:,} groups of {file_system.group_blocks} blocks")
        if file_system.log is not None:
            facts.append(f"log {format_bytes(file_system.log)} {file_system.log_device or ''}".rstrip())
        facts += [f"{name} {value}" for name, value in file_system.facts.items() if value and name != "log_unit"]
        yield f"{file_system.location}: {', '.join(facts)}"
    for file in observed_storage.files:
        total = sum(length for _, _, length in file.pieces)
        yield f"{file.path}: {format_count_with_noun(len(file.pieces), 'extent')}, {format_bytes(total)}"
    for disk in observed_storage.disks.values():
        facts = [disk.kind, *([format_bytes(disk.size)] if disk.size is not None else []), disk.level, disk.geometry]
        if disk.full_stripe_bytes:
            facts.append(f"stripe {format_bytes(disk.full_stripe_bytes)}")
        if disk.start is not None:
            facts.append(f"begins at {format_bytes(disk.start)} of {disk.on}")
        if disk.paths:
            active = sum(bool(path.active) for path in disk.paths)
            facts.append(f"{format_count_with_noun(len(disk.paths), 'path')}, {active} active")
        yield f"  {disk.name}: {', '.join(fact for fact in facts if fact)}"


# ---- a report in the form of csmreport


def make_report(system: System, layout: Sequence[FileSystemLayout], *, in_powers_of_1024: bool = False) -> str:
    """Every subsystem with its enclosures, controllers, drives, RAID groups and LUNs, then the file systems. Sizes of
    drives and LUNs are in powers of 1000, or with `in_powers_of_1024` of 1024, like csmreport with its option -G."""
    lines = [f"{system.id}: {system.title}".rstrip(": ")]
    for box, members in _map_raid_groups_by_enclosure(system).items():
        lines += ["", *_describe_subsystem(system, box, members, in_powers_of_1024)]
    if layout:
        lines += ["", "File systems"]
        for row in make_plan_rows(layout):
            name, devices, size, stripe, groups, log, read, write, limit = row
            lines.append(f"  {name}: {size} on {devices}")
            lines.append(f"    unit / width {stripe}, {groups} groups, log {log}")
            lines.append(f"    read {read}, write {write}; limit {limit}")
    return "\n".join(lines) + "\n"


def _map_raid_groups_by_enclosure(system: System) -> dict[str, list[str]]:
    """RAID groups by the outermost enclosure of their controller or first drive."""
    groups: dict[str, list[str]] = {}
    for item in system.list_parts("raid_groups"):
        owner = system.find_first_reference(item.id, "controller")
        drives = system.find_references(item.id, "drives")
        box = system.find_first_reference(owner, "enclosure") if owner else None
        if not box and drives:
            box = system.find_first_reference(drives[0], "enclosure") or system.find_first_reference(
                drives[0], "server"
            )
        groups.setdefault(find_outermost_enclosure(system, box or ""), []).append(item.id)
    return groups


def _describe_subsystem(system: System, box: str, groups: Sequence[str], in_powers_of_1024: bool) -> Iterator[str]:
    kind = getattr(system.get_part(box).table, "kind", "") if box else ""
    yield f"{box or 'RAID groups'}{' (' + kind + ')' if kind else ''}"
    drives = [name for group in groups for name in system.find_references(group, "drives")]
    sizes = sorted({system.compute_capacity(drive) or 0 for drive in drives})
    each = (
        ", ".join(format_csm_size(size, in_powers_of_1024=in_powers_of_1024) for size in sizes if size)
        or "size unknown"
    )
    yield f"  {format_count_with_noun(len(drives), 'drive')} in groups, {each}"
    for owner in dict.fromkeys(system.find_first_reference(group, "controller") for group in groups):
        if owner:
            yield from _describe_controller(system, owner)
    for group in groups:
        device = resolve_block_device(system, group)
        yield (
            f"  {_group_words(device)}  drives "
            f"{fold_names_into_ranges(system.find_references(group, 'drives')) or 'not described'}"
        )
        for item in system.list_parts("luns"):
            if group in system.find_references(item.id, "raid_group"):
                yield _describe_lun(system, item.id, device, in_powers_of_1024)


def _describe_controller(system: System, controller_id: str) -> Iterator[str]:
    table = system.get_part(controller_id).table
    assert isinstance(table, Controller)
    partner = system.find_first_reference(controller_id, "partner")
    ports = f", {int(table.ports)} ports" if table.ports is not None else ""
    yield (
        f"  {table.title or controller_id} {table.address}".rstrip()
        + ports
        + (f", partner {partner}" if partner else "")
    )


def _group_words(device: BlockDevice) -> str:
    table = device.table
    assert isinstance(table, RaidGroup)
    segment = f"/{device.stripe_unit_bytes // 1024}KB" if device.stripe_unit_bytes else ""
    return (
        f"{device.id}  RAID-{table.level}/{device.raid_geometry or '?'}{segment}  "
        f"{format_size_or_unknown(device.capacity)}"
    )


def _describe_lun(system: System, lun_id: str, raid_group: BlockDevice, in_powers_of_1024: bool) -> str:
    item = system.get_part(lun_id)
    table = item.table
    assert isinstance(table, Lun)
    number = f"{int(table.number) + item.position}" if table.number is not None else "-"
    assert isinstance(raid_group.table, RaidGroup)
    segment = f"/{raid_group.stripe_unit_bytes // 1024}KB" if raid_group.stripe_unit_bytes else ""
    size = system.compute_capacity(lun_id)
    raid = f"RAID-{raid_group.table.level}/{raid_group.raid_geometry}{segment}"
    size_text = format_csm_size(size, in_powers_of_1024=in_powers_of_1024) if size else UNKNOWN
    return f"    LUN {number:>3}  {table.label or lun_id:<14} {raid:<18} {size_text:>8}  {table.purpose}".rstrip()
