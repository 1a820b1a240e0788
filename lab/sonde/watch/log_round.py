# SPDX-License-Identifier: Apache-2.0
"""The logs of a watch file in one round: new lines become events of the archive, and severe ones a notice.

Events are added before the state is saved. After a kill between both, the same lines give the same events again, which
the archive has already, and the notice is sent once, because it is part of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.logs.description import SEVERITIES
from sonde.logs.log_follow import LogState, follow_log
from sonde.logs.rule_files import CompiledRule, compile_rules, compile_shipped_rules
from sonde.logs.scan import LogDefaults
from sonde.model.errors import UserError
from sonde.model.event.times import parse_time_zone
from sonde.model.file_trust import require_file_not_writable_by_others
from sonde.model.units import format_count_with_noun
from sonde.store.events import add_archive_events, select_new_events
from sonde.watch.description import LogEntry, WatchFile
from sonde.watch.watch_state import Notice, StateStore, WatchState

_MAX_LISTED_EVENTS = 10


@dataclass
class LogRound:
    """Result of reading the logs: titles of new events by log, and one sentence for each problem."""

    events: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_watched_logs(
    watch_settings: WatchFile,
    state_store: StateStore,
    watch_state: WatchState,
    archive_root: Path,
    host_name: str,
    now_s: float,
) -> LogRound:
    """Reads what the logs got since the last round, saves the state after each, and adds notices to it. Never raises
    UserError: a log that cannot be read is a problem of the round."""
    result = LogRound()
    for entry in watch_settings.logs:
        try:
            documents, problems = _collect_new_events_of_log(
                watch_settings, entry, state_store, watch_state, archive_root, host_name, now_s
            )
        except UserError as error:
            result.problems.append(f"{entry.id}: {error}")
            continue
        result.problems += [f"{entry.id}: {problem}" for problem in problems]
        if documents:
            result.events[entry.id] = [document["title"] for document in documents]
    return result


def _collect_new_events_of_log(
    watch_settings: WatchFile,
    log_entry: LogEntry,
    state_store: StateStore,
    watch_state: WatchState,
    archive_root: Path,
    host_name: str,
    now_s: float,
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """New events of one log and its problems."""
    path, earlier = Path(log_entry.path), watch_state.logs.get(log_entry.id)
    defaults = LogDefaults(parse_time_zone(watch_settings.zone), host=host_name, now=datetime.fromtimestamp(now_s, UTC))
    new = follow_log(path, earlier or LogState(), load_log_rules(log_entry), defaults)
    if documents := select_new_events(archive_root, new.documents):
        add_archive_events(archive_root, documents)
    watch_state.logs[log_entry.id] = new.state
    if earlier is not None:  # in the first round the log may be years old
        _add_log_notice(watch_settings, log_entry, watch_state, new.documents, now_s)
    state_store.save_state(watch_state)
    is_absent = not new.state.position.inode
    problems = (
        (*new.problems, f"there is no log {path} yet; it is read when it appears.") if is_absent else new.problems
    )
    return new.documents, problems


def load_log_rules(log_entry: LogEntry) -> Sequence[CompiledRule]:
    """The rules of a log: its own files, or all shipped ones. Raises UserError."""
    for name in log_entry.rules:
        require_file_not_writable_by_others(Path(name), "file of log rules")
    return compile_rules(map(Path, log_entry.rules)) if log_entry.rules else compile_shipped_rules()


def _add_log_notice(
    watch_settings: WatchFile,
    log_entry: LogEntry,
    watch_state: WatchState,
    event_documents: tuple[dict[str, Any], ...],
    now_s: float,
) -> None:
    """One notice for all events of a round that are severe enough."""
    if not log_entry.notify or watch_state.silences.get("", 0) > now_s:
        return
    least = SEVERITIES.index(log_entry.notify)
    severe = [document for document in event_documents if SEVERITIES.index(document["tags"][-1]) >= least]
    if not severe:
        return
    watch_state.log_notice_count += 1
    titles = [f"{document['when'].partition('/')[0]} {document['title']}" for document in severe[:_MAX_LISTED_EVENTS]]
    more = len(severe) - len(titles)
    text = "; ".join(titles) + (f"; and {more} more, see `sonde event list`." if more else ".")
    channels = [channel.id for channel in watch_settings.channels if channel.to != "metrics"]
    notice_id = f"{datetime.fromtimestamp(now_s, UTC):%Y-%m-%d}-log-{log_entry.id}-{watch_state.log_notice_count}"
    title = f"{format_count_with_noun(len(severe), 'event')} in {log_entry.path}"
    watch_state.notices.append(Notice(notice_id, "log", "", now_s, title, text, channels))
