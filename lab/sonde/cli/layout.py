# SPDX-License-Identifier: Apache-2.0
"""``sonde layout``: storage from drives to a mounted file system, planned, checked and verified."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import VerbGroup, archive_option, json_option
from sonde.design.layout import words
from sonde.design.layout.failures import failures
from sonde.design.layout.geometry import parse_geometry
from sonde.design.layout.laid import Laid
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.model.errors import DONE, FAILED, MachineError, UserError, suggestion
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.shipped import system_source
from sonde.model.system import System, read_system
from sonde.store.archive import Archive
from sonde.terminal.screen import messages, plain_table, print_json, results


@click.group("layout", cls=VerbGroup)
def command() -> None:
    """Lay out storage: from drives over RAID groups, LUNs, slices and volumes to file systems.

    \b
    Examples:
      sonde layout plan nvme-enclosure -o layout/
      sonde layout plan cray-x1 --explain
    """


_system = click.argument("system", metavar="SYSTEM")


@command.command("plan")
@_system
@click.option("--explain", is_flag=True, help="Every number with its arithmetic.")
@click.option("--geometry", metavar="GEOMETRY", help="Of groups made for large file systems, like 8+2 or 4x2.")
@click.option("--members", type=click.IntRange(1, 4096), metavar="N", help="LUNs or groups of each large file system.")
@click.option(
    "--volumes", type=click.Choice(["lvm", "md"]), default="lvm", show_default=True, help="What stripes them."
)
@click.option("--without", "lost", multiple=True, metavar="PART", help="Bandwidth with this part failed.")
@click.option("--failures", "failing", is_flag=True, help="What the loss of each kind of part costs.")
@click.option(
    "--against",
    multiple=True,
    metavar="WHAT",
    help="Alternatives side by side: 8+1, 4+1, 4+1*6 (6 of them in a stripe), 4+1*6,6 (two stripes) …",
)
@click.option("--wish", metavar="NAME", help="The wish that --against is about (default: the only large one).")
@click.option(
    "--report", "as_report", is_flag=True, help="Boxes, controllers, groups and LUNs, as csmreport shows them."
)
@click.option("-G", "binary", is_flag=True, help="LUN sizes of report and csmadd in powers of 1024, as with csm's -G.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Write scripts, the picture, the report and the system with the plan in it.",
)  # fmt: skip
@json_option
def plan_command(
    system: str,
    explain: bool,
    geometry: str | None,
    members: int | None,
    volumes: str,
    lost: tuple[str, ...],
    failing: bool,
    against: tuple[str, ...],
    wish: str | None,
    as_report: bool,
    binary: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Plan the storage of SYSTEM: a file, or the name of a ready-made system.

    File systems with `purpose` and `wanted` get drives, RAID groups or LUNs that nothing lies on yet; those that have a
    place keep it. Said are the numbers to make them with, and the bandwidth that every stage allows. Nothing is written
    to any device: the scripts of -o are run by an administrator. Exit code 1 when a wish cannot be met.

    \b
    Examples:
      sonde layout plan nvme-enclosure
      sonde layout plan nvme-enclosure --wish scratch --against 8+1 --against 4+1 --against '4+1*2,2'
      sonde layout plan cray-x1 --without rs2-a
    """
    known = read_system(system_source(system))
    if against:
        return _side_by_side(known, against, wish, as_json)
    if wish is not None:
        raise UserError("--wish says which one --against is about; give --against too, or leave --wish out.")
    wanted = parse_geometry(geometry) if geometry is not None else None
    plan = plan_layout(known, wanted, members, {"lvm": "LVM", "md": "md"}[volumes], lost)
    if output is not None:
        _write(output, _files(plan, binary))
    if as_json:
        print_json(_as_json(plan, failing=failing))
        return FAILED if plan.short else 0
    if as_report:
        results().print(
            words.report(plan.system, plan.file_systems, binary=binary), markup=False, highlight=False, soft_wrap=True
        )
    else:
        _print_plan(plan, explain=explain, failing=failing, lost=lost)
    if output is not None:
        for name in sorted(_files(plan, binary)):
            results().print(str(output / name), soft_wrap=True, highlight=False)
    return FAILED if plan.short else 0


