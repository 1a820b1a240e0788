# SPDX-License-Identifier: Apache-2.0
"""``sonde layout``: storage from drives to a mounted file system, planned, checked and verified."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sonde.cli.layout_output import (
    make_layout_plan_document,
    make_lun_deletion_document,
    print_layout_check,
    print_layout_plan,
    print_lun_deletion,
)
from sonde.cli.options import OutputFile, VerbGroup, add_archive_option, add_json_option
from sonde.design.checked_items import choose_exit_code
from sonde.design.layout import layout_tables
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import parse_geometry
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.plan import LayoutPlan, format_system_file, make_system_file, plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_FAILED, EXIT_OK, MachineError, UserError, suggest_close_name
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.system import System, read_system
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json


@click.group("layout", cls=VerbGroup)
def command() -> None:
    """Plan, check and verify storage, from drives over RAID groups, LUNs and volumes to file systems.

    \b
    Examples:
      sonde layout plan nvme-enclosure -o layout/
      sonde layout plan cray-x1 --explain

    More: sonde help tasks/layout
    """


_system_argument = click.argument("system", metavar="SYSTEM")


@command.command("plan")
@_system_argument
@click.option("--explain", is_flag=True, help="Print the arithmetic of every number.")
@click.option("--geometry", metavar="GEOMETRY", help="Geometry of groups for large file systems, like 8+2 or 4x2.")
@click.option("--members", type=click.IntRange(1, 4096), metavar="N", help="LUNs or groups of each large file system.")
@click.option(
    "--volumes",
    type=click.Choice(["lvm", "md"]),
    default="lvm",
    show_default=True,
    help="Volume manager that stripes them.",
)
@click.option("--without", "failed_parts", multiple=True, metavar="PART", help="Bandwidth with this part failed.")
@click.option("--failures", "show_failures", is_flag=True, help="Cost of the loss of each kind of part.")
@click.option(
    "--against",
    multiple=True,
    metavar="WHAT",
    help="Alternatives to compare: 8+1, 4+1, 4+1*6 (6 of them in a stripe), 4+1*6,6 (two stripes) …",
)
@click.option("--requirement", metavar="NAME", help="Required file system for --against (default: the only large one).")
@click.option(
    "--report", "as_report", is_flag=True, help="Boxes, controllers, groups and LUNs, as csmreport shows them."
)
@click.option("-G", "binary", is_flag=True, help="LUN sizes of report and csmadd in powers of 1024, as with csm's -G.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Write scripts, the picture, the report and the system with the plan in it.",
)  # fmt: skip
@add_json_option
def plan_command(
    system: str,
    explain: bool,
    geometry: str | None,
    members: int | None,
    volumes: str,
    failed_parts: tuple[str, ...],
    show_failures: bool,
    against: tuple[str, ...],
    requirement: str | None,
    as_report: bool,
    binary: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Plan the storage of SYSTEM: a file, or the name of a shipped system.

    File systems with `purpose` and `requirement` get drives, RAID groups or LUNs that nothing lies on yet; those with a
    place keep it. Said are the numbers to make them with, and the bandwidth that every stage allows. Nothing is written
    to any device: the scripts of -o are run by an administrator. Exit code 1 when a requirement cannot be met.

    \b
    Examples:
      sonde layout plan nvme-enclosure
      sonde layout plan nvme-enclosure --requirement scratch --against 8+1 --against 4+1 --against '4+1*2,2'
      sonde layout plan cray-x1 --without rs2-a
    """
    machine = read_system(find_system_file(system))
    if against:
        return _print_alternative_layouts(machine, against, requirement, as_json)
    if requirement is not None:
        raise UserError(
            "--requirement selects the file system for --against; give --against too, or leave --requirement out."
        )
    chosen_geometry = parse_geometry(geometry) if geometry is not None else None
    plan = plan_layout(machine, chosen_geometry, members, {"lvm": "LVM", "md": "md"}[volumes], failed_parts)
    if output is not None:
        _write_files(output, _make_layout_files(plan, binary))
    if as_json:
        print_json(make_layout_plan_document(plan, show_failures=show_failures))
        return EXIT_FAILED if plan.unmet else 0
    if as_report:
        report = layout_tables.make_report(plan.system, plan.file_systems, binary=binary)
        get_results_console().print(report, markup=False, highlight=False, soft_wrap=True)
    else:
        print_layout_plan(plan, explain=explain, show_failures=show_failures, failed_parts=failed_parts)
    if output is not None:
        for name in sorted(_make_layout_files(plan, binary)):
            get_results_console().print(str(output / name), soft_wrap=True, highlight=False)
    return EXIT_FAILED if plan.unmet else 0


