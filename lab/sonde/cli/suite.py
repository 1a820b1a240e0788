# SPDX-License-Identifier: Apache-2.0
"""``sonde suite``: runs every experiment of a folder, one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from sonde.cli.options import (
    add_archive_option,
    add_json_option,
    add_mpi_module_option,
    add_report_option,
    parse_locations,
)
from sonde.cli.run_options import OutputOptions
from sonde.experiments.locations import RunLocations
from sonde.launch.launchers.list import list_launcher_names
from sonde.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_MISMATCH, EXIT_OK, UserError
from sonde.model.units import format_wait
from sonde.store.archive import Archive
from sonde.store.tags import check_tag
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

# If no folder has this name, it means the shipped experiments.
SHIPPED_EXPERIMENTS_FOLDER = "experiments"


@click.command("suite")
@click.argument("folder")
@click.option(
    "--on", "directories", metavar="[NAME=]DIR", multiple=True, help="Directory to measure, as of `sonde run`."
)
@click.option(
    "--pool", "pools", metavar="NAME=DIR[,DIR]…", multiple=True, help="Directory of a pool, as of `sonde run`."
)
@click.option("--system", metavar="FILE", help="System file of this machine.")
@click.option(
    "--profile", metavar="NAME", default="", help="Scale: ci, laptop, published. Experiments without it: as is."
)
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help="Change one member of every experiment.")
@click.option("--only", metavar="TEXT", default="", help="Only experiments with this in their name.")
@click.option("--launcher", type=click.Choice(list_launcher_names()), default=None, help="Launcher of the processes.")
@click.option("--resume", is_flag=True, help="Continue interrupted experiments; finished runs stay.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Word to find the runs by later.")
@click.option("--note", metavar="TEXT", default="", help="Comment to store with the runs.")
@add_mpi_module_option
@add_archive_option
@add_report_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no tables.")
@add_json_option
def command(
    folder: str,
    directories: tuple[str, ...],
    pools: tuple[str, ...],
    system: str | None,
    profile: str,
    settings: tuple[str, ...],
    only: str,
    launcher: str | None,
    resume: bool,
    tags: tuple[str, ...],
    note: str,
    mpi_module: Path | None,
    archive: Archive,
    report: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run every experiment in FOLDER and the folders in it, one after the other.

    FOLDER experiments means the shipped ones. A failed experiment does not stop the others. The exit code is 1 if a run
    or a claim failed.

    \b
    Examples:
      sonde suite experiments --profile ci --on /scratch
      sonde suite experiments --profile ci --on /scratch --only hpcs
      sonde suite ./ours --on fs1=/scratch1 --on fs2=/scratch2 --resume

    More: sonde help tasks/experiment
    """
    from sonde.cli.experiment_runs import print_experiment_results, run_experiment_and_write_page
    from sonde.experiments.experiment_run import convert_results_to_json, describe_failure

    for tag in tags:
        check_tag(tag)
    requests = _create_requests(
        folder, only, profile, settings, parse_locations(directories, pools, system, launcher or "", ""), tags, note
    )
    output = OutputOptions(archive, mpi_module, quiet or as_json, as_json, report)
    rows: list[dict[str, Any]] = []
    for number, request in enumerate(requests, start=1):
        name = request.experiment.id
        if not output.quiet:
            get_messages_console().print(Text(f"\n{name}  ({number} of {len(requests)})", style="bold"))
        began = time.monotonic()
        try:
            experiment_run = run_experiment_and_write_page(_resume_if_stored(archive, request, resume), output)
        except UserError as reason:
            rows.append({"experiment": name, "exit_code": reason.exit_code, "text": str(reason)})
            get_messages_console().print(f"sonde: {name}: {reason}", soft_wrap=True)
            continue
        if not output.quiet:
            print_experiment_results(get_results_console(), experiment_run)
        elapsed_s = time.monotonic() - began
        rows.append(
            {**convert_results_to_json(experiment_run), "seconds": elapsed_s, "text": describe_failure(experiment_run)}
        )
        if experiment_run.exit_code == EXIT_INTERRUPTED:
            break
    code = _choose_suite_exit_code(rows)
    if as_json:
        print_json({"schema": "sonde-suite/1", "exit_code": code, "experiments": rows})
    else:
        _print_suite_table(rows, len(requests))
    return code