def _print_plan(plan: LayoutPlan, *, explain: bool, failing: bool, lost: tuple[str, ...]) -> None:
    console = results()
    if lost:
        console.print(f"Bandwidth without {', '.join(lost)}:", style="bold", soft_wrap=True)
    for one, row in zip(plan.file_systems, words.plan_rows(plan.file_systems), strict=True):
        name, where, size, stripe, groups, log, read, write, limit = row
        console.print(name, style="bold", soft_wrap=True, highlight=False)
        facts = [f"{size} on {where}", f"unit / width {stripe}; {groups} allocation groups; log {log}"]
        facts.append(f"read {read}, write {write}; limit: {limit}")
        blind = words.unknown_stages(one)
        if blind:
            facts.append(f"Not known, so not counted: rates of {', '.join(blind)}.")
        for fact in facts:
            console.print(f"  {fact}", soft_wrap=True, highlight=False)
        if explain:
            _print_worked(one)
        if failing:
            _print_failures(plan, one)
    for note in plan.notes:
        console.print(f"! {note}.", soft_wrap=True, highlight=False)
    for short in plan.short:
        console.print(f"Not met: {short}.", style="bold red", soft_wrap=True, highlight=False)


def _print_worked(laid: Laid) -> None:
    table = plain_table()
    for title in ("part", "number", "", "how"):
        table.add_column(title, overflow="fold")
    for one in laid.worked:
        table.add_row(one.of, one.what, one.shown, one.how)
    results().print(table)


def _print_failures(plan: LayoutPlan, laid: Laid) -> None:
    table = plain_table()
    for title in ("without", "read", "write", ""):
        table.add_column(title, overflow="fold")
    for row in words.failure_rows(list(failures(plan.system, laid.id, laid.stores)), laid):
        table.add_row(*row)
    results().print(table)


def _side_by_side(system: System, against: tuple[str, ...], name: str | None, as_json: bool) -> int:
    from sonde.design.layout.alternatives import compare, parse_alternative
    from sonde.design.layout.planner import wishes

    asked = wishes(system)
    large = [one for one in asked if one.purpose in ("scratch", "checkpoint", "archive")]
    chosen = [one for one in asked if one.id == name] if name is not None else large
    if len(chosen) != 1:
        names = [one.id for one in asked]
        told = f'There is no wish "{name}"' if name is not None else "--wish is missing"
        raise UserError(
            f"{told}; {system.id} wishes for {', '.join(names) or 'nothing (wanted, in schema/system)'}."
            + suggestion(name or "", names)
        )
    found = compare(system, chosen[0], [parse_alternative(one) for one in against])
    if as_json:
        print_json({"wish": chosen[0].id, "alternatives": [asdict(one) for one in found]})
        return 0
    table = plain_table()
    for title in ("", "groups", "capacity", "read", "write", "one file", "limit", "drive lost", "rebuild", "bears"):
        table.add_column(title, overflow="fold")
    for row in words.outcome_rows(found):
        table.add_row(*row)
    results().print(f"{chosen[0].id}, alternatives:", style="bold", soft_wrap=True)
    results().print(table)
    return 0


