# SPDX-License-Identifier: Apache-2.0
"""``sonde event``: what happened to the storage, next to what was measured."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sonde.cli.options import VerbGroup, add_existing_archive_option, add_json_option
from sonde.findings.log_clock import correct_event_times_to_run_clock
from sonde.logs.event_scan import choose_rule_files, compile_toml_rules, scan_log_files
from sonde.logs.message_kinds import KINDS_FILE, find_new_message_kinds, store_kind_templates
from sonde.logs.scan import LogDefaults
from sonde.model.event import Event, read_events_file
from sonde.model.event.description import EVENT_FORMAT, EVENT_KINDS
from sonde.model.event.times import parse_time_interval, parse_time_zone
from sonde.model.run import read_recorded_run_folder
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive
from sonde.store.events import add_archive_events, make_event_id, read_archive_events, select_new_events
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json


@click.group("event", cls=VerbGroup)
def command() -> None:
    """Enter and list upgrades, failures and repairs. `sonde trend` names those near a change.

    \b
    Examples:
      sonde event add "Upgraded the MDS to 2.15.5" --at 2026-03-02 --kind upgrade
      sonde event import maintenance.toml
      sonde event scan /var/log/messages
      sonde event list

    More: sonde help tasks/watch
    """


@command.command("add")
@click.argument("title")
@click.option("--at", "when", metavar="TIME", help="A day, a time, or an interval BEGIN/END. Default: now.")
@click.option("--kind", type=click.Choice(EVENT_KINDS), default="change", show_default=True, help="What it was.")
@click.option("--parts", metavar="IDS", help="Ids of the system file that it happened to, separated by commas.")
@click.option("--details", help="More than the title says.")
@click.option("--id", "event_id", metavar="ID", help="Name of the event. Default: from day and title.")
@add_existing_archive_option
@add_json_option
def add_command(
    title: str,
    when: str | None,
    kind: str,
    parts: str | None,
    details: str | None,
    event_id: str | None,
    archive: Archive,
    as_json: bool,
) -> int:
    """Enter an event with the one-line TITLE into the archive.

    \b
    Examples:
      sonde event add "Upgraded the MDS to 2.15.5" --at 2026-03-02 --kind upgrade
      sonde event add "Replaced a drive" --at 2026-03-05T09:30Z --kind repair --parts drive17
    """
    time = when or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    day = f"{parse_time_interval(time).first:%Y-%m-%d}"
    document: dict[str, Any] = {
        "schema": EVENT_FORMAT,
        "id": event_id or make_event_id(title, day),
        "when": time,
        "kind": kind,
        "title": title,
    }
    if details:
        document["details"] = details
    if parts:
        document["parts"] = [part.strip() for part in parts.split(",") if part.strip()]
    return _report_added(add_archive_events(archive.root, [document]), as_json)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@add_existing_archive_option
@add_json_option
def import_command(file: Path, archive: Archive, as_json: bool) -> int:
    """Add all events of FILE (TOML, JSON or NDJSON) to the archive.

    \b
    Examples:
      sonde event import maintenance.toml
      sonde event import events.ndjson --json
    """
    return _report_added(
        add_archive_events(archive.root, map(_convert_event_to_document, read_events_file(file))), as_json
    )


@command.command("list")
@add_existing_archive_option
@add_json_option
def list_command(archive: Archive, as_json: bool) -> int:
    """List the events of the archive in order of time.

    \b
    Examples:
      sonde event list
      sonde event list --json
    """
    events = read_archive_events(archive.root)
    if as_json:
        print_json([_convert_event_to_document(event) for event in events])
        return 0
    if not events:
        get_results_console().print("The archive has no events; `sonde event add` enters one.")
        return 0
    table = make_plain_table()
    for title in ("when", "kind", "title", "parts", "id"):
        table.add_column(title)
    for event in events:
        table.add_row(f"{event.when.first:%Y-%m-%d %H:%M}", event.kind, event.title, ", ".join(event.parts), event.id)
    get_results_console().print(table)
    return 0


@command.command("scan")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path), metavar="LOG...")
@click.option(
    "--rules",
    "rule_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your own rules (TOML), or a rule file of SEC (.sec, .conf, .rules), instead of the shipped rules.",
)
@click.option("--only", metavar="NAMES", help="Only these shipped files of rules, separated by commas.")
@click.option("--zone", default="UTC", show_default=True, help="Time zone of times without one: +01:00, Europe/Berlin.")
@click.option("--boot", metavar="TIME", help="When the host booted, for lines with seconds since then, as of dmesg.")
@click.option("--host", default="", help="Host of lines that name none.")
@click.option("--new-kinds", is_flag=True, help="Also report kinds of messages that no rule matches, each kind once.")
@click.option(
    "--run",
    "run_name",
    metavar="RUN",
    help="Estimate the offset of the clock of the logs from what this run and they both saw, and correct times by it.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Print the events and add none.")
@add_existing_archive_option
@add_json_option
def scan_command(
    logs: tuple[Path, ...],
    rule_files: tuple[Path, ...],
    only: str | None,
    zone: str,
    boot: str | None,
    host: str,
    new_kinds: bool,
    run_name: str | None,
    dry_run: bool,
    archive: Archive,
    as_json: bool,
) -> int:
    """Turn the lines of LOG files that match rules into events: syslog, journalctl -o json, dmesg, GPFS, Ceph.

    Compressed and rotated files (messages.1, messages.2.gz) of one log are read as one. Scanning a log again adds only
    the events that are not in the archive. Lines that cannot be used are counted, with file and line.

    With --new-kinds, lines that no rule matches are grouped by what they have in common. The first scan learns the
    kinds of messages of this archive; later ones report each new kind once, as an event.

    \b
    Examples:
      sonde event scan /var/log/messages*
      journalctl -k -o json > kernel.json && sonde event scan kernel.json --dry-run
      sonde event scan console.log --rules site.toml --zone America/Los_Angeles
    """
    boot_time = parse_time_interval(boot, parse_time_zone(zone)).first if boot else None
    files, defaults = choose_rule_files(rule_files, only or ""), LogDefaults(parse_time_zone(zone), boot_time, host)
    documents, problems = scan_log_files(logs, files, defaults)
    kinds_sentence = ""
    if new_kinds:
        store = archive.root / KINDS_FILE
        events, kinds_sentence, templates = find_new_message_kinds(logs, compile_toml_rules(files), defaults, store)
        documents += events
        if not dry_run:
            store_kind_templates(store, templates)
    clock_sentence = ""
    if run_name:
        documents, clock_sentence = correct_event_times_to_run_clock(
            [read_recorded_run_folder(folder) for folder in archive.find_run_folders(run_name)], documents
        )
    new = select_new_events(archive.root, documents)
    if not dry_run:
        add_archive_events(archive.root, new)
    if as_json:
        print_json(
            {
                "events": new,
                "already_present": len(documents) - len(new),
                "problems": problems,
                **({"new_kinds": kinds_sentence} if new_kinds else {}),
                **({"clock": clock_sentence} if run_name else {}),
            }
        )
        return 0
    for document in new:
        get_results_console().print(f"{document['when']}  {document['kind']}  {document['title']}", soft_wrap=True)
    present = len(documents) - len(new)
    present_note = f", {present} were in the archive already" if present else ""
    verb = "would be added" if dry_run else "added"
    get_results_console().print(f"{format_count_with_noun(len(new), 'event')} {verb}{present_note}.", style="bold")
    for sentence in (kinds_sentence, clock_sentence):
        if sentence:
            get_results_console().print(sentence, soft_wrap=True)
    for problem in problems:
        get_messages_console().print(f"sonde: {problem}", soft_wrap=True)
    return 0


def _report_added(events: list[Event], as_json: bool) -> int:
    if as_json:
        print_json([_convert_event_to_document(event) for event in events])
    for event in () if as_json else events:
        get_results_console().print(f"Added {event.id}: {event.title}", soft_wrap=True)
    return 0


def _convert_event_to_document(event: Event) -> dict[str, Any]:
    """The event as a line of NDJSON."""
    members = asdict(event)
    first, last = members.pop("when")["first"], event.when.last
    scope = "dependents" if members.pop("affects_dependents") else "parts"
    kept_members = {name: value for name, value in members.items() if value}
    when = first.isoformat() if first == last else f"{first.isoformat()}/{last.isoformat()}"
    return {"schema": EVENT_FORMAT, **kept_members, "when": when, "scope": scope}