def _print_alternative_layouts(
    system: System, alternative_texts: tuple[str, ...], file_system_id: str | None, as_json: bool
) -> int:
    from sonde.design.layout.alternatives import compare_alternatives, parse_alternative
    from sonde.design.layout.placement import list_requirements

    requirements = list_requirements(system)
    large = [item for item in requirements if item.purpose in ("scratch", "checkpoint", "archive")]
    chosen = [item for item in requirements if item.id == file_system_id] if file_system_id is not None else large
    if len(chosen) != 1:
        names = [item.id for item in requirements]
        problem = (
            f'No file system "{file_system_id}" is required'
            if file_system_id is not None
            else "--requirement is missing"
        )
        raise UserError(
            f"{problem}; {system.id} requires {', '.join(names) or 'none (requirement, in schema/system)'}."
            + suggest_close_name(file_system_id or "", names)
        )
    outcomes = compare_alternatives(system, chosen[0], [parse_alternative(item) for item in alternative_texts])
    if as_json:
        print_json({"requirement": chosen[0].id, "alternatives": [asdict(item) for item in outcomes]})
        return 0
    table = make_plain_table()
    for title in ("", "groups", "capacity", "read", "write", "one file", "limit", "drive lost", "rebuild", "bears"):
        table.add_column(title, overflow="fold")
    for row in layout_tables.make_alternative_rows(outcomes):
        table.add_row(*row)
    get_results_console().print(f"{chosen[0].id}, alternatives:", style="bold", soft_wrap=True)
    get_results_console().print(table)
    return 0


@command.command("check")
@click.argument("locations", nargs=-1, metavar="[MOUNT|DEVICE|FILE]...")
@click.option(
    "--from",
    "saved_outputs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Saved output instead of this machine: of `layout collect`, lsblk, mdadm, lvs, multipath, xfs_info, zpool …",
)
@click.option("--plan", "system", metavar="SYSTEM", help="Compare with the layout of this system.")
@click.option("--as", "name", metavar="NAME", help="Which of its file systems (default: that of the mount point).")
@add_json_option
def check_command(
    locations: tuple[str, ...], saved_outputs: tuple[Path, ...], system: str | None, name: str | None, as_json: bool
) -> int:
    """Say what is wrong with the storage beneath a mount point, a directory, a device, or in saved outputs.

    --plan alone reviews the storage that the system file describes.

    Read are sysfs, superblocks, ioctls and tools; nothing is written. For a FILE its extents are looked at too. Exit
    code 1 when something is wrong, 6 when nothing could be compared.

    \b
    Examples:
      sonde layout check /scratch
      sonde layout check /scratch --plan layout/system.toml --as scratch
      sonde layout check --from lsblk.json --from xfs_info.txt
    """
    from sonde.design.layout.check import check_layout
    from sonde.design.layout.check_system import check_described_storage
    from sonde.design.layout.live.inspection import inspect_storage
    from sonde.design.layout.live.joining import join_observations
    from sonde.design.layout.live.observations import merge_observations
    from sonde.design.layout.live.saved_output import read_files
    from sonde.design.layout.written_attributes import list_written_attributes

    if not locations and not saved_outputs and (system is None or name is not None):
        raise UserError(
            "There is nothing to check; name a mount point, a device, saved outputs with --from, or with --plan alone"
            " a system whose description is reviewed."
        )
    if system is not None and not locations and not saved_outputs:
        verdict = check_described_storage(read_system(find_system_file(system)))
        print_layout_check(ObservedStorage(), verdict, as_json)
        return choose_exit_code(len(verdict.faults), verdict.checked_items)
    storage = read_files(saved_outputs)
    for item in locations:
        storage = merge_observations(storage, inspect_storage(item))
    storage, planned, planned_mounts, machine = join_observations(storage), None, list[str](), None
    if system is not None:
        machine_plan = plan_layout(read_system(find_system_file(system)))
        mount_points = [item.location for item in storage.file_systems]
        machine = machine_plan.system
        planned = _find_planned_layout(machine, machine_plan, name, mount_points)
        planned_mounts = _list_mount_points(machine, planned.id)
    elif name is not None:
        raise UserError("--as names a file system of a system; give the system with --plan.")
    directories = [path for item in locations if (path := Path(item)).is_dir()]
    written = list_written_attributes(machine, planned) if machine is not None and planned is not None else ()
    verdict = check_layout(storage, planned, directories, planned_mounts, written)
    print_layout_check(storage, verdict, as_json)
    return choose_exit_code(len(verdict.faults), verdict.checked_items)


