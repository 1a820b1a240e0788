# SPDX-License-Identifier: Apache-2.0
"""Declarations of the members of a watch file."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.logs.description import SEVERITIES
from sonde.model.tables.members import choice, plain_number, tables, text, texts

WATCH_FORMAT = "sonde-watch/1"
CHANNELS = ("file", "mail", "webhook", "metrics")
WEBHOOK_FORMS = ("json", "slack", "mattermost", "teams")
_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"


@dataclass(frozen=True, kw_only=True)
class ProbeEntry:
    """One probe: a plan that is run on a directory again and again."""

    id: str = text("name of the probe, used once", required=True, pattern=_ID)
    plan: str = text("plan file or name of a ready-made plan, like quick", required=True)
    on: str = text("directory on the file system", required=True)
    set: tuple[str, ...] = texts("changes of the plan, like data.access.volume=4GiB")
    every: float = plain_number("duration", "time from one run to the next, 10 minutes at least", default=86400.0)
    start_time: str = text("time of day (HH:MM) of the first run of a day", pattern=_CLOCK)
    spread: float = plain_number(
        "duration", "the run begins up to this much later; how much follows from the names of host and probe",
        default=0.0,
    )  # fmt: skip
    retests: int = plain_number("count", "repetitions of a slow run at once; all must be slow for a notice", default=2)
    localize: str = text("plan to run when a change is confirmed, for example with a file on each storage target")


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One log whose new lines become events of the archive in each round."""

    id: str = text("name of the log, used once", required=True, pattern=_ID)
    path: str = text("the file that the log is written to, like /var/log/messages", required=True)
    rules: tuple[str, ...] = texts("files of log rules; absent: all that Sonde has")
    notify: str = choice(
        "events of this severity or a higher one are a notice; absent: events are only stored", SEVERITIES
    )


@dataclass(frozen=True, kw_only=True)
class ChannelEntry:
    """One way to notify people or programs."""

    id: str = text("name of the channel, used once", required=True, pattern=_ID)
    to: str = choice(
        "file: lines of JSON; mail: sendmail or an SMTP server; webhook: HTTP POST; metrics: OpenMetrics text file",
        CHANNELS,
        required=True,
    )
    path: str = text("file, metrics: the file")
    address: tuple[str, ...] = texts("mail: addresses")
    sender: str = text("mail: address of the sender")
    server: str = text("mail: SMTP server as HOST or HOST:PORT; absent: the program sendmail")
    url: str = text("webhook: address, http or https")
    form: str = choice("webhook: form of the JSON", WEBHOOK_FORMS, default="json")


@dataclass(frozen=True, kw_only=True)
class WatchFile:
    """What `sonde watch` probes, when, and whom it notifies."""

    schema: str = choice("version of this format", (WATCH_FORMAT,), required=True)
    zone: str = text(
        "time zone of `start_time`, `quiet` and times in logs: UTC, +01:00 or Europe/Berlin; if absent, UTC"
    )
    budget: float = plain_number(
        "number", "largest fraction of a day that the probes of one directory may take; 0.001 is 86 seconds",
        default=0.001,
    )  # fmt: skip
    quiet: tuple[str, ...] = texts("times of day without probes, like 08:00-18:00")
    busy: float | None = plain_number(
        "number", "probes are skipped while tasks of this node wait for I/O in more than this fraction of the time"
    )
    join: float = plain_number(
        "duration", "changes that began within this time, or three runs, of an open incident belong to it",
        default=129600.0,
    )  # fmt: skip
    probes: tuple[ProbeEntry, ...] = tables("the probes", ProbeEntry)
    logs: tuple[LogEntry, ...] = tables("logs that are read in each round", LogEntry)
    channels: tuple[ChannelEntry, ...] = tables("who is notified; notices are always printed", ChannelEntry)
