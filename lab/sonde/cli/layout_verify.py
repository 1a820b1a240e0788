# SPDX-License-Identifier: Apache-2.0
"""``sonde layout verify``: measures what alignment and width matter, and compares it with predictions."""

from __future__ import annotations

from dataclasses import asdict

import click

from sonde.cli.layout_file_system import find_planned_layout
from sonde.cli.options import add_archive_option, add_json_option
from sonde.design.layout import layout_tables
from sonde.design.layout.plan import plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_FAILED, EXIT_OK, UserError
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.system import read_system
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, print_json


@click.command("verify")
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
        planned = find_planned_layout(
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