@command.command("check")
@click.argument("where", nargs=-1, metavar="[MOUNT|DEVICE|FILE]...")
@click.option(
    "--from", "saved", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Saved output instead of this machine: lsblk, mdadm, lvs, multipathd, xfs_info, dumpe2fs, lfs, zpool …",
)  # fmt: skip
@click.option("--plan", "system", metavar="SYSTEM", help="Compare with the layout of this system.")
@click.option("--as", "name", metavar="NAME", help="Which of its file systems (default: that of the mount point).")
@json_option
def check_command(
    where: tuple[str, ...], saved: tuple[Path, ...], system: str | None, name: str | None, as_json: bool
) -> int:
    """Say what is wrong with the storage beneath a mount point, a directory, a device, or in saved outputs.

    Read are sysfs, superblocks, ioctls and tools; nothing is written. For a FILE its extents are looked at too. Exit
    code 1 when something is wrong.

    \b
    Examples:
      sonde layout check /scratch
      sonde layout check /scratch --plan layout/system.toml --as scratch
      sonde layout check --from lsblk.json --from xfs_info.txt
    """
    from sonde.design.layout.check import check
    from sonde.design.layout.live.machine import look_at
    from sonde.design.layout.live.reading import read_files
    from sonde.design.layout.live.seen import merged

    if not where and not saved:
        raise UserError("There is nothing to check; name a mount point, a device, or saved outputs with --from.")
    seen = read_files(saved)
    for one in where:
        seen = merged(seen, look_at(one))
    planned = None
    if system is not None:
        known = read_system(system_source(system))
        places = [one.where for one in seen.file_systems]
        planned = _planned(known, plan_layout(known), name, places)
    elif name is not None:
        raise UserError("--as names a file system of a system; give the system with --plan.")
    verdict = check(seen, planned)
    if as_json:
        print_json({"seen": asdict(seen), "faults": [asdict(one) for one in verdict.faults],
                    "not_known": list(verdict.unknown)})  # fmt: skip
    else:
        console = results()
        for line in words.seen_words(seen):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        for fault in verdict.faults:
            console.print(f"{fault.kind}  {fault.where}", style="bold red", soft_wrap=True, highlight=False)
            console.print(f"  {fault.what}. Cost: {fault.cost}.", soft_wrap=True, highlight=False, markup=False)
            console.print(f"  Remedy: {fault.remedy}.", soft_wrap=True, highlight=False, markup=False)
        count = len(verdict.faults)
        said = "Nothing wrong was found" if not count else "1 fault" if count == 1 else f"{count} faults"
        blind = f" Not known, so not checked: {'; '.join(verdict.unknown)}." if verdict.unknown else ""
        console.print(f"{said}.{blind}", soft_wrap=True, highlight=False, markup=False)
    return FAILED if verdict.faults else 0


@command.command("verify")
@click.argument("where", metavar="MOUNT", type=click.Path(exists=True, file_okay=False))
@click.option("--plan", "system", metavar="SYSTEM", help="Compare with the layout of this system.")
@click.option("--as", "name", metavar="NAME", help="Which of its file systems (default: that of the mount point).")
@click.option("--segment", metavar="SIZE", help="On one drive before the next, where nobody else knows it: 256KiB.")
@click.option("--stripe", metavar="SIZE", help="Of all data drives together: 2MiB.")
@click.option("--parity/--no-parity", default=None, help="RAID 5 or 6, or not, where nobody else knows it.")
@click.option("--volume", metavar="SIZE", help="Bytes of each case (default: 16 full widths, 64 MiB at least).")
@click.option("--repeats", type=click.IntRange(1, 100), default=6, show_default=True, help="Of each case, in turn.")
@click.option("--buffered", is_flag=True, help="Through the page cache, where O_DIRECT does not work.")
@click.option("--simulated", metavar="RUN", help="A run of the same plan that the simulator computed.")
@archive_option
@json_option
def verify_command(
    where: str, system: str | None, name: str | None, segment: str | None, stripe: str | None, parity: bool | None,
    volume: str | None, repeats: int, buffered: bool, simulated: str | None, archive: Archive, as_json: bool,
) -> int:  # fmt: skip
    """Measure what alignment and width matter beneath MOUNT, and say whether the predictions hold.

    Files are written below MOUNT and removed; devices are never written to. Measured are requests of a full stripe that
    begin at one and inside of one, and requests of one stripe unit and of all. Exit code 1 when a prediction does not
    hold.

    \b
    Examples:
      sonde layout verify /scratch
      sonde layout verify /scratch --plan layout/system.toml --as scratch
      sonde layout verify /scratch --segment 256KiB --stripe 2MiB
    """
    from sonde.design.layout import measuring
    from sonde.design.layout.live.machine import look_at
    from sonde.model.units import parse_bytes

    if (segment is None) != (stripe is None):
        raise UserError("--segment and --stripe go together: what one drive holds before the next, and what all do.")
    told = (parse_bytes(segment), parse_bytes(stripe)) if segment is not None and stripe is not None else None
    seen = look_at(where)
    planned = None
    if system is not None:
        known = read_system(system_source(system))
        planned = _planned(known, plan_layout(known), name, [one.where for one in seen.file_systems])
    geometry = measuring.stripe_of(seen, planned, told, parity)
    document = measuring.plan_document(
        where, geometry, parse_bytes(volume) if volume is not None else None, repeats, direct=not buffered
    )
    record = _measured(Plan.from_document(document, "layout verify"), archive, as_json)
    other = measuring.rates_in(_record_of(archive, simulated)) if simulated is not None else None
    found = measuring.judge(measuring.rates_in(record), geometry, planned, other)
    if as_json:
        print_json({"stripe": asdict(geometry), **asdict(found), "holds": found.holds})
    else:
        for line in words.measured_words(geometry, found):
            results().print(line, soft_wrap=True, highlight=False, markup=False)
    return 0 if found.holds else FAILED


