# SPDX-License-Identifier: Apache-2.0
"""A survey with a cache gives the results of a survey without one, whatever runs come in which order."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from archive_builders import store_run
from record_scene import Scene, Work

from sonde.store.shards import locate_run_folder

MONTHS = ("2026-08", "2026-09", "2026-10")


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The run.json of a run of two phases."""
    works = [Work("write", "write", seconds=2.0), Work("read", "read", seconds=2.0, fsync=0)]
    folder = store_run(
        tmp_path_factory.mktemp("one"), "20260801T120000Z-daily-00000000", Scene(works=works, plan="daily")
    )
    document: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return document


def add_run(archive: Path, summary: dict[str, Any], run: tuple[str, float, float]) -> None:
    """Adds a run of two phases whose folder is old enough to be cached."""
    name, *rates = run
    started = f"{name[:4]}-{name[4:6]}-{name[6:8]}T12:00:00Z"
    phases = [phase | {"bytes_per_s": rate} for phase, rate in zip(summary["phases"], rates, strict=True)]
    folder = locate_run_folder(archive, name)
    folder.mkdir(parents=True)
    document = summary | {"id": name, "started": started, "phases": phases}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    for path in (folder, folder.parent):
        os.utime(path, (1e9, 1e9 + len(list(folder.parent.iterdir()))))


def history(seed: int) -> list[tuple[str, float, float]]:
    """A run on most days of three months; one of the two rates falls at some day, or none does."""
    number = random.Random(seed)
    falls, below = number.choice([(40, 0.4), (25, 0.6), (99, 1.0)]), number.random() < 0.5
    runs = []
    for day in range(60):
        if number.random() < 0.2:
            continue
        factor = falls[1] if day >= falls[0] else 1.0
        name = f"{MONTHS[day // 20].replace('-', '')}{1 + day % 20:02d}T120000Z-daily-{day:08x}"
        rates = [1e9 * number.lognormvariate(0, 0.05) for _ in range(2)]
        rates[below] *= factor
        runs.append((name, rates[0], rates[1]))
    return runs


def remove_index(archive: Path) -> None:
    """Takes away what is remembered, and the index with it."""
    shutil.rmtree(archive / ".index", ignore_errors=True)


@pytest.mark.parametrize("seed", range(4))
def test_trend_output_is_independent_of_earlier_surveys(
    sonde: Any, archive: Path, summary: dict[str, Any], seed: int
) -> None:
    runs = history(seed)
    random.Random(seed + 100).shuffle(runs)
    answers = {}
    for end in (len(runs) // 3, len(runs) - 1, len(runs)):
        for run in runs[:end]:
            if not list(archive.glob(f"20*/{run[0]}")):
                add_run(archive, summary, run)
        answers[end] = [sonde("trend", "--json").json, sonde("trend", "--json").json, sonde("trend").out]
        assert answers[end][0] == answers[end][1]
    remove_index(archive)
    fresh = [sonde("trend", "--json").json, sonde("trend", "--json").json, sonde("trend").out]
    assert fresh == answers[len(runs)]
    assert answers[len(runs)][0]["histories"][0]["runs"] == len(runs)


@pytest.fixture
def surveyed_archive(sonde: Any, archive: Path, summary: dict[str, Any]) -> Path:
    """An archive whose survey was made."""
    for run in history(1):
        add_run(archive, summary, run)
    for _ in range(3):  # the first one reads new runs and makes the index, the second finds the archive at rest
        assert sonde("trend").code == 0
        os.utime(archive, (1e9, 1e9))
    return archive


def test_unchanged_archive_is_neither_read_nor_surveyed_again(
    sonde: Any, surveyed_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sonde("trend").out

    def fail_if_computed(*_: object, **__: object) -> None:
        raise AssertionError("this was known already")

    monkeypatch.setattr("sonde.trends.archive_survey.survey_histories", fail_if_computed)
    monkeypatch.setattr("sonde.trends.archive_survey.list_histories_in_catalog", fail_if_computed)
    assert sonde("trend").out == before
    assert "AssertionError" in sonde("trend", "--smallest-change", "0.2").err, (
        "another question is not answered with this"
    )


def test_a_run_that_is_in_no_history_costs_no_survey(
    sonde: Any, surveyed_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sonde("trend").out
    failed = Scene(works=[Work("write", ends=False)], status="failed", started="2026-10-28T12:00:00Z")
    store_run(surveyed_archive, "20261028T120000Z-other-00000001", failed)
    monkeypatch.setattr(
        "sonde.trends.archive_survey.survey_histories", lambda *_: pytest.fail("this was known already")
    )
    assert sonde("trend").out == before


def test_new_caveat_is_reported_even_with_cached_values(sonde: Any, surveyed_archive: Path) -> None:
    assert "others were there" not in sonde("trend").out
    last = max(surveyed_archive.glob("2026-10/*"))
    document = json.loads((last / "run.json").read_text(encoding="utf-8"))
    document["findings"] = [{"id": "noisy_node", "severity": "warning", "phase": "", "text": "others were there"}]
    (last / "run.json").write_text(json.dumps(document), encoding="utf-8")
    for path in (last, last.parent):
        os.utime(path, (2e9, 2e9))
    assert "others were there" in sonde("trend").out


def test_interrupted_survey_preserves_computed_results(
    sonde: Any, surveyed_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sonde("trend").out
    shutil.rmtree(next(surveyed_archive.glob(".index/*/trend")))

    @contextlib.contextmanager
    def interrupted(stage: str) -> Iterator[Callable[[int, int], None]]:
        def step(done: int, total: int) -> None:
            if stage == "watching histories" and done == 2:
                raise KeyboardInterrupt

        yield step

    with monkeypatch.context() as patched:
        patched.setattr("sonde.cli.trend.open_progress_bar", interrupted)
        assert sonde("trend").code == 5
    assert len(list(surveyed_archive.glob(".index/*/trend/*"))) == 1, "nothing half written, and no survey"
    monkeypatch.setattr("sonde.trends.survey.find_segments", lambda *_: pytest.fail("this was known already"))
    assert sonde("trend").out == before


@pytest.mark.parametrize("damage", ["", "{", '{"analyses": 3}', "[]"])
def test_damaged_cache_is_recomputed(sonde: Any, surveyed_archive: Path, damage: str) -> None:
    before = sonde("trend").out
    cache_files = list(surveyed_archive.glob(".index/*/trend/*.kept"))
    assert len(cache_files) >= 2
    for path in cache_files:
        path.write_text(damage, encoding="utf-8")
    assert sonde("trend").out == before


def test_a_page_of_a_remembered_survey_has_its_pictures(sonde: Any, surveyed_archive: Path, tmp_path: Path) -> None:
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    assert sonde("trend", "-o", str(pages[0])).code == 0
    remove_index(surveyed_archive)
    assert sonde("trend", "-o", str(pages[1])).code == 0
    assert pages[0].read_text(encoding="utf-8") == pages[1].read_text(encoding="utf-8")
