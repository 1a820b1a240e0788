# SPDX-License-Identifier: Apache-2.0
"""Which runs are meant by words, and which of their numbers belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sonde.model.errors import UserError
from sonde.model.history_key import HistoryKey
from sonde.store.archive import Archive
from sonde.store.summary import read_summary
from sonde.store.tags import change_tags
from sonde.trends.sides import (
    SideValues,
    collect_values_by_number,
    find_compared_side,
    list_key_differences,
    pair_comparable_values,
)

AddRun = Callable[..., Path]
READ = {("read", "read"): 1e9}
KEY = HistoryKey("a", "fs1", "hash", "fat", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")


def test_sides_are_selected_by_tag_baseline_plan_or_time(add_run: AddRun, archive: Path) -> None:
    """Runs at 6:00 of the first five days of 2026, the later ones added first."""
    folders = {day: add_run(day - 1, READ, plan="a" if day < 4 else "b") for day in (5, 4, 3, 2, 1)}
    change_tags(folders[2], added_tags=["old", "baseline:good"])
    change_tags(folders[4], added_tags=["old"])

    def days(text: str) -> list[int]:
        side = find_compared_side(Archive(archive), text)
        assert side.name == text
        return [int(run.started[8:10]) for run in side.runs]

    assert days("tag:old") == [2, 4]
    assert days("baseline:good") == [2]
    assert days("plan:b") == [4, 5]
    assert days("2026-01-02..2026-01-04") == [2, 3, 4]
    assert days("2026-01-02..2026-01-04T05:59") == [2, 3]
    assert days("2026-01-02T06:01..") == [3, 4, 5]
    assert days("..2026-01-02") == [1, 2]
    assert days(folders[3].name) == [3]


def test_incomparable_runs_are_excluded_or_reported(add_run: AddRun, archive: Path) -> None:
    good = add_run(0, READ)
    change_tags(good, added_tags=["x"])
    for day, text in ((1, '"role": "calibration"'), (2, '"role": "run", "status": "mismatch"')):
        folder = add_run(day, READ)
        change_tags(folder, added_tags=["x"])
        changed = (folder / "run.json").read_text(encoding="utf-8").replace('"status": "done"', '"stood": 0')
        (folder / "run.json").write_text(changed.replace('"role": "run"', text), encoding="utf-8")
    assert [run.id for run in find_compared_side(Archive(archive), "tag:x").runs] == [good.name]
    with pytest.raises(UserError) as error:
        find_compared_side(Archive(archive), "tag:nobody")
    assert str(error.value) == (
        '"tag:nobody" means no run with numbers that can be compared; `sonde list` shows what there is.'
    )
    broken = add_run(3, READ)
    (broken / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=f"^A run of {broken.name} .*; it cannot be compared.$"):
        find_compared_side(Archive(archive), broken.name)


def test_invalid_time_error_states_begin_or_end(archive: Path) -> None:
    for text, which in (("x..2026-01-01", "begin"), ("2026-01-01..y", "end")):
        with pytest.raises(UserError, match=f'^The {which} of the time "[xy]" is not a time'):
            find_compared_side(Archive(archive), text)


def number(values: tuple[float, ...] = (1.0,), plan: str = "probe", **key: str) -> SideValues:
    return SideValues(replace(KEY, **key), plan, values, ("r",) * len(values), (0.0,) * len(values))


def test_numbers_are_paired_regardless_of_epoch() -> None:
    before, after = [number(phase="p2"), number()], [number(epoch="f"), number(phase="p2")]
    assert pair_comparable_values(before, after) == [(before[1], after[0]), (before[0], after[1])]


def test_unambiguous_numbers_on_two_file_systems_are_paired() -> None:
    before, after = [number()], [number(file_system="fs2")]
    assert pair_comparable_values(before, after) == [(before[0], after[0])]
    assert pair_comparable_values([*before, number(file_system="fs3")], after) == []
    assert pair_comparable_values(before, [*after, number(file_system="fs3")]) == []
    for other in (number(phase="p2"), number(op="write"), number(unit="ops_per_s")):
        assert pair_comparable_values(before, [other]) == []
    assert pair_comparable_values(before, [number(plan="other", file_system="fs2")]) == []
    # what has its own partner is nobody's rival
    assert pair_comparable_values([number(), number(file_system="fs3")], [number(), number(file_system="fs2")]) == [
        (number(), number()), (number(file_system="fs3"), number(file_system="fs2"))
    ]  # fmt: skip


def test_key_differences_omit_the_members_of_the_test() -> None:
    every = {name: f"other {name}" for name in KEY.__dict__}
    assert list_key_differences(KEY, HistoryKey(**every)) == [
        ("system", "a", "other system"),
        ("file system", "fs1", "other file_system"),
        ("plan hash", "hash", "other plan_hash"),
        ("node class", "fat", "other node_class"),
        ("epoch", "e", "other epoch"),
        ("cache", "cold", "other cache"),
        ("definition", "sonde total", "other definition"),
    ]
    assert list_key_differences(KEY, KEY) == []


def test_number_has_values_of_all_runs_and_the_latest_key(add_run: AddRun) -> None:
    runs = [read_summary(add_run(day, {("read", "read"): 1e9 + day, ("write", "write"): 5.0})) for day in range(3)]
    document = {**runs[2].document, "history": {**runs[2].document["history"], "epoch": "later"}}
    runs[2] = replace(runs[2], document=document, plan="renamed")
    read, write = collect_values_by_number(runs)
    assert (read.key.op, read.key.epoch, read.plan) == ("read", "later", "renamed")
    assert read.values == (1e9, 1e9 + 1, 1e9 + 2)
    assert read.runs == tuple(run.id for run in runs)
    assert [round((time - read.times[0]) / 86400, 6) for time in read.times] == [0, 1, 2]
    assert write.values == (5.0, 5.0, 5.0)
    assert collect_values_by_number([replace(runs[0], document={})]) == []


def test_reading_many_runs_reports_progress(add_run: AddRun, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.trends.sides._PROGRESS_STEP_RUNS", 2)
    for day in range(5):
        add_run(day, READ)
    progress: list[tuple[int, int]] = []
    find_compared_side(Archive(archive), "plan:probe", lambda *step: progress.append(step))
    assert progress == [(2, 5), (4, 5)]
