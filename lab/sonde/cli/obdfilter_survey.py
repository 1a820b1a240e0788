# SPDX-License-Identifier: Apache-2.0
"""``sonde obdfilter-survey``: objects × threads × record size, on directories or on Lustre's own objects."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from sonde.cli.options import add_archive_option
from sonde.conduct.run import RunSetup, conduct_run, make_engine_failure
from sonde.dialects.survey.echo import EchoSurvey
from sonde.dialects.survey.plans import (
    build_point_plan,
    compute_survey_results,
    format_result_line_end,
    format_result_line_start,
)
from sonde.dialects.survey.stored_run import make_imported_run
from sonde.dialects.survey.variables import SurveySettings, parse_survey_settings
from sonde.launch.engine import find_engine
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_OK, MachineError, UserError
from sonde.model.parents import TargetParents
from sonde.model.system import System, read_system
from sonde.model.system.parents import find_target_parents
from sonde.store.archive import Archive, make_run_id
from sonde.store.imports import add_imported_runs
from sonde.terminal import encoding
from sonde.terminal.run_display import make_display
from sonde.terminal.screen import get_messages_console


@click.command("obdfilter-survey")
@add_archive_option
@click.option("--quiet", is_flag=True, help="No progress, no remarks.")
@click.option("--system", metavar="FILE", help="Of OSTs: described system that says which OSS has which of them.")
@click.argument("arguments", nargs=-1)
def command(archive: Archive, quiet: bool, system: str | None, arguments: tuple[str, ...]) -> int:
    """Survey objects × threads × record size, with the variables and the lines of obdfilter-survey.

    Variables stand in the environment or follow as name=value: targets, size (MiB a target), nobjlo, nobjhi, thrlo,
    thrhi, rszlo, rszhi (KiB), tests_str, case, verify, rslt. Targets are directories, or OSTs of this server.

    \b
    Examples:
      nobjhi=2 thrhi=2 size=1024 targets="/mnt/ost0 /mnt/ost1" sonde obdfilter-survey
      sonde obdfilter-survey targets=/scratch size=4096 thrhi=64 rszlo=64 rszhi=4096
      sonde obdfilter-survey targets=lustre-OST0000 size=16384      (on the OSS, as root)

    More: sonde help reference/obdfilter-survey
    """
    survey = parse_survey_settings(arguments, os.environ)
    lines = [f"{_format_current_time()} Obdfilter-survey for case={survey.case} from {socket.gethostname()}"]
    encoding.print_plain_text(lines[0])
    folders = [Path(target).is_dir() for target in survey.targets]
    try:
        if folders and all(folders):
            _survey_folders(survey, archive, quiet, lines)
        elif any(folders):
            raise UserError(f"{survey.targets[folders.index(False)]} is not a directory, but other targets are.")
        elif any("/" in target for target in survey.targets):
            raise UserError(f"There is no directory {survey.targets[0]}; name directories, or OSTs of this server.")
        else:
            _survey_objects(survey, archive, read_system(find_system_file(system)) if system else None, lines)
    finally:
        if survey.rslt:
            write_file(Path(f"{survey.rslt}.summary"), "\n".join(lines) + "\n")
    encoding.print_plain_text("done!")
    return EXIT_OK


def _survey_folders(survey_settings: SurveySettings, archive: Archive, quiet: bool, output_lines: list[str]) -> None:
    engine, display, points = find_engine(), make_display(get_messages_console(), quiet), survey_settings.list_points()
    plans = [build_point_plan(survey_settings, point) for point in points]
    archive.recover_unfinished_runs()
    group = make_run_id("survey")
    setup = RunSetup(engine, archive, on_stop=display.report_stop_signal)
    try:
        for number, (point, plan) in enumerate(zip(points, plans, strict=True), 1):
            display.begin_run(plan.title, number, len(points), plan)
            result = conduct_run(plan, setup, display.show_record_line, plan.id, {"group": group})
            output_lines.append(
                format_result_line_start(survey_settings, point)
                + format_result_line_end(compute_survey_results(result.record, survey_settings))
            )
            encoding.print_plain_text(output_lines[-1])
            if result.exit_code != EXIT_OK:
                raise make_engine_failure(result.exit_code, result.text)
    finally:
        display.end_display()


def _survey_objects(
    survey_settings: SurveySettings, archive: Archive, system: System | None, output_lines: list[str]
) -> None:
    program = shutil.which("lctl")
    if program is None:
        raise MachineError(
            "There is no lctl on PATH: on a server of Lustre run this as root, elsewhere name directories in targets."
        )

    def run_lctl(lctl_commands: Sequence[Sequence[str]], standard_input: str) -> list[str]:
        running = [
            subprocess.Popen(
                [program, *item], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for item in lctl_commands
        ]
        return [item.communicate(standard_input)[0] for item in running]

    echo = EchoSurvey(survey_settings, run_lctl)
    targets = echo.list_targets()
    full_survey = SurveySettings(**{**vars(survey_settings), "targets": tuple(targets)})
    parents = find_target_parents(system, targets[0].partition("-")[0]) if system else TargetParents()
    host, group = socket.gethostname(), make_run_id("survey")
    with echo.open_echo_clients(targets) as clients:
        for point in survey_settings.list_points():
            began, clock = datetime.now(UTC), time.monotonic()
            figures = echo.run_tests(point, clients)
            output_lines.append(format_result_line_start(full_survey, point) + format_result_line_end(figures))
            encoding.print_plain_text(output_lines[-1])
            run = make_imported_run(full_survey, point, figures, began, time.monotonic() - clock, host, group, parents)
            add_imported_runs(archive, [run], {"file": "lctl"}, None, lambda done: None)


def _format_current_time() -> str:
    return datetime.now().astimezone().strftime("%a %b %e %H:%M:%S %Z %Y")
