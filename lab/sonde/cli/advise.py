# SPDX-License-Identifier: Apache-2.0
"""``sonde advise``: what a job's log says about its I/O, what changes would gain, and how to make them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sonde.cli.options import add_archive_option, add_json_option
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import MachineError, ReportError, UserError
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, print_json

if TYPE_CHECKING:
    from sonde.advise.storage_rates import StorageRates


@click.command("advise")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path), metavar="LOG...")
@click.option(
    "--storage",
    metavar="FILE",
    help="How fast the storage is: JSON of `sonde check`, or a system file. Default: large calls of the job itself.",
)
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write an HTML page; of several logs: a folder with a page for each.",
)
@click.option(
    "--fleet", type=click.Path(path_type=Path), metavar="FOLDER", help="Rank all jobs whose logs are below FOLDER."
)
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep what was read of a fleet here, so that each log is read once. Default: NAME-jobs, here.",
)
@click.option("--part", metavar="N/COUNT", help="Only read this part of a fleet, for a task of an array of batch jobs.")
@click.option("--prove", is_flag=True, help="Replay the job before and after each advised change.")
@click.option("--on", "directory", metavar="DIR", help="With --prove: directory on the storage.")
@click.option("--on-model", "system", metavar="SYSTEM", help="With --prove: a simulated machine.")
@click.option("--mount", metavar="ID", default="", help="With --on-model: mount or file system.")
@click.option("--below", metavar="DIR", default="", help="With --prove: only calls on files below this folder.")
@click.option("--cold", is_flag=True, help="With --prove: drop the page cache before each replay.")
@click.option(
    "--blocks",
    type=click.IntRange(7, 1000),
    default=12,
    show_default=True,
    metavar="N",
    help="With --prove: replays of each side, at most.",
)
@add_archive_option
@add_json_option
def command(
    logs: tuple[Path, ...],
    storage: str | None,
    output: Path | None,
    fleet: Path | None,
    table: Path | None,
    part: str | None,
    prove: bool,
    directory: str | None,
    system: str | None,
    mount: str,
    below: str,
    cold: bool,
    blocks: int,
    archive: Archive,
    as_json: bool,
) -> int:
    """Say what in the I/O of a job costs time, how much, and which setting changes it.

    LOG is a Darshan log, a trace of `sonde trace`, or a file or folder of DFTracer. Advice is
    ordered by the seconds that it gains on the storage.
    With several logs of one file system, slow storage targets are named as well.

    \b
    Examples:
      sonde advise job.darshan
      sonde advise job.darshan --storage check.json -o job.html
      sonde advise traces/
      sonde advise first.darshan second.darshan --json
      sonde advise --fleet /var/darshan/2026
      sonde advise traces/ --prove --on /scratch

    More: sonde help tasks/advise
    """
    # The imports for charts and tables take longer than most commands.
    from sonde.advise.advice import advise_job, build_log_set_document
    from sonde.advise.advice_text import print_log_set
    from sonde.advise.job_logs import read_jobs_and_refusals
    from sonde.advise.job_page import write_job_pages
    from sonde.advise.slow_targets import find_slow_storage_targets

    if not prove and (directory or system or mount or below or cold):
        raise UserError("--on, --on-model, --mount, --below and --cold belong to --prove.")
    if prove and (fleet is not None or output is not None or len(logs) != 1):
        raise UserError("--prove takes one log: sonde advise LOG --prove --on DIR")
    if fleet is not None:
        if logs or output is not None:
            raise UserError("--fleet ranks the logs of a folder; leave out LOG and --output.")
        return _print_fleet_losses_of_logs(fleet, table, part, storage, as_json)
    if table is not None or part is not None:
        raise UserError("--table and --part belong to --fleet; name a folder of logs with it.")
    if not logs:
        raise UserError("Name a log: sonde advise job.darshan")
    rates = _read_rates_of_storage_option(storage)
    with get_messages_console().status("reading logs", spinner="dots") as status:
        jobs, refused = read_jobs_and_refusals(logs, lambda log: status.update(f"reading {log}"))
    advised = [advise_job(job, rates) for job in jobs]
    if prove:
        from sonde.cli.advise_runs import ProofRequest, prove_advice

        request = ProofRequest(directory, system, mount, below, blocks, cold, as_json)
        return prove_advice(advised[0], logs[0], request, archive)
    survey = find_slow_storage_targets(jobs)
    pages = []
    if output is not None:
        try:
            pages = write_job_pages(advised, survey, output)
        except ReportError as reason:
            raise UserError(str(reason)) from None
        except OSError as reason:
            raise MachineError(f"The folder {output} cannot be made: {reason.strerror}.") from None
    if as_json:
        print_json(build_log_set_document(advised, refused, survey, pages))
    else:
        print_log_set(get_results_console(), advised, refused, survey, pages)
    return 0


def _read_rates_of_storage_option(storage_option: str | None) -> StorageRates | None:
    """The rates in the file that --storage names; None without that option."""
    from sonde.advise.storage_rates import read_storage_rates

    if not storage_option:
        return None
    return read_storage_rates(
        Path(storage_option if storage_option.endswith(".json") else find_system_file(storage_option))
    )


def _print_fleet_losses_of_logs(
    logs_folder: Path, table_folder: Path | None, part_text: str | None, storage_file: str | None, as_json: bool
) -> int:
    """Reads what the table of the fleet lacks, and ranks the jobs unless only a part was asked for."""
    from sonde.advise.fleet import build_fleet_document, rank_fleet_losses
    from sonde.advise.fleet_text import print_fleet_losses
    from sonde.advise.log_table import FleetPart, extract_logs_to_table

    rates = _read_rates_of_storage_option(storage_file)
    folder = table_folder or Path(f"{logs_folder.resolve().name}-jobs")
    with get_messages_console().status("looking for logs", spinner="dots") as status:
        count = extract_logs_to_table(
            logs_folder,
            folder,
            FleetPart.parse(part_text) if part_text else FleetPart(),
            rates,
            on_progress=lambda done, total: status.update(f"read {done:,} of {total:,} logs"),
        )
    get_messages_console().print(
        f"{folder}: {count.all_logs:,} logs, {count.added:,} read now, {count.refused:,} of them refused.",
        soft_wrap=True,
    )
    if part_text is None:
        survey = rank_fleet_losses(folder)
        if as_json:
            print_json(build_fleet_document(survey))
        else:
            print_fleet_losses(get_results_console(), survey)
    return 0
