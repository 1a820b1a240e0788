# SPDX-License-Identifier: Apache-2.0
"""``sonde replay``: issues the calls of a logged job again, on any storage or on a model."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from sonde.cli.options import add_archive_option, add_json_option
from sonde.model.errors import EXIT_OK, UserError
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, print_json


@click.command("replay")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--on", "directory", metavar="DIR", help="Directory on the storage; the files of the job are made in it.")
@click.option("--on-model", "system", metavar="SYSTEM", help="Simulated machine: its system file, or a shipped name.")
@click.option("--mount", metavar="ID", default="", help="With --on-model: mount or file system.")
@click.option("--below", metavar="DIR", default="", help="Only calls on files below this folder of the job.")
@click.option(
    "--think-time",
    type=click.Choice(["as-traced", "none"]),
    default="as-traced",
    show_default=True,
    help="Whether the pauses between calls are repeated.",
)
@click.option("--cold", is_flag=True, help="Drop the page cache before the replay.")
@add_archive_option
@add_json_option
def command(
    log: Path,
    directory: str | None,
    system: str | None,
    mount: str,
    below: str,
    think_time: str,
    cold: bool,
    archive: Archive,
    as_json: bool,
) -> int:
    """Issue the calls of a logged job again, and compare their time with the original.

    LOG is a trace of `sonde trace`, a Darshan log, or a file or folder of DFTracer. Calls on
    descriptors keep their order, offsets, sizes and pauses. A Darshan log without DXT has no
    single calls: these are made up from its counters. Files that the job reads before it
    writes them are made first. Nothing outside of the run's own folder is touched.

    \b
    Examples:
      sonde replay traces/ --on /scratch
      sonde replay job.darshan --on /scratch --think-time none
      sonde replay traces/ --on-model edison --below /scratch/run

    More: sonde help tasks/replay
    """
    # The imports for logs and arrays take longer than most commands.
    from sonde.advise.call_sources import read_call_log
    from sonde.advise.replay_plan import ReplayRequest, build_replay, compare_replay
    from sonde.advise.replay_text import build_replay_document, print_replay
    from sonde.cli.replay_runs import open_replay_runner

    if below and not below.startswith("/"):
        raise UserError(f'--below names a folder of the job by its whole path, like /scratch/run, not "{below}".')
    with ExitStack() as stack:
        runner = open_replay_runner(stack, directory, system, mount, archive, as_json)
        with get_messages_console().status(f"reading {log}", spinner="dots"):
            calls = read_call_log(log, below)
            request = ReplayRequest(runner.target, think_time == "as-traced", cold)
            replay = build_replay(calls, runner.folder, request)
        notes = [*calls.notes, *replay.operations.notes]
        original = {"log": calls.source, "format": calls.format, "program": calls.program, "notes": notes}
        result = runner.run_replay(replay.plan, "replay", {"role": "replay", "replay": original})
    comparison = compare_replay(calls, result.record)
    if as_json:
        print_json(build_replay_document(calls, comparison, result.id, notes))
    else:
        print_replay(get_results_console(), calls, comparison, result.id, notes)
    return EXIT_OK
