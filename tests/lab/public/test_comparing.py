# SPDX-License-Identifier: Apache-2.0
"""Comparisons, trends and the gate in Python: the numbers of the command as objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import run_builders

import sonde
from sonde.findings.classification import Classification
from sonde.store.shards import locate_run_folder
from sonde.store.tags import change_tags

DAYS, DROP_DAY = 40, 30
FIRST_START = datetime(2026, 1, 1, tzinfo=UTC)


def name_run(day: int) -> str:
    return f"{FIRST_START + timedelta(days=day):%Y%m%dT%H%M%SZ}-daily-{day:08x}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> sonde.ArchiveReader:
    """One run a day at 2 GB/s; from day 30 on 1 GB/s. The noise is 1 % up and down."""
    root = tmp_path_factory.mktemp("compared") / "archive"
    members = {"classification": "storage", "classification_text": "From storage.", "validity": "good"}
    for day in range(DAYS):
        rate = (2e9 if day < DROP_DAY else 1e9) * (1.01 if day % 2 else 0.99)
        run_builders.add_run(root, name_run(day), [run_builders.build_phase("read", rate, **members)])
        change_tags(locate_run_folder(root, name_run(day)), ["old" if day < DROP_DAY else "new"])
    for day in range(10):
        change_tags(locate_run_folder(root, name_run(day)), ["baseline:good"])
    run_builders.age_archive(root)
    return sonde.open(root)


def test_halved_rate_is_a_change_of_minus_half(archive: sonde.ArchiveReader) -> None:
    result = archive.compare("tag:old", "tag:new")
    (number,) = result.numbers
    assert (number.plan, number.phase, number.op, number.verdict) == ("daily", "read", "read", "slower")
    assert (number.runs_before, number.runs_after) == (DROP_DAY, DAYS - DROP_DAY)
    assert number.change == pytest.approx(-0.5, abs=0.02)
    assert number.low is not None
    assert number.high is not None
    assert number.low <= number.change <= number.high < 0
    assert list(result.slower) == [number]
    assert list(result.faster) == []
    assert len(result.before) == DROP_DAY
    assert list(archive.compare("tag:new", "tag:old").faster) != []


def test_comparison_converts_to_tables(archive: sonde.ArchiveReader) -> None:
    result = archive.compare("tag:old", "tag:new")
    table = result.to_arrow().to_pydict()
    assert table["verdict"] == ["slower"]
    assert table["before"] == pytest.approx([2e9], rel=0.02)
    assert result.to_polars()["after"].to_list() == pytest.approx([1e9], rel=0.02)
    assert list(result.environment.to_pandas().columns) == ["name", "before", "after", "steady"]


def test_trends_date_the_drop(archive: sonde.ArchiveReader) -> None:
    trends = archive.trends()
    (history,) = trends.histories
    assert (history.plan, history.op, history.runs, history.unit) == ("daily", "read", DAYS, "bytes/s")
    assert history.level == pytest.approx(1e9, rel=0.02)
    (change,) = trends.changes
    assert change.history == history.id
    assert change.first_after == FIRST_START + timedelta(days=DROP_DAY)
    assert change.last_before == FIRST_START + timedelta(days=DROP_DAY - 1)
    assert change.change == pytest.approx(-0.5, abs=0.02)
    assert not change.is_temporary
    assert trends.changes.to_arrow()["first_after"].to_pylist() == [change.first_after]
    assert trends.to_arrow()["runs"].to_pylist() == [DAYS]
    assert trends.summary.endswith(".")


def test_trends_before_the_drop_show_no_change(archive: sonde.ArchiveReader) -> None:
    trends = archive.trends(tag="old")
    assert len(trends.changes) == 0
    assert trends.changes.to_arrow().num_rows == 0
    assert list(trends.slower) == []


def test_gate_judges_runs_by_the_baseline(archive: sonde.ArchiveReader) -> None:
    good = archive.gate(name_run(20), baseline="good")
    assert (good.is_good, good.describe()) == (True, "")
    slow = archive.gate(name_run(DROP_DAY), baseline="good")
    assert slow.is_good is False
    (number,) = slow.numbers
    assert number.usual == pytest.approx(2e9, rel=0.02)
    assert number.measured[0] < number.limit < 0.86 * 2e9
    assert slow.describe().startswith("read: too slow: 9.9e+08, and the limit is")
    assert slow.to_arrow()["is_good"].to_pylist() == [False]


def test_gate_judges_runs_by_stated_limits(archive: sonde.ArchiveReader) -> None:
    assert archive.gate(name_run(DROP_DAY), at_least=["read=1GB/s-10%"]).is_good
    assert archive.gate(name_run(DROP_DAY), at_least=["read=1.5GB/s"]).is_good is False


@pytest.mark.parametrize(
    ("call", "expected_sentence"),
    [
        (lambda archive: archive.compare("tag:old", "tag:nobody"), '"tag:nobody" means no run'),
        (lambda archive: archive.compare("tag:old", "last", system="atlantis"), "atlantis"),
        (lambda archive: archive.trends(plan="weekly"), "holds no history like that"),
        (lambda archive: archive.gate(baseline="best"), 'There is no baseline "best"'),
        (lambda archive: archive.gate(), "either baseline=NAME or at_least"),
        (lambda archive: archive.gate(at_least=["fast"]), "is not PHASE=RATE"),
        (lambda archive: archive.run("2031"), "2031"),
    ],
)
def test_bad_request_is_one_sentence(
    archive: sonde.ArchiveReader, call: Callable[[sonde.ArchiveReader], object], expected_sentence: str
) -> None:
    with pytest.raises(sonde.UserError, match=expected_sentence) as caught:
        call(archive)
    assert "\n" not in str(caught.value)


def test_slow_run_is_repeated_with_its_plan(
    fake_engine: Callable[..., Path], target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fake engine takes no time, so its numbers would be too short to be judged.
    monkeypatch.setattr(Classification, "is_judged", property(lambda self: True))
    plan = {"id": "small", "data": {"access": {"transfer": "64KiB", "volume": "1MiB"}}}
    fake_engine(rate=1e9)
    run = sonde.run({**plan, "phases": [{"id": "write", "op": "write"}]}, on=target, archive=tmp_path / "measured")
    archive = sonde.open(tmp_path / "measured")
    slow = archive.gate(run.id, at_least=["write=3GB/s"])
    assert (slow.is_good, len(slow.runs)) == (False, 1)
    fake_engine(rate=4e9)
    result = archive.gate(run.id, at_least=["write=3GB/s"], retests=2)
    assert result.is_good
    assert len(result.runs) == 2, "one good repetition is enough"
    assert archive.run(result.runs[1]).document["role"] == "retest"
