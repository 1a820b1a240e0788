# SPDX-License-Identifier: Apache-2.0
"""``sonde io500``: the IO500 benchmark, measured by Sonde."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import click

import sonde
from sonde.cli.options import add_archive_option, add_launcher_options, add_mpi_module_option, add_report_option
from sonde.cli.report_writing import write_report_or_warn
from sonde.conduct.run import RunSetup, make_engine_failure
from sonde.dialects.io500.benchmark import Io500Benchmark
from sonde.dialects.io500.benchmark_interface import BenchmarkRequest, BenchmarkResult
from sonde.dialects.io500.command_lines import make_run_directories
from sonde.dialects.io500.ini import DEFAULT_CONFIG, Io500Config, format_settings_as_ini, read_ini_file
from sonde.dialects.io500.report_section import format_table_of_sonde_rates, make_result_sections
from sonde.dialects.io500.stored_result import store_result_in_archive
from sonde.dialects.io500.verify import verify_result_hashes
from sonde.experiments.locations import require_existing_directory
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.launch.launchers.rank_detection import detect_launcher_rank
from sonde.model.errors import EXIT_FAILED, EXIT_OK, UserError
from sonde.model.lines import RecordLine
from sonde.model.plan import Plan
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive, make_run_id
from sonde.store.shards import REPORTS_FOLDER
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.run_display import Display, make_display
from sonde.terminal.screen import get_messages_console

# Settings of a run of a few seconds: every phase, little data.
_SHORT_SETTINGS = {
    ("debug", "stonewall-time"): "1",
    ("ior-easy", "transferSize"): "1m",
    ("ior-easy", "blockSize"): "256m",
    ("ior-hard", "segmentCount"): "2000",
    ("mdtest-easy", "n"): "5000",
    ("mdtest-hard", "n"): "2000",
}


class _TerminalView:
    """Progress on standard error, IO500's lines on standard output."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def begin_phase(self, phase_title: str, phase_number: int, phase_count: int, plan: Plan) -> None:
        self._display.begin_run(phase_title, phase_number, phase_count, plan)

    def show_record_line(self, line_kind: str, line: RecordLine) -> None:
        self._display.show_record_line(line_kind, line)

    def end_display(self) -> None:
        self._display.end_display()

    def show_official_line(self, output_line: str) -> None:
        self._display.end_display()
        print_plain_text(output_line)

    def print_message(self, message: str) -> None:
        self._display.end_display()
        get_messages_console().print(message, soft_wrap=True)


@click.command("io500")
@click.argument("ini", required=False, type=click.Path(path_type=Path))
@click.option("--tasks", type=click.IntRange(1, 65536), default=1, metavar="N", help="Tasks, each a process.")
@add_launcher_options("the tasks")
@add_mpi_module_option
@click.option(
    "--debug-short", metavar="DIR", help="Run all phases in seconds, with their data in DIR; INVALID by the rules."
)
@click.option(
    "--mode",
    type=click.Choice(["standard", "extended"]),
    default="standard",
    show_default=True,
    help="Extended adds find-easy and find-hard.",
)
@click.option("--timestamp", metavar="TEXT", help="Name of the folders of this run; default: the time.")
@click.option("--dry-run", is_flag=True, help="Only show the command lines of the phases.")
@click.option("--cleanup", is_flag=True, help="Only remove the data of a run; name it with --timestamp.")
@click.option("--list", "-l", "show_list", is_flag=True, help="Print an ini file with all keys and defaults.")
@click.option("--list-mandatory", "-lm", is_flag=True, help="The same without the phases of extended mode.")
@click.option("--config-hash", is_flag=True, help="Print the hash of the settings.")
@click.option(
    "--verify",
    "result_file",
    type=click.Path(path_type=Path),
    metavar="RESULT",
    help="Compare the hashes in a result.txt with INI.",
)
@click.option("-v", "louder", count=True, help="More in result.txt; may be repeated.")
@click.option(
    "--verbose",
    "--verbosity",
    "verbosity",
    type=click.IntRange(0, 10),
    metavar="N",
    help="How much is in result.txt, 0 to 10.",
)
@add_archive_option
@add_report_option
@click.option("--quiet", is_flag=True, help="Only IO500's lines: no progress, no warnings.")
def command(
    ini: Path | None,
    tasks: int,
    launcher: str,
    launcher_args: str,
    mpi_module: Path | None,
    debug_short: str | None,
    mode: str,
    timestamp: str | None,
    dry_run: bool,
    cleanup: bool,
    show_list: bool,
    list_mandatory: bool,
    config_hash: bool,
    result_file: Path | None,
    louder: int,
    verbosity: int | None,
    archive: Archive,
    report: bool,
    quiet: bool,
) -> int:
    """Run IO500 as configured in INI, with its phases, rules, score and result files.

    Each phase is also stored as a run of Sonde, with Sonde's rates next to IO500's. A run by the rules takes
    about an hour. --debug-short takes seconds and tests that everything works.

    \b
    Examples:
      sonde io500 --debug-short /scratch
      sonde io500 --list > my.ini                                   (then set datadir)
      sonde io500 my.ini --launcher srun --tasks 640
      sonde io500 my.ini --verify results/2026.11.21-20.45.01/result.txt

    More: sonde help reference/io500
    """
    if show_list or list_mandatory:
        _print_default_ini(mandatory_only=list_mandatory)
        return EXIT_OK
    config = _build_config(ini, debug_short, verbosity if verbosity is not None else louder or None)
    if config_hash:
        print_plain_text(f"config-hash     = {config.settings_hash}")
        return EXIT_OK
    if result_file is not None:
        verdict = verify_result_hashes(config, result_file)
        print_plain_text(verdict.text)
        return EXIT_OK if verdict.is_intact else EXIT_FAILED
    _require_no_launcher(ini, debug_short)
    display = make_display(get_messages_console(), quiet)
    engine = find_engine()

    def make_run_setup(process_count: int) -> RunSetup:
        chosen = make_launcher(launcher, process_count, launcher_args)
        return RunSetup(engine, archive, chosen, mpi_module, display.report_stop_signal)

    when = timestamp if timestamp is not None else datetime.now().astimezone().strftime("%Y.%m.%d-%H.%M.%S")
    _require_folder_name(when)
    order = BenchmarkRequest(
        config,
        make_run_directories(config, when),
        tasks,
        make_run_setup,
        f"sonde-{sonde.__version__}",
        make_run_id("io500"),
        has_launcher=launcher != LOCAL,
        extended=mode == "extended",
        dry_run=dry_run,
        cleanup=cleanup,
    )
    benchmark = Io500Benchmark(order, _TerminalView(display))
    archive.recover_unfinished_runs()
    outcome = benchmark.run_all_phases()
    _print_conclusion(outcome, order, archive, report and not dry_run and not cleanup, quiet)
    return EXIT_OK