def _measured(plan: Plan, archive: Archive, quiet: bool) -> RecordReader:
    from sonde.conduct.run import Setup, conduct, failure
    from sonde.launch.engine import find_engine
    from sonde.terminal.live import make_display

    archive.recover()
    display = make_display(messages(), quiet)
    setup = Setup(find_engine(), archive, stopping=display.stopping)
    display.begin(plan.title, 1, 1, plan)
    try:
        result = conduct(plan, setup, display.line, plan.id)
    finally:
        display.close()
    if result.exit_code != DONE:
        raise failure(result.exit_code, result.text)
    return result.record


def _record_of(archive: Archive, name: str) -> RecordReader:
    from sonde.model.record import read_record
    from sonde.store.archive import RECORD

    return read_record(archive.find(name)[-1] / RECORD)


def _planned(system: System, plan: LayoutPlan, name: str | None, places: list[str]) -> Laid:
    """The file system of the plan that is meant: named, or mounted at one of the places, or the only one."""
    names = [one.id for one in plan.file_systems]
    if name is None:
        mounted = [
            known for item in plan.system.items("mounts") if getattr(item.table, "path", "") in places
            for known in plan.system.references(item.id, "file_system")
        ]  # fmt: skip
        found = [one for one in dict.fromkeys(mounted) if one in names] or names
        if len(found) != 1:
            raise UserError(f"{system.id} has {', '.join(names)}; say with --as which one is meant.")
        name = found[0]
    if name not in names:
        raise UserError(f'{system.id} lays out no file system "{name}".{suggestion(name, names)}')
    return plan.of(name)


def _files(plan: LayoutPlan, binary: bool) -> dict[str, str]:
    from sonde.design.layout.diagram import diagram
    from sonde.design.layout.documents import plan_files
    from sonde.design.layout.notation import notation
    from sonde.design.layout.scripts import scripts_of

    files = scripts_of(plan) | plan_files(plan)
    files["layout.svg"] = diagram(plan.system, plan.file_systems)
    files["report.txt"] = words.report(plan.system, plan.file_systems, binary=binary)
    old = notation(plan.system, plan.file_systems, binary=binary)
    return files | ({"csm-parts-xlv.txt": old} if old else {})


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise MachineError(f"{folder} cannot be written: {reason.strerror}.") from None


def _as_json(plan: LayoutPlan, *, failing: bool) -> dict[str, Any]:
    found = []
    for one in plan.file_systems:
        entry: dict[str, Any] = {
            "id": one.id, "kind": one.table.kind, "purpose": one.table.purpose, "targets": list(one.targets),
            "stores": [store.id for store in one.stores], "log": one.log.id if one.log is not None else None,
            "capacity_bytes": one.capacity, "stripe_unit_bytes": one.unit, "stripe_width_bytes": one.width,
            "alignment_bytes": one.alignment, "log_bytes": one.log_size,
            "allocation_groups": asdict(one.groups) if one.groups is not None else None,
            "rates": asdict(one.rates), "worked": [asdict(each) for each in one.worked],
        }  # fmt: skip
        if failing:
            entry["failures"] = [asdict(each) for each in failures(plan.system, one.id, one.stores)]
        found.append(entry)
    return {"system": plan.system.id, "file_systems": found, "made": sorted(plan.made), "not_met": list(plan.short),
            "notes": list(plan.notes)}  # fmt: skip
