# SPDX-License-Identifier: Apache-2.0
"""``sonde report``: runs as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.cli.options import OutputFile, add_existing_archive_option, add_json_option
from sonde.cli.report_writing import write_run_report
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import System, read_system
from sonde.model.trace import is_trace
from sonde.store.archive import REPORT_FILE, Archive
from sonde.store.groups import iterate_group_names
from sonde.store.shards import REPORTS_FOLDER
from sonde.store.summary import read_summary
from sonde.terminal.screen import get_messages_console, get_results_console, print_json


@click.command("report")
@click.argument("runs", nargs=-1)
@click.option("-o", "--output", type=OutputFile(), metavar="FILE", help="Where to write.")
@click.option("--title", help="Title of the page.")
@click.option(
    "--system",
    "described",
    metavar="SYSTEM",
    help="System file of the machine: which server and unit has which target; of an experiment its units and peaks."
    " Default for an experiment: the one it ran with.",
)
@click.option(
    "--export",
    "formats",
    type=click.Choice(["csv", "json", "parquet"]),
    multiple=True,
    help="Of an experiment: write all numbers too, beside the page.",
)
@add_existing_archive_option
@add_json_option
def command(
    runs: tuple[str, ...],
    output: Path | None,
    title: str | None,
    described: str | None,
    formats: tuple[str, ...],
    archive: Archive,
    as_json: bool,
) -> int:
    """Write RUNS as one HTML file that needs no network: to read, to print, to send.

    Each of RUNS is an id, a unique beginning of one, the id of a check, a folder, or "last" (the default). Several runs
    go into one page. The name of the group of an experiment gives the page of the experiment: what came of its
    claims, its figures and tables.

    \b
    Examples:
      sonde report
      sonde report 20261121T204501Z-quick -o quick.html
      sonde report 20261121T20 20261122T08 --title "Before and after the update" -o both.html

    More: sonde help tasks/measure
    """
    archive.recover_unfinished_runs()
    trace = next((run for run in runs if is_trace(Path(run))), None)
    if trace is not None:
        raise UserError(f"{trace} is a trace, of which there is no page; `sonde show {trace}` shows it by file.")
    group = _find_experiment_group(archive, runs)
    if group:
        return _write_experiment_report(archive, group, output, described, formats, as_json)
    if formats:
        raise UserError("--export is for experiments: name the group of one, as `sonde list` shows it.")
    system = read_system(find_system_file(described)) if described else None
    folders = [folder for run in runs or ("last",) for folder in archive.find_run_folders(run)]
    folders = list(dict.fromkeys(folders))
    page = write_run_report(
        folders, output or _choose_default_page_file(archive, folders), title, quiet=as_json, system=system
    )
    if as_json:
        print_json({"report": str(page), "runs": [str(folder) for folder in folders]})
    else:
        get_results_console().print(str(page), soft_wrap=True)
    return 0


def _find_experiment_group(archive: Archive, run_references: tuple[str, ...]) -> str:
    """The group of an experiment that is meant, when one is."""
    return (
        run_references[0] if len(run_references) == 1 and run_references[0] in iterate_group_names(archive.root) else ""
    )


def _write_experiment_report(
    archive: Archive,
    run_group: str,
    page_file: Path | None,
    system_option: str | None,
    formats: tuple[str, ...],
    as_json: bool,
) -> int:
    from sonde.experiments.page.page import write_experiment_page  # charts and statistics take long to import
    from sonde.experiments.results import read_group_results

    experiment_results = read_group_results(archive, run_group)
    system = (
        read_system(find_system_file(system_option))
        if system_option
        else _read_system_of_group(experiment_results.system)
    )
    page = page_file or experiment_results.folder / REPORT_FILE
    written, verdicts = write_experiment_page(experiment_results, page, system, formats)
    if as_json:
        print_json({"report": str(page), "tables": [str(table) for table in written], "claims": verdicts})
    else:
        for path in (page, *written):
            get_results_console().print(str(path), soft_wrap=True)
    return 0


def _read_system_of_group(system_name: str) -> System | None:
    """The system file that the experiment ran with; without it, one line says what the page lacks."""
    try:
        return read_system(find_system_file(system_name)) if system_name else None
    except UserError as reason:
        text = f"sonde: the system file of the runs cannot be used, so the page has no units and peaks: {reason}"
        get_messages_console().print(text, soft_wrap=True)
        return None


def _choose_default_page_file(archive: Archive, run_folders: list[Path]) -> Path:
    if len(run_folders) == 1:
        return run_folders[0] / REPORT_FILE
    group = read_summary(run_folders[0]).group or f"{run_folders[0].name}-and-{len(run_folders) - 1}-more"
    return archive.root / REPORTS_FOLDER / f"{group}.html"
