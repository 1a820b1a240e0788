# SPDX-License-Identifier: Apache-2.0
"""Logs of a watch: new lines become events and notices, a kill loses and repeats none, incidents name near events."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from watch_builders import DAY_S, START, ModelRunner, make_watch, read_notices, run_day

from sonde.logs.rule_files import list_shipped_rule_files
from sonde.model.errors import UserError
from sonde.store.events import read_archive_events
from sonde.watch.archive_runner import describe_nearby_events
from sonde.watch.configuration import read_watch_file
from sonde.watch.description import ChannelEntry, LogEntry, WatchFile
from sonde.watch.log_round import LogRound, read_watched_logs
from sonde.watch.notice_channels import deliver_notices
from sonde.watch.watch_state import StateStore

KILLS = 50
ROUNDS = 40


def make_line(number: int) -> str:
    """The line of a failed disk; each number is another event."""
    stamp = f"{datetime.fromtimestamp(START + 60 * number, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return f"{stamp} oss3 kernel: md/raid:md{number}: Disk failure on sdq1, disabling device.\n"


def append(folder: Path, text: str) -> None:
    with (folder / "messages").open("a", encoding="utf-8") as file:
        file.write(text)


def make_log_watch(folder: Path, notify: str = "error") -> WatchFile:
    rules = (str(list_shipped_rule_files()["disks"]),)  # few, because each round compiles them
    log = LogEntry(id="console", path=str(folder / "messages"), rules=rules, notify=notify)
    channel = ChannelEntry(id="file", to="file", path=str(folder / "notices.ndjson"))
    return WatchFile(schema="sonde-watch/1", logs=(log,), channels=(channel,))


def run_round(folder: Path, watch_settings: WatchFile | None = None, now: float = START + DAY_S) -> LogRound:
    """The part of a round that is about logs, as a new process does it, and the delivery of its notices."""
    watch_settings, store = watch_settings or make_log_watch(folder), StateStore(folder / "watch")
    state = store.load_state()
    result = read_watched_logs(watch_settings, store, state, folder, "n1", now)
    assert deliver_notices(watch_settings, state, store, "n1") == []
    return result


def test_new_severe_lines_are_events_and_one_notice(tmp_path: Path) -> None:
    append(tmp_path, make_line(0))
    assert run_round(tmp_path).events == {"console": ["sdq1 failed in md0 of oss3"]}
    assert read_notices(tmp_path) == [], "what is in the log before the first round is no news"
    assert run_round(tmp_path).events == {}
    append(tmp_path, make_line(1) + make_line(2))
    assert len(run_round(tmp_path).events["console"]) == 2
    assert len(read_archive_events(tmp_path)) == 3
    (notice,) = read_notices(tmp_path)
    assert notice["title"] == f"2 events in {tmp_path}/messages"
    assert "sdq1 failed in md1 of oss3; " in notice["text"]


def test_events_below_the_severity_are_only_stored(tmp_path: Path) -> None:
    run_round(tmp_path, make_log_watch(tmp_path, ""))
    append(tmp_path, make_line(1))
    assert run_round(tmp_path, make_log_watch(tmp_path, "")).events
    assert read_notices(tmp_path) == []


def test_silence_stops_notices_of_logs(tmp_path: Path) -> None:
    run_round(tmp_path)
    store = StateStore(tmp_path / "watch")
    state = store.load_state()
    state.silences[""] = START * 2
    store.save_state(state)
    append(tmp_path, make_line(1))
    assert run_round(tmp_path).events
    assert read_notices(tmp_path) == []


def test_many_events_are_one_short_notice(tmp_path: Path) -> None:
    run_round(tmp_path)
    append(tmp_path, "".join(make_line(number) for number in range(500)))
    run_round(tmp_path)
    (notice,) = read_notices(tmp_path)
    assert "and 490 more, see `sonde event list`." in notice["text"]


def test_missing_log_is_a_problem_and_remaining_logs_are_read(tmp_path: Path) -> None:
    append(tmp_path, make_line(1))
    watch = make_log_watch(tmp_path)
    watch = replace(watch, logs=(LogEntry(id="absent", path=str(tmp_path / "absent")), *watch.logs))
    result = run_round(tmp_path, watch)
    assert result.problems == [f"absent: there is no log {tmp_path}/absent yet; it is read when it appears."]
    assert list(result.events) == ["console"]


def test_unreadable_log_and_rules_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "own.toml").write_text("schema = ")
    logs = (
        LogEntry(id="a", path=str(tmp_path / "folder")),
        LogEntry(id="b", path=str(tmp_path / "messages"), rules=(str(tmp_path / "own.toml"),)),
    )
    problems = run_round(tmp_path, replace(make_log_watch(tmp_path), logs=logs)).problems
    assert [problem[:3] for problem in problems] == ["a: ", "b: "]
    assert "cannot be read" in problems[0]
    assert "not valid TOML" in problems[1]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "no probes and no logs"),
        ('[[logs]]\nid = "a"\npath = "messages.1"\n', "without the suffix of rotation"),
        ('[[logs]]\nid = "a"\npath = "m"\nrules = ["x.sec"]\n', "only `sonde event scan`"),
        ('[[logs]]\nid = "a"\npath = "m"\nnotify = "bad"\n', "notify"),
        ('[[logs]]\nid = "a"\npath = "m"\n[[logs]]\nid = "a"\npath = "n"\n', "used twice"),
    ],
)
def test_wrong_log_in_a_watch_file_is_one_sentence(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "watch.toml"
    path.write_text('schema = "sonde-watch/1"\n' + text)
    with pytest.raises(UserError, match=part) as caught:
        read_watch_file(path)
    assert "\n" not in str(caught.value)


def _run_rounds(folder: Path) -> None:
    """Runs the rounds of a process that restarts after each kill. The log grows and is rotated meanwhile."""
    step = folder / "step"
    for number in range(int(step.read_text()) if step.exists() else 0, ROUNDS):
        log = folder / "messages"
        lines = log.read_text(encoding="utf-8") if log.exists() else ""
        if f":md{number}:" not in lines:  # a kill may fall between line and step
            if number % 7 == 6 and f":md{number - 1}:" in lines:
                os.replace(log, folder / f"messages-{number:08}")
            append(folder, make_line(number))
        run_round(folder)
        (folder / "step.part").write_text(str(number + 1))
        os.replace(folder / "step.part", step)


def test_kill_at_any_moment_loses_and_repeats_no_event(tmp_path: Path) -> None:
    generator, kills = random.Random(5), 0
    for _ in range(100 * KILLS):
        child = os.fork()
        if not child:
            _run_rounds(tmp_path)
            os._exit(0)
        if kills < KILLS:
            time.sleep(generator.uniform(0.0, 0.01))  # fast machines are done soon
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        kills += os.WIFSIGNALED(status)
        if os.WIFEXITED(status):
            assert status == 0
            break
    assert kills == KILLS
    titles = [event.title for event in read_archive_events(tmp_path)]
    assert titles == [f"sdq1 failed in md{number} of oss3" for number in range(ROUNDS)]
    parts = [part for notice in read_notices(tmp_path) for part in notice["text"].rstrip(".").split("; ")]
    assert [part.split()[4] for part in parts] == [f"md{number}" for number in range(1, ROUNDS)]


def test_notice_of_a_slowdown_names_the_nearest_event(tmp_path: Path) -> None:
    """The disk fails between the last good night and the first bad one."""
    watch = make_watch(tmp_path)
    runner = ModelRunner(tmp_path / "runs.ndjson", lambda name, day: 1.0 if day < 10 else 0.5, [START])
    run_round(tmp_path)
    append(tmp_path, make_line(60 * 24 * 10))
    run_round(tmp_path, now=START + 11 * DAY_S)
    for day in range(11):
        run_day(watch, tmp_path, runner, day, lambda before, after: describe_nearby_events(tmp_path, before, after))
    (notice,) = (entry for entry in read_notices(tmp_path) if entry["kind"] == "slower")
    assert 'Event "sdq1 failed in md14400 of oss3"' in notice["text"]
    assert "between the last run before and the first run after the change." in notice["text"]
