# SPDX-License-Identifier: Apache-2.0
"""``sonde watch``: scheduled probes, their incidents and notices."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import VerbGroup, add_archive_option, add_existing_archive_option, add_json_option
from sonde.conduct.run import RunSetup
from sonde.launch.engine import find_engine
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK, UserError
from sonde.model.units import format_count_with_noun, parse_duration
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json
from sonde.trends.comparison_text import format_history_rate
from sonde.watch.archive_runner import ArchiveRunner, describe_nearby_events, record_incident_events
from sonde.watch.configuration import read_watch_file
from sonde.watch.description import WatchFile
from sonde.watch.history_gate import compute_lower_limit
from sonde.watch.installation import make_cron_line, make_systemd_units
from sonde.watch.log_round import read_watched_logs
from sonde.watch.node_load import read_io_stall
from sonde.watch.notice_channels import deliver_notices, send_test_notice
from sonde.watch.open_metrics import render_metrics
from sonde.watch.watch_state import StateStore, WatchState
from sonde.watch.watcher import RoundReport, Watcher

_WATCH_FOLDER = "watch"
_SYSTEM_UNITS = Path("/etc/systemd/system")
watch_file_argument = click.argument("watch_file", type=click.Path(path_type=Path), metavar="FILE")


@click.group("watch", cls=VerbGroup)
def command() -> None:
    """Probe file systems on a schedule, detect slowdowns, notify people, and confirm fixes.

    \b
    Examples:
      sonde watch once watch.toml
      sonde watch install watch.toml
      sonde watch status

    More: sonde help tasks/watch
    """


@command.command("once")
@watch_file_argument
@click.option("--now", "is_forced", is_flag=True, help="Run all probes, whatever schedule, load and budget say.")
@add_archive_option
@add_json_option
def once_command(watch_file: Path, is_forced: bool, archive: Archive, as_json: bool) -> int:
    """Run the probes of FILE that are due, and send notices. Exit code 1: something is slower; 3: a probe failed.

    A probe whose numbers are low is repeated at once. If all its runs are low, an incident is opened; later good runs
    close it. A killed round is finished by the next one.

    \b
    Examples:
      sonde watch once watch.toml
      sonde watch once watch.toml --json
    """
    watch = read_watch_file(watch_file)
    store = StateStore(archive.root / _WATCH_FOLDER)
    with store.hold_lock():
        state, report, problems = _run_watch_round(watch, store, archive, is_forced)
    if as_json:
        print_json({**_report_document(report), "problems": problems})
    else:
        _print_round(report, problems)
    if any(not incident.acknowledged for incident in state.list_open_incidents()):
        return EXIT_FAILED
    return EXIT_ENVIRONMENT if report.failed else EXIT_OK


@command.command("run")
@watch_file_argument
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="End after N rounds. Default: never.")
@add_archive_option
def run_command(watch_file: Path, rounds: int | None, archive: Archive) -> int:
    """Run rounds once a minute until it is stopped, for machines without systemd and cron.

    FILE is read again for each round.

    \b
    Examples:
      sonde watch run watch.toml
      sonde watch run watch.toml --rounds 1
    """
    store = StateStore(archive.root / _WATCH_FOLDER)
    done = 0
    with store.hold_lock():
        while True:
            _, report, problems = _run_watch_round(read_watch_file(watch_file), store, archive)
            if report.runs or report.failed or report.opened or report.closed or report.log_events or problems:
                _print_round(report, problems)
            done += 1
            if done == rounds:
                return EXIT_OK
            time.sleep(60)


@command.command("install")
@watch_file_argument
@click.option("--cron", is_flag=True, help="Print a line for crontab instead of units of systemd.")
@click.option("--to", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Write the units there.")
@add_archive_option
def install_command(watch_file: Path, cron: bool, folder: Path | None, archive: Archive) -> int:
    """Print what starts the rounds: a service and a timer of systemd, or a line for crontab.

    \b
    Examples:
      sonde watch install watch.toml --to ~/.config/systemd/user
      sonde watch install watch.toml --cron
    """
    read_watch_file(watch_file)
    if cron:
        get_results_console().print(make_cron_line(watch_file, archive.root), soft_wrap=True, markup=False)
        return EXIT_OK
    for name, text in make_systemd_units(watch_file, archive.root).items():
        if folder is None:
            get_results_console().print(f"# {name}\n{text}", soft_wrap=True, markup=False)
            continue
        try:
            write_file(folder / name, text, creates_directory=True)
        except OSError as error:
            raise UserError(f"{folder / name} cannot be written: {error.strerror}.") from None
        get_results_console().print(f"Wrote {folder / name}", soft_wrap=True)
    if folder is not None:
        control = "systemctl" if folder.absolute() == _SYSTEM_UNITS else "systemctl --user"
        get_results_console().print(
            f"Start it: {control} daemon-reload && {control} enable --now sonde-watch.timer", soft_wrap=True
        )
    return EXIT_OK


@command.command("status")
@add_existing_archive_option
@add_json_option
def status_command(archive: Archive, as_json: bool) -> int:
    """Show probes, limits, incidents and notices that wait.

    \b
    Examples:
      sonde watch status
      sonde watch status --json
    """
    state = StateStore(archive.root / _WATCH_FOLDER).load_state(trusted_only=False)
    if as_json:
        print_json(state.to_json())
        return EXIT_OK
    for name, log in state.logs.items():
        get_results_console().print(f"Log {name}: read to line {log.position.lines:,}.", soft_wrap=True)
    if not state.rounds:
        get_results_console().print("Nothing was watched yet; `sonde watch once FILE` runs the first round.")
        return EXIT_OK
    table = make_plain_table()
    for title in ("probe", "phase", "directory", "runs", "usual", "limit", "latest", ""):
        table.add_column(title)
    for history in state.histories.values():
        limit = compute_lower_limit(history)
        usual, least = (format_history_rate(value, history.unit) for value in limit) if limit else ("", "learning")
        latest = format_history_rate(history.values[-1], history.unit)
        labels = history.labels
        mark = "slower" if history.incident else ""
        row = (labels["probe"], labels["phase"], labels["directory"], str(len(history.values)), usual, least, latest)
        table.add_row(*row, mark, style="bold red" if mark else None)
    get_results_console().print(table)
    for incident in state.incidents[-10:]:
        until = f", until {_format_day(incident.closed)}" if incident.closed else ""
        by = f", acknowledged by {incident.acknowledged}" if incident.acknowledged else ""
        get_results_console().print(f"{incident.id} ({incident.status}{until}{by}): {incident.summary}", soft_wrap=True)
    for probe, reason in state.skips.items():
        get_results_console().print(f"{probe} was skipped: {reason}", soft_wrap=True)
    for notice in state.notices:
        waiting = ", ".join(name for name in notice.channels if name not in notice.delivered)
        get_results_console().print(f"Notice {notice.id} waits for {waiting}: {notice.last_failure}", soft_wrap=True)
    return EXIT_OK


@command.command("test")
@watch_file_argument
def send_test_command(watch_file: Path) -> int:
    """Send a notice that says "this is a test" to every channel of FILE. Exit code 1: a channel failed.

    \b
    Examples:
      sonde watch test watch.toml
      sonde watch test /etc/sonde/watch.toml
    """
    watch = read_watch_file(watch_file)
    problems = send_test_notice(watch, platform.node(), time.time())
    for channel in watch.channels:
        if channel.to != "metrics" and not any(problem.startswith(f"{channel.id}: ") for problem in problems):
            get_results_console().print(f"{channel.id}: sent.", soft_wrap=True)
    for problem in problems:
        get_messages_console().print(f"sonde: {problem}", soft_wrap=True)
    return EXIT_FAILED if problems else EXIT_OK


@command.command("acknowledge")
@click.argument("incident")
@click.option("--by", "person", default="a person", show_default=True, help="Who takes care of it.")
@add_existing_archive_option
def acknowledge_command(incident: str, person: str, archive: Archive) -> int:
    """Mark INCIDENT (a beginning of its id, or last) as known: `once` no longer exits with 1 because of it.

    \b
    Examples:
      sonde watch acknowledge last --by ops
      sonde watch acknowledge 20261121 --by "on-call engineer"
    """
    store = StateStore(archive.root / _WATCH_FOLDER)
    with store.hold_lock():
        state = store.load_state()
        chosen = state.find_incident(incident)
        chosen.acknowledged = person
        store.save_state(state)
    get_results_console().print(f"{chosen.id} is acknowledged by {person}.", soft_wrap=True)
    return EXIT_OK


@command.command("accept")
@click.argument("incident")
@add_existing_archive_option
def accept_command(incident: str, archive: Archive) -> int:
    """Make the level since INCIDENT (a beginning of its id, or last) the usual one, and close it.

    For changes that will not be repaired: a new file system version, other hardware. Later drops are noticed again.

    \b
    Examples:
      sonde watch accept last
      sonde watch accept 20261121
    """
    store = StateStore(archive.root / _WATCH_FOLDER)
    with store.hold_lock():
        state = store.load_state()
        chosen = state.find_incident(incident)
        if chosen.status != "open":
            raise UserError(f"{chosen.id} is {chosen.status}; only an open incident can be accepted.")
        state.accept_level(chosen, time.time())
        store.save_state(state)
    get_results_console().print(f"{chosen.id}: the level since then is the usual one now.", soft_wrap=True)
    return EXIT_OK


@command.command("silence")
@click.argument("directory", required=False, default="")
@click.option("--for", "duration", default="8h", show_default=True, help="How long: 30min, 8h, 72h. 0s ends a silence.")
@add_existing_archive_option
def silence_command(directory: str, duration: str, archive: Archive) -> int:
    """Send no notices about DIRECTORY, or about anything, for some time. Probes continue, and incidents are recorded.

    \b
    Examples:
      sonde watch silence /scratch --for 72h
      sonde watch silence --for 0s
    """
    until = time.time() + parse_duration(duration)
    store = StateStore(archive.root / _WATCH_FOLDER)
    with store.hold_lock():
        state = store.load_state()
        state.silences[directory] = until
        store.save_state(state)
    get_results_console().print(
        f"No notices about {directory or 'anything'} until {_format_day(until)} UTC.", soft_wrap=True
    )
    return EXIT_OK


def _run_watch_round(
    watch_settings: WatchFile, state_store: StateStore, archive: Archive, is_forced: bool = False
) -> tuple[WatchState, RoundReport, list[str]]:
    """One round with its events, notices and metrics."""
    archive.recover_unfinished_runs()
    runner = ArchiveRunner(archive, lambda: RunSetup(find_engine(), archive), lambda text, line: None)
    watcher = Watcher(
        watch_settings,
        state_store,
        runner,
        platform.node(),
        time.time,
        describe_events=partial(describe_nearby_events, archive.root),
    )
    logs = read_watched_logs(watch_settings, state_store, watcher.state, archive.root, watcher.host, time.time())
    report = watcher.run_round(read_io_stall(), is_forced)
    report.log_events = logs.events
    record_incident_events(archive.root, watcher.state)
    problems = logs.problems + deliver_notices(watch_settings, watcher.state, state_store, watcher.host)
    text = render_metrics(watcher.state, tuple(probe.id for probe in watch_settings.probes))
    for channel in watch_settings.channels:
        if channel.to == "metrics":
            try:
                write_file(Path(channel.path), text)
            except OSError as error:
                problems.append(f"{channel.path} cannot be written: {error.strerror}.")
    return watcher.state, report, problems


def _report_document(report: RoundReport) -> dict[str, Any]:
    return {
        "runs": report.runs,
        "skipped": [{"probe": entry.probe.id, "reason": entry.skip_reason} for entry in report.skipped],
        "failed": report.failed,
        "log_events": report.log_events,
        "not_judged": report.not_judged,
        "opened": [asdict(incident) for incident in report.opened],
        "closed": [asdict(incident) for incident in report.closed],
    }


def _print_round(report: RoundReport, problem_sentences: list[str]) -> None:
    console = get_results_console()
    for run in report.runs:
        console.print(f"Run {run}", soft_wrap=True)
    for decision in report.skipped:
        console.print(f"{decision.probe.id} was skipped: {decision.skip_reason}.", soft_wrap=True)
    for incident in report.opened:
        console.print(f"Slower ({incident.id}): {incident.make_notice_text()}", style="bold red", soft_wrap=True)
    for incident in report.closed:
        console.print(f"Fixed ({incident.id}): {incident.summary}", style="bold", soft_wrap=True)
    for name, titles in report.log_events.items():
        more = f"; and {len(titles) - 3} more" if len(titles) > 3 else ""
        console.print(
            f"{format_count_with_noun(len(titles), 'new event')} in {name}: {'; '.join(titles[:3])}{more}.",
            soft_wrap=True,
        )
    if not (report.runs or report.skipped or report.failed):
        console.print("No probe is due.")
    elif report.runs and not report.opened:
        console.print(f"{format_count_with_noun(len(report.runs), 'run')}; nothing became slower.")
    for sentence in [*report.failed, *report.not_judged, *problem_sentences]:
        get_messages_console().print(f"sonde: {sentence}", soft_wrap=True)


def _format_day(time_s: float | None) -> str:
    return f"{datetime.fromtimestamp(time_s or 0, UTC):%Y-%m-%d %H:%M}"
