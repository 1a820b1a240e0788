# SPDX-License-Identifier: Apache-2.0
"""Declarations of the members of a watch file."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.logs.description import SEVERITIES
from sonde.model.tables.members import declare_choice, declare_plain_number, declare_tables, declare_text, declare_texts

WATCH_FORMAT = "sonde-watch/1"
CHANNEL_KINDS = ("file", "mail", "webhook", "metrics")
WEBHOOK_FORMS = ("json", "slack", "mattermost", "teams")
_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_CLOCK_TIME_PATTERN = r"([01][0-9]|2[0-3]):[0-5][0-9]"


@dataclass(frozen=True, kw_only=True)
class ProbeEntry:
    """One probe: a plan that is run on a directory again and again."""

    id: str = declare_text("name of the probe, used once", required=True, pattern=_ID_PATTERN)
    plan: str = declare_text("plan file or name of a shipped plan, like quick", required=True)
    on: str = declare_text("directory on the file system", required=True)
    set: tuple[str, ...] = declare_texts("changes of the plan, like data.access.volume=4GiB")
    every: float = declare_plain_number(
        "duration", "time from one run to the next, 10 minutes at least", default_value=86400.0
    )
    start_time: str = declare_text("time of day (HH:MM) of the first run of a day", pattern=_CLOCK_TIME_PATTERN)
    spread: float = declare_plain_number(
        "duration", "the run begins up to this much later; how much follows from the names of host and probe",
        default_value=0.0,
    )  # fmt: skip
    retests: int = declare_plain_number(
        "count", "repetitions of a slow run at once; all must be slow for a notice", default_value=2
    )
    localize: str = declare_text(
        "plan to run when a change is confirmed, for example with a file on each storage target"
    )


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One log whose new lines become events of the archive in each round."""

    id: str = declare_text("name of the log, used once", required=True, pattern=_ID_PATTERN)
    path: str = declare_text("the file that the log is written to, like /var/log/messages", required=True)
    rules: tuple[str, ...] = declare_texts("files of log rules; absent: all that Sonde has")
    notify: str = declare_choice(
        "events of this severity or a higher one are a notice; absent: events are only stored", SEVERITIES
    )


@dataclass(frozen=True, kw_only=True)
class ChannelEntry:
    """One way to notify people or programs."""

    id: str = declare_text("name of the channel, used once", required=True, pattern=_ID_PATTERN)
    to: str = declare_choice(
        "file: lines of JSON; mail: sendmail or an SMTP server; webhook: HTTP POST; metrics: OpenMetrics text file",
        CHANNEL_KINDS,
        required=True,
    )
    path: str = declare_text("file, metrics: the file")
    address: tuple[str, ...] = declare_texts("mail: addresses")
    sender: str = declare_text("mail: address of the sender")
    server: str = declare_text("mail: SMTP server as HOST or HOST:PORT; absent: the program sendmail")
    url: str = declare_text("webhook: address, http or https")
    form: str = declare_choice("webhook: form of the JSON", WEBHOOK_FORMS, default_word="json")


@dataclass(frozen=True, kw_only=True)
class WatchFile:
    """The probes of `sonde watch`, their schedule, and the people that it notifies."""

    schema: str = declare_choice("version of this format", (WATCH_FORMAT,), required=True)
    zone: str = declare_text(
        "time zone of `start_time`, `quiet` and times in logs: UTC, +01:00 or Europe/Berlin; if absent, UTC"
    )
    budget: float = declare_plain_number(
        "number", "largest fraction of a day that the probes of one directory may take; 0.001 is 86 seconds",
        default_value=0.001,
    )  # fmt: skip
    quiet: tuple[str, ...] = declare_texts("times of day without probes, like 08:00-18:00")
    busy: float | None = declare_plain_number(
        "number", "probes are skipped while tasks of this node wait for I/O in more than this fraction of the time"
    )
    join: float = declare_plain_number(
        "duration", "changes that began within this time, or three runs, of an open incident belong to it",
        default_value=129600.0,
    )  # fmt: skip
    probes: tuple[ProbeEntry, ...] = declare_tables("the probes", ProbeEntry)
    logs: tuple[LogEntry, ...] = declare_tables("logs that are read in each round", LogEntry)
    channels: tuple[ChannelEntry, ...] = declare_tables("who is notified; notices are always printed", ChannelEntry)
