# SPDX-License-Identifier: Apache-2.0
"""When probes are due, and why they are skipped: quiet hours, a busy node, a used budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sonde.watch.configuration import WatchFileError, read_watch_file
from sonde.watch.description import ProbeEntry, WatchFile
from sonde.watch.schedule import DAY_S, compute_schedule_slot, find_due_probes

PROBE = ProbeEntry(id="a", plan="quick", on="/fs", start_time="03:00", spread=3600.0)
WATCH = WatchFile(schema="sonde-watch/1", probes=(PROBE,), quiet=("22:00-02:00",), busy=0.2)
NOON = 20_000 * DAY_S + DAY_S / 2


def find_reason(
    now: float, watch_settings: WatchFile = WATCH, stall: float | None = None, *earlier: tuple[float, float]
) -> str:
    (decision,) = find_due_probes(watch_settings, {}, {"a": earlier}, now, "node1", stall)
    return decision.skip_reason


def test_probe_is_due_once_in_each_slot() -> None:
    slots = [compute_schedule_slot(PROBE, WATCH, NOON + hour * 3600, "node1") for hour in range(24 * 5)]
    assert len(set(slots)) == 6 or len(set(slots)) == 5
    assert find_due_probes(WATCH, {"a": slots[0]}, {}, NOON, "node1") == []


def test_spread_differs_between_nodes_within_its_limit() -> None:
    """The slot changes between 03:00 and 04:00, at another minute on each node."""

    def find_start(host: str) -> int:
        three = 20_000 * DAY_S + 3 * 3600
        before = compute_schedule_slot(PROBE, WATCH, three - 1, host)
        return next(
            minute for minute in range(62) if compute_schedule_slot(PROBE, WATCH, three + minute * 60, host) > before
        )

    starts = {find_start(f"node{number}") for number in range(20)}
    assert len(starts) > 10
    assert max(starts) <= 60


def test_quiet_hours_may_pass_midnight() -> None:
    assert "quiet hours (22:00-02:00)" in find_reason(NOON + 11 * 3600)
    assert "quiet hours" in find_reason(NOON + 13 * 3600)
    assert find_reason(NOON + 14 * 3600) == ""


def test_busy_node_skips_with_a_reason() -> None:
    assert "tasks wait for I/O 50% of the time" in find_reason(NOON, WATCH, 0.5)
    assert find_reason(NOON, WATCH, None) == ""


def test_budget_counts_the_last_day_of_a_directory() -> None:
    """0.1 % of a day is 86 s."""
    assert "86 s are allowed" in find_reason(NOON, WATCH, None, (NOON - 3600, 50.0))
    assert find_reason(NOON, WATCH, None, (NOON - DAY_S - 60, 50.0)) == ""
    assert find_reason(NOON, replace(WATCH, budget=0.01), None, (NOON - 3600, 50.0)) == ""


@pytest.mark.parametrize(
    ("text", "expected_problem"),
    [
        ("quiet = ['8-18']", 'quiet has "8-18"'),
        ("zone = 'Mars/Olympus'", '"Mars/Olympus" is no time zone'),
        ("budget = 0", "budget is 0"),
        ("[[probes]]\nid = 'a'\nplan = 'quick'\non = '/x'\nevery = '1 min'", "must be 10 min or more"),
        (
            "[[probes]]\nid = 'b'\nplan = 'quick'\non = '/x'\n[[probes]]\nid = 'b'\nplan = 'quick'\non = '/y'",
            "used twice",
        ),
        ("[[probes]]\nid = 'b'\nplan = 'quick'", 'lacks "on"'),
        ("[[channels]]\nid = 'm'\nto = 'mail'", 'lacks "address"'),
        ("[[channels]]\nid = 'm'\nto = 'webhook'\nurl = 'file:///etc/passwd'", "write http://"),
        ("[[channels]]\nid = 'm'\nto = 'pigeon'", "allowed is file, mail, webhook, metrics"),
    ],
)
def test_wrong_watch_file_is_rejected(tmp_path: Path, text: str, expected_problem: str) -> None:
    path = tmp_path / "watch.toml"
    probes = "" if "[[probes]]" in text else "[[probes]]\nid = 'a'\nplan = 'quick'\non = '/x'\n"
    top, _, tables = text.partition("[[")
    path.write_text(f"schema = 'sonde-watch/1'\n{top}\n{probes}{'[[' + tables if tables else ''}", encoding="utf-8")
    with pytest.raises(WatchFileError, match=r"watch\.toml") as raised:
        read_watch_file(path)
    assert expected_problem in str(raised.value)