def _create_requests(
    experiments_folder: str,
    name_filter: str,
    profile: str,
    setting_texts: Sequence[str],
    locations: RunLocations,
    tags: Sequence[str],
    note: str,
) -> list[Any]:
    """Returns a request for each experiment, with the locations that it names. Raises UserError."""
    from sonde.experiments.directories import list_locations_and_pools
    from sonde.experiments.request import create_request
    from sonde.experiments.shipped_experiments import resolve_plan_source
    from sonde.model.experiment import read_experiment

    experiments = [
        read_experiment(file, find_plan=resolve_plan_source)
        for file in _list_experiment_files(experiments_folder, name_filter)
    ]
    locations_by_experiment = [list_locations_and_pools(item) for item in experiments]
    for option, values_by_name, kind in (("--on", locations.by_name, 0), ("--pool", locations.pools, 1)):
        unknown = next(
            (name for name in values_by_name if not any(name in item[kind] for item in locations_by_experiment)), None
        )
        if unknown is not None:
            raise UserError(f"{option} {unknown}=…: no experiment in {experiments_folder} names it.")
    requests = []
    for experiment, (mounts_used, pools_used) in zip(experiments, locations_by_experiment, strict=True):
        own_locations = replace(
            locations,
            by_name={name: directory for name, directory in locations.by_name.items() if name in mounts_used},
            pools={name: directory for name, directory in locations.pools.items() if name in pools_used},
        )
        chosen = profile if profile in experiment.profile_names else ""
        requests.append(create_request(experiment, chosen, setting_texts, own_locations, "", tags, note))
    return requests


def _list_experiment_files(experiments_folder: str, name_filter: str) -> list[Path]:
    """Returns the experiment files of a folder, sorted by name. Raises UserError if there is none."""
    from sonde.experiments.shipped_experiments import list_shipped_experiments
    from sonde.model.experiment.description import EXPERIMENT_FORMAT

    path = Path(experiments_folder)
    if path.is_dir():
        files = [
            file
            for file in sorted(path.rglob("*.toml"))
            if f'schema = "{EXPERIMENT_FORMAT}"' in file.read_text("utf-8", "replace")
        ]
    elif experiments_folder == SHIPPED_EXPERIMENTS_FOLDER:
        files = list(list_shipped_experiments().values())
    else:
        raise UserError(
            f"There is no folder {experiments_folder};"
            f" name one that holds experiments, or say {SHIPPED_EXPERIMENTS_FOLDER}."
        )
    chosen = [file for file in files if name_filter in file.stem]
    if not chosen:
        filter_text = f' with "{name_filter}" in its name' if name_filter else ""
        raise UserError(f"There is no experiment{filter_text} in {experiments_folder}.")
    return chosen


def _resume_if_stored(archive: Archive, request: Any, is_required: bool) -> Any:
    from sonde.experiments.request import resume_request

    if not is_required:
        return request
    try:
        return resume_request(archive, request, is_required=True)
    except UserError:
        return request  # nothing to resume


def _choose_suite_exit_code(suite_rows: Sequence[dict[str, Any]]) -> int:
    codes = [int(row["exit_code"]) for row in suite_rows]
    if EXIT_INTERRUPTED in codes:
        return EXIT_INTERRUPTED
    return (
        EXIT_MISMATCH if EXIT_MISMATCH in codes else EXIT_FAILED if any(code != EXIT_OK for code in codes) else EXIT_OK
    )


def _print_suite_table(suite_rows: Sequence[dict[str, Any]], experiment_count: int) -> None:
    table = make_plain_table()
    for title in ("experiment", "time", "runs", "holds", "fails", "undecided", "not judged", ""):
        table.add_column(title, justify="left" if title in ("experiment", "") else "right", no_wrap=title != "")
    for row in suite_rows:
        outcomes = [str(claim["verdict"]) for claim in row.get("claims", ())]
        counts = [outcomes.count(outcome) for outcome in ("holds", "fails", "undecided", "not judged")]
        time_text = format_wait(row["seconds"]) if "seconds" in row else "-"
        style = "red" if row["exit_code"] != EXIT_OK else ""
        table.add_row(
            row["experiment"],
            time_text,
            str(len(row.get("runs", ()))),
            *(str(outcome) if outcome else "" for outcome in counts),
            row["text"],
            style=style,
        )
    get_results_console().print()
    get_results_console().print(table)
    good = sum(row["exit_code"] == EXIT_OK for row in suite_rows)
    get_results_console().print(
        Text(f"{good} of {experiment_count} experiments succeeded with all claims.", style="bold")
    )
