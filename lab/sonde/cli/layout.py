# SPDX-License-Identifier: Apache-2.0
"""``sonde layout``: storage from drives to a mounted file system, planned, checked and verified."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sonde.cli.layout_check import check_command, collect_command
from sonde.cli.layout_output import (
    make_layout_plan_document,
    make_lun_deletion_document,
    print_layout_plan,
    print_lun_deletion,
)
from sonde.cli.layout_verify import verify_command
from sonde.cli.options import OutputFile, VerbGroup, add_json_option
from sonde.design.layout import layout_tables
from sonde.design.layout.geometry import parse_geometry
from sonde.design.layout.plan import LayoutPlan, format_system_file, make_system_file, plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_FAILED, EXIT_OK, MachineError, UserError, suggest_close_name
from sonde.model.system import System, read_system
from sonde.terminal.screen import get_results_console, make_plain_table, print_json


@click.group("layout", cls=VerbGroup)
def command() -> None:
    """Plan, check and verify storage, from drives over RAID groups, LUNs and volumes to file systems.

    \b
    Examples:
      sonde layout plan nvme-enclosure -o layout/
      sonde layout plan cray-x1 --explain

    More: sonde help tasks/layout
    """


for subcommand in (check_command, collect_command, verify_command):
    command.add_command(subcommand)

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
        report = layout_tables.make_report(plan.system, plan.file_systems, in_powers_of_1024=binary)
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


def _make_layout_files(plan: LayoutPlan, in_powers_of_1024: bool) -> dict[str, str]:
    from sonde.design.layout.cray_x1_notation import format_cray_x1_commands
    from sonde.design.layout.diagram import draw_layout
    from sonde.design.layout.scripts import make_layout_scripts
    from sonde.design.layout.user_guide import make_user_guide

    files = make_layout_scripts(plan) | make_system_file(plan)
    files["layout.svg"] = draw_layout(plan.system, plan.file_systems)
    if guide := make_user_guide(plan.file_systems):
        files["users.txt"] = guide
    files["report.txt"] = layout_tables.make_report(plan.system, plan.file_systems, in_powers_of_1024=in_powers_of_1024)
    old = format_cray_x1_commands(plan.system, plan.file_systems, in_powers_of_1024=in_powers_of_1024)
    return files | ({"csm-parts-xlv.txt": old} if old else {})


def _write_files(folder: Path, texts_by_name: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts_by_name.items():
            write_file(folder / name, text)
    except OSError as reason:
        raise MachineError(f"{folder} cannot be written: {reason.strerror}.") from None
