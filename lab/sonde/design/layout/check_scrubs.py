# SPDX-License-Identifier: Apache-2.0
"""Checks when ZFS pools were scrubbed, and lists the scrubs and checks of arrays that run. Those are a duty of each
month, no rebuild and no fault, but they take their share of the rate of every drive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage

# Actions of md that compare the copies or the parity of an array that is complete.
CHECK_ACTIONS = ("check", "repair")
# Administrators scrub each month: the second Sunday of a month is at most 35 days after that of the one before.
_MOST_SCRUB_DAYS = 35
# A scrub is paused for the hours of a day, or for some days of much work.
_MOST_PAUSE_DAYS = 7


def list_running_scrubs(observed_storage: ObservedStorage) -> Iterator[str]:
    """States whose rates are unknown because a scrub or check runs."""
    for disk in observed_storage.disks.values():
        if (action := disk.settings.get("sync_action", "")) in CHECK_ACTIONS:
            yield f"the rate of {disk.name} without the {action} of md that runs; measure after it has ended"
    for pool in observed_storage.file_systems:
        if pool.facts.get("scan") == "scrub":
            yield f"the rate of {pool.location} without the scrub that runs; measure after it has ended"


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(" ".join(text.split()), "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None


def _count_days(text: str, date: str) -> int | None:
    """Days from a time that zpool prints to the date of the outputs."""
    time = _parse_time(text)
    return (datetime.fromisoformat(date).replace(tzinfo=None) - time).days if time is not None and date else None


def describe_unknown_scrub(pool: ObservedFileSystem, date: str) -> str:
    """States that the age of the last scrub is unknown; empty if it is known."""
    texts = [pool.facts.get(fact, "") for fact in ("scrubbed", "scrub_started", "scrub_paused")]
    is_unknown = any(_parse_time(text) is not None for text in texts) and not date
    return f"the age of the last scrub of {pool.location}: no output of date shows when it was looked at" * is_unknown


def find_scrub_faults(pool: ObservedFileSystem, date: str) -> Iterator[LayoutFault | CheckedItem]:
    """A pool that was observed on that date, and whose last scrub is long ago, is paused or does not end."""
    yield from _check_open_scrub(pool, date)
    scrubbed, days = pool.facts.get("scrubbed", ""), _count_days(pool.facts.get("scrubbed", ""), date)
    creation, now = pool.facts.get("creation", ""), datetime.fromisoformat(date) if date else None
    if not scrubbed or (_parse_time(scrubbed) is not None and now is None):
        return
    if now is not None and creation.isdigit() and now.timestamp() - int(creation) < _MOST_SCRUB_DAYS * 86400:
        return  # a new pool
    yield CheckedItem("the last scrub", pool.location)
    texts = {"none": "it was never scrubbed (zpool status shows no scan)", "canceled": "its last scrub was canceled"}
    text = texts.get(scrubbed, f"its last scrub ended {days} days ago" if (days or 0) > _MOST_SCRUB_DAYS else "")
    if text:
        yield _report_scrub(pool, text, f"zpool scrub {pool.location}, and a timer that does it each month")


def _check_open_scrub(pool: ObservedFileSystem, date: str) -> Iterator[LayoutFault | CheckedItem]:
    """A scrub that was paused and not resumed, or that runs without end."""
    paused, started = (_count_days(pool.facts.get(fact, ""), date) for fact in ("scrub_paused", "scrub_started"))
    if paused is not None or started is not None:
        yield CheckedItem("the last scrub", pool.location)
    if paused is not None and paused > _MOST_PAUSE_DAYS:
        yield _report_scrub(
            pool, f"its scrub has been paused for {paused} days", f"zpool scrub {pool.location} resumes it"
        )
    elif paused is None and started is not None and started > _MOST_SCRUB_DAYS:
        yield _report_scrub(
            pool, f"its scrub began {started} days ago and has not ended",
            "look for a slow drive (zpool iostat -v, smartctl), and for what restarts it (zpool history -i)",
        )  # fmt: skip


def _report_scrub(pool: ObservedFileSystem, problem: str, remedy: str) -> LayoutFault:
    return LayoutFault(
        "no recent scrub", pool.location, problem,
        "blocks that went bad are noticed when they are read, or when another drive fails and they are needed",
        remedy, ("scrubbed",),
    )  # fmt: skip