def _print_default_ini(mandatory_only: bool) -> None:
    head = "# Supported and current values of the ini file" + " (Mandatory Phases Only)" * mandatory_only
    print_plain_text(
        f"{head}:\n{format_settings_as_ini(DEFAULT_CONFIG, with_descriptions=True, with_extended=not mandatory_only)}",
        line_end="",
    )


def _build_config(ini: Path | None, debug_short: str | None, verbosity: int | None) -> Io500Config:
    if ini is None and debug_short is None:
        raise UserError(
            "Name an ini file (`sonde io500 --list` prints one), or a directory for a run of seconds with"
            " --debug-short DIR."
        )
    config = (
        read_ini_file(ini)
        if ini is not None
        else Io500Config(DEFAULT_CONFIG.values, format_settings_as_ini(DEFAULT_CONFIG, with_descriptions=False))
    )
    if debug_short is not None:
        require_existing_directory(debug_short)
        config = config.replace_values({**_SHORT_SETTINGS, ("global", "datadir"): debug_short.rstrip("/") or "/"})
    if verbosity is not None:
        config = config.replace_values({("global", "verbosity"): str(verbosity)})
    return config


def _require_no_launcher(ini: Path | None, debug_short: str | None) -> None:
    """Raises UserError if a launcher started this command, since it starts the tasks itself. Only rank 0 prints it."""
    started = detect_launcher_rank()
    if started is None:
        return
    if started.rank > 0:
        time.sleep(1)  # rank 0 must print first, since launchers end all ranks after the first failure
        raise UserError("")
    arguments = str(ini) if ini is not None else f"--debug-short {debug_short}"
    raise UserError(
        f"`sonde io500` starts the tasks itself, but {started.launcher} has started it {started.size} times; write"
        f" `sonde io500 {arguments} --launcher {started.launcher} --tasks {started.size}` without {started.launcher}"
        f" before it."
    )


def _require_folder_name(folder_name: str) -> None:
    if (
        not folder_name
        or "/" in folder_name
        or folder_name in (".", "..")
        or any(sign.isspace() or not sign.isprintable() for sign in folder_name)
    ):
        raise UserError(f'--timestamp is "{folder_name}", but must be the name of a folder, without "/" and blanks.')


def _print_conclusion(
    benchmark_result: BenchmarkResult,
    benchmark_request: BenchmarkRequest,
    archive: Archive,
    writes_report: bool,
    quiet: bool,
) -> None:
    """Prints Sonde's figures, the report's path and remaining files. Raises an error if a run failed."""
    stored_runs = [row.run for row in benchmark_result.rows if row.run is not None]
    folders = [run.folder for run in stored_runs]
    console = get_messages_console()
    if folders and not quiet:
        print_plain_text(format_table_of_sonde_rates(benchmark_result.rows))
    if folders and not benchmark_request.cleanup:
        result = Path(benchmark_request.places.results) / "result.txt"
        result_folder = store_result_in_archive(
            archive, result, str(Path(benchmark_request.places.data).parent.absolute()), stored_runs[0].record
        )
        if result_folder is not None and not quiet:
            console.print(f"sonde: the complete result is stored in {result_folder}", soft_wrap=True)
    page = None
    if writes_report and folders:
        invalid_mark = "" if benchmark_result.valid else " [INVALID]"
        title = (
            f"IO500 {benchmark_request.places.timestamp}: score {benchmark_result.score.total_score:.3f}{invalid_mark}"
        )
        page = write_report_or_warn(
            folders,
            archive.root / REPORTS_FOLDER / f"{benchmark_request.group}.html",
            title,
            quiet,
            make_result_sections(benchmark_result),
        )
    if not quiet:
        if folders:
            stored_text = f"stored as {benchmark_request.group} in {archive.root}"
            console.print(
                f"sonde: {format_count_with_noun(len(folders), 'run')} {stored_text}"
                + (f", report {page}" if page else ""),
                soft_wrap=True,
            )
        if benchmark_result.remaining:
            console.print(
                f"sonde: left in {benchmark_request.places.data}: {', '.join(benchmark_result.remaining)}",
                soft_wrap=True,
            )
    if benchmark_result.exit_code != EXIT_OK:
        raise make_engine_failure(benchmark_result.exit_code, benchmark_result.text)