@command.command("delete")
@_system_argument
@click.argument("enclosure", metavar="ENCLOSURE")
@click.option("-o", "--output", type=OutputFile(), metavar="FILE", help="Write the system file without these LUNs.")
@add_json_option
def delete_command(system: str, enclosure: str, output: Path | None, as_json: bool) -> int:
    """Take all LUNs of ENCLOSURE out of a described SYSTEM, and name what is lost with them.

    Only the description changes: the command for the machine is printed, and an administrator runs it.

    \b
    Examples:
      sonde layout delete cray-x1 rs1-s2
      sonde layout delete cray-x1 rs2-s2 -o smaller.toml
    """
    from sonde.design.layout.deletion import delete_enclosure_luns

    deletion = delete_enclosure_luns(read_system(find_system_file(system)), enclosure)
    if output is not None:
        write_file(output, format_system_file(deletion.system, f"the system without the LUNs of {enclosure}"))
    if as_json:
        print_json(make_lun_deletion_document(deletion))
    else:
        print_lun_deletion(deletion)
    return EXIT_OK


@command.command("collect")
def collect_command() -> int:
    """Print a shell script that collects, on a machine without Sonde, everything that `layout check --from` reads.

    The script only reads; run it as root to see superblocks.

    \b
    Examples:
      sonde layout collect > collect.sh
      sonde layout collect | ssh oss01 sh > oss01.txt
    """
    from sonde.design.layout.live.collector import make_collector

    get_results_console().print(make_collector(), markup=False, highlight=False, soft_wrap=True, end="")
    return EXIT_OK


