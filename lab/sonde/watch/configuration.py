# SPDX-License-Identifier: Apache-2.0
"""Reads a watch file and checks what its declarations cannot express."""

from __future__ import annotations

import re
from datetime import time
from pathlib import Path

from sonde.logs.log_file import has_rotation_suffix
from sonde.logs.sec_rules import SEC_SUFFIXES
from sonde.model.documents import parse_toml
from sonde.model.errors import UserError
from sonde.model.event.times import EventTimeError, parse_time_zone
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_text_file
from sonde.model.file_trust import require_file_not_writable_by_others
from sonde.model.tables.table_reader import ReadContext, read_table
from sonde.watch.description import ChannelEntry, LogEntry, ProbeEntry, WatchFile

_MIN_PROBE_INTERVAL_S = 600.0
_QUIET_HOURS_PATTERN = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")


class WatchFileError(UserError):
    """A watch file that cannot be used."""


def read_watch_file(watch_file: Path) -> WatchFile:
    """Reads a watch file. Raises WatchFileError with file and member, and UserError when others may have written it."""
    require_file_not_writable_by_others(watch_file, "watch file")
    text = read_text_file(watch_file, "watch file", MAX_CONFIGURATION_BYTES, WatchFileError)
    try:
        document = parse_toml(text)
    except ValueError as error:
        raise WatchFileError(f"{watch_file} is not valid TOML: {error}.") from None
    watch = read_table(WatchFile, document, ReadContext(WatchFileError, str(watch_file)))

    def make_watch_file_error(problem_clause: str) -> WatchFileError:
        return WatchFileError(f"{watch_file}: {problem_clause}")

    try:
        parse_time_zone(watch.zone)
    except EventTimeError as error:
        raise make_watch_file_error(f"zone: {error}") from None
    if not 0 < watch.budget <= 1:
        raise make_watch_file_error(f"budget is {watch.budget:g}; it must be a fraction of a day above 0, like 0.001.")
    for text in watch.quiet:
        parse_quiet_hours(text, watch_file)
    if not watch.probes and not watch.logs:
        raise make_watch_file_error("it has no probes and no logs; add [[probes]] or [[logs]].")
    for entries in (watch.probes, watch.logs, watch.channels):
        ids = [entry.id for entry in entries]
        for entry_id in ids:
            if ids.count(entry_id) > 1:
                raise make_watch_file_error(f'the id "{entry_id}" is used twice; give one of them another.')
    for probe in watch.probes:
        _check_probe(probe, watch_file)
    for log in watch.logs:
        _check_log(log, watch_file)
    for channel in watch.channels:
        _check_channel(channel, watch_file)
    return watch


def parse_quiet_hours(hours_text: str, watch_file: Path | str = "quiet") -> tuple[time, time]:
    """Parses "22:00-06:00" as begin and end; the end may be on the next day. Raises WatchFileError."""
    match = _QUIET_HOURS_PATTERN.fullmatch(hours_text)
    try:
        if match is None:
            raise ValueError
        return time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    except ValueError:
        raise WatchFileError(f'{watch_file}: quiet has "{hours_text}"; write times of day like 08:00-18:00.') from None


def _check_probe(probe: ProbeEntry, watch_file: Path) -> None:
    if probe.every < _MIN_PROBE_INTERVAL_S:
        raise WatchFileError(f"{watch_file}: probes.{probe.id}.every is {probe.every:g} s; it must be 10 min or more.")
    if probe.spread >= probe.every:
        raise WatchFileError(f"{watch_file}: probes.{probe.id}.spread must be shorter than every.")
    if not 0 <= probe.retests <= 20:
        raise WatchFileError(f"{watch_file}: probes.{probe.id}.retests is {probe.retests}; it must be 0 to 20.")


def _check_log(log_entry: LogEntry, watch_file: Path) -> None:
    if has_rotation_suffix(Path(log_entry.path)):
        raise WatchFileError(
            f"{watch_file}: logs.{log_entry.id}.path is {log_entry.path}; name the file that is written, without "
            "the suffix of rotation."
        )
    for name in log_entry.rules:
        if Path(name).suffix in SEC_SUFFIXES:
            raise WatchFileError(
                f"{watch_file}: logs.{log_entry.id}.rules has {name}; only `sonde event scan` can use rules of SEC; "
                "translate them."
            )


def _check_channel(channel: ChannelEntry, watch_file: Path) -> None:
    needed = {"file": "path", "metrics": "path", "mail": "address", "webhook": "url"}[channel.to]
    if not getattr(channel, needed):
        raise WatchFileError(f'{watch_file}: channels.{channel.id} lacks "{needed}", which {channel.to} needs.')
    if channel.to == "webhook" and not re.match(r"https?://", channel.url):
        raise WatchFileError(f'{watch_file}: channels.{channel.id}.url is "{channel.url}"; write http:// or https://.')