@command.command("verify")
@click.argument("directory", metavar="MOUNT", type=click.Path(exists=True, file_okay=False))
@click.option("--plan", "system", metavar="SYSTEM", help="Compare with the layout of this system.")
@click.option("--as", "name", metavar="NAME", help="Which of its file systems (default: that of the mount point).")
@click.option("--segment", metavar="SIZE", help="On one drive before the next, where nobody else knows it: 256KiB.")
@click.option("--stripe", metavar="SIZE", help="Of all data drives together: 2MiB.")
@click.option("--parity/--no-parity", default=None, help="RAID 5 or 6, or not, where nobody else knows it.")
@click.option("--volume", metavar="SIZE", help="Bytes of each case (default: 16 full widths, 64 MiB at least).")
@click.option("--repeats", type=click.IntRange(1, 100), default=6, show_default=True, help="Of each case, in turn.")
@click.option("--buffered", is_flag=True, help="Through the page cache, where O_DIRECT does not work.")
@click.option("--simulated", metavar="RUN", help="A run of the same plan that the simulator computed.")
@add_archive_option
@add_json_option
def verify_command(
    directory: str, system: str | None, name: str | None, segment: str | None, stripe: str | None, parity: bool | None,
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
    from sonde.design.layout import stripe_measurement
    from sonde.design.layout.live.inspection import inspect_storage
    from sonde.model.units import parse_bytes

    if (segment is None) != (stripe is None):
        raise UserError("--segment and --stripe go together: what one drive holds before the next, and what all do.")
    given_stripe = (parse_bytes(segment), parse_bytes(stripe)) if segment is not None and stripe is not None else None
    storage = inspect_storage(directory)
    planned = None
    if system is not None:
        machine = read_system(find_system_file(system))
        planned = _find_planned_layout(
            machine, plan_layout(machine), name, [file_system.location for file_system in storage.file_systems]
        )
    geometry = stripe_measurement.choose_stripe_geometry(storage, planned, given_stripe, parity)
    document = stripe_measurement.make_stripe_plan_document(
        directory, geometry, parse_bytes(volume) if volume is not None else None, repeats, uses_direct_io=not buffered
    )
    record = _measure_plan(Plan.from_document(document, "layout verify"), archive, as_json)
    rates, simulated_rates = stripe_measurement.read_rates_by_case(record), None
    if simulated is not None:
        simulated_rates = stripe_measurement.read_rates_by_case(_read_record_of_run(archive, simulated))
    assessment = stripe_measurement.evaluate_stripe_measurement(rates, geometry, planned, simulated_rates)
    if as_json:
        print_json({"stripe": asdict(geometry), **asdict(assessment), "holds": assessment.holds})
    else:
        for line in layout_tables.describe_measurement(geometry, assessment):
            get_results_console().print(line, soft_wrap=True, highlight=False, markup=False)
    return 0 if assessment.holds else EXIT_FAILED


def _measure_plan(plan: Plan, archive: Archive, quiet: bool) -> RecordReader:
    from sonde.conduct.run import RunSetup, conduct_run, make_engine_failure
    from sonde.launch.engine import find_engine
    from sonde.terminal.run_display import make_display

    archive.recover_unfinished_runs()
    display = make_display(get_messages_console(), quiet)
    setup = RunSetup(find_engine(), archive, on_stop=display.report_stop_signal)
    display.begin_run(plan.title, 1, 1, plan)
    try:
        result = conduct_run(plan, setup, display.show_record_line, plan.id)
    finally:
        display.end_display()
    if result.exit_code != EXIT_OK:
        raise make_engine_failure(result.exit_code, result.text)
    return result.record


def _read_record_of_run(archive: Archive, run_reference: str) -> RecordReader:
    from sonde.model.record import read_record
    from sonde.store.archive import RECORD

    return read_record(archive.find_run_folders(run_reference)[-1] / RECORD)


def _find_planned_layout(
    system: System, plan: LayoutPlan, file_system_id: str | None, mount_points: list[str]
) -> FileSystemLayout:
    """The file system of the plan that is meant: named, or mounted at one of the places, or the only one."""
    names = [candidate.id for candidate in plan.file_systems]
    if file_system_id is None:
        mounted = [
            file_system for item in plan.system.list_parts("mounts") if getattr(item.table, "path", "") in mount_points
            for file_system in plan.system.find_references(item.id, "file_system")
        ]  # fmt: skip
        candidates = [candidate for candidate in dict.fromkeys(mounted) if candidate in names] or names
        if len(candidates) != 1:
            raise UserError(f"{system.id} has {', '.join(names)}; say with --as which one is meant.")
        file_system_id = candidates[0]
    if file_system_id not in names:
        raise UserError(
            f'{system.id} lays out no file system "{file_system_id}".{suggest_close_name(file_system_id, names)}'
        )
    return plan.get_layout(file_system_id)


def _list_mount_points(system: System, file_system: str) -> list[str]:
    return [
        getattr(item.table, "path", "") for item in system.list_parts("mounts")
        if file_system in system.find_references(item.id, "file_system")
    ]  # fmt: skip


def _make_layout_files(plan: LayoutPlan, binary: bool) -> dict[str, str]:
    from sonde.design.layout.cray_x1_notation import format_cray_x1_commands
    from sonde.design.layout.diagram import draw_layout
    from sonde.design.layout.scripts import make_layout_scripts
    from sonde.design.layout.user_guide import make_user_guide

    files = make_layout_scripts(plan) | make_system_file(plan)
    files["layout.svg"] = draw_layout(plan.system, plan.file_systems)
    if guide := make_user_guide(plan.file_systems):
        files["users.txt"] = guide
    files["report.txt"] = layout_tables.make_report(plan.system, plan.file_systems, binary=binary)
    old = format_cray_x1_commands(plan.system, plan.file_systems, binary=binary)
    return files | ({"csm-parts-xlv.txt": old} if old else {})


def _write_files(folder: Path, texts_by_name: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts_by_name.items():
            write_file(folder / name, text)
    except OSError as reason:
        raise MachineError(f"{folder} cannot be written: {reason.strerror}.") from None
