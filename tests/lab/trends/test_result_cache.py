# SPDX-License-Identifier: Apache-2.0
"""A survey that takes over what earlier ones found out says what a survey from nothing says, to the last digit."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.trends import budget, survey_cache
from sonde.trends.detectors import DetectorBank, DetectorSettings
from sonde.trends.history import History
from sonde.trends.result_cache import ResultCache, compute_digest
from sonde.trends.survey import Survey, survey_histories
from sonde.trends.survey_cache import SurveyCache, hash_survey_code, make_selection_key
from sonde.trends.watch import find_alarms_in_histories, find_alarms_in_rows, sort_alarms, watch_from_earlier_state

DAY = 86400.0
Run = tuple[float, float]  # time, rate


@pytest.fixture(autouse=True)
def few_simulated_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """DetectorSettings are learned on few simulated runs: how good they are is not asked here."""
    monkeypatch.setattr(budget, "_SIMULATED_RUNS", 600)
    monkeypatch.setattr(budget, "_SIMULATED_RUNS_PER_HISTORY", 60)


class Site:
    """Histories that grow and are cut as an archive's are."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.histories: dict[str, list[Run]] = {}
        for _ in range(self.chance.randint(1, 4)):
            self.new_history()
        for name in self.histories:
            for _ in range(self.chance.choice([3, 30, 90])):
                self.append(name)

    def new_history(self) -> None:
        self.histories[f"h{self.chance.randrange(10**6)}"] = []

    def append(self, name: str) -> None:
        """A run about a day after the last; its rate stays, jumps or is exactly one that was there."""
        runs = self.histories[name]
        time = runs[-1][0] + DAY * self.chance.uniform(0.2, 1.5) if runs else DAY * self.chance.uniform(1000, 1001)
        rate = runs[-1][1] if runs else 1e9
        fate = self.chance.random()
        if fate < 0.04:
            rate *= self.chance.choice([0.2, 0.6, 1.5, 3.0])
        elif fate < 0.2 and runs:
            rate = self.chance.choice(runs)[1]
        runs.append((time, rate * (1.0 if fate < 0.2 else self.chance.lognormvariate(0, 0.04))))

    def change(self) -> None:
        """Changes of an archive between two surveys."""
        action = self.chance.choice(["grow", "grow", "grow", "nothing", "one", "remove", "between", "history"])
        names = list(self.histories)
        history = self.histories[self.chance.choice(names)]
        if action == "grow":
            for name in names:
                for _ in range(self.chance.choice([0, 1, 1, 12])):
                    self.append(name)
        elif action == "one":
            self.append(self.chance.choice(names))
        elif action == "remove" and history:
            begin = self.chance.choice([0, len(history) // 2, len(history) - 1])
            del history[begin : begin + self.chance.choice([1, 7])]
        elif action == "between" and history:
            time, rate = self.chance.choice(history)
            history[:] = sorted([*history, (time + 1.0, 0.9 * rate)])
        elif action == "history":
            self.new_history()
            if len(names) > 2:
                del self.histories[names[0]]

    def history(self) -> list[History]:
        return [
            History({"experiment": name, "file_system": name[-1]}, *np.array(runs, dtype=float).reshape(-1, 2).T)
            for name, runs in self.histories.items()
        ]


def survey_text(survey: Survey) -> str:
    """All of it, to the last digit."""
    return json.dumps(survey_cache._convert_survey_to_json(survey))


def damage(path: Path, chance: random.Random, older: bytes) -> None:
    """Damages a file as disks, copies and other programs do."""
    content = path.read_bytes()
    position = chance.randrange(len(content))
    path.write_bytes(
        chance.choice(
            [
                content[:position],
                content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :],
                older,
                b"",
                b"0\n{}",
                content * 2,
            ]
        )
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 6))])
def test_cached_survey_equals_a_fresh_survey_after_any_change(tmp_path: Path, seed: int) -> None:
    site, memory = Site(seed), SurveyCache(tmp_path / "trend")
    file, older = tmp_path / "trend" / "q.kept", b""
    budgets, smallest = [1.0, 1.0, 1.0, 0.2], [0.1, 0.1, 0.1, 0.4]
    for _ in range(7):
        options = (site.chance.choice(budgets), site.chance.choice(smallest))
        cached_results = memory.load_results("q")
        survey = survey_histories(site.history(), *options, cache=cached_results)
        memory.store_results("q", cached_results, is_finished=site.chance.random() < 0.8)
        assert survey_text(survey) == survey_text(survey_histories(site.history(), *options))
        if site.chance.random() < 0.2:
            damage(file, site.chance, older)
        older = file.read_bytes()
        site.change()


def make_noisy_history(seed: int, runs: int, steps: dict[int, float]) -> History:
    values = np.random.default_rng(seed).normal(0, 0.04, runs)
    for run, factor in steps.items():
        values[run:] += np.log(factor)
    return History({"experiment": f"e{seed}"}, DAY * np.arange(float(runs)), 1e9 * np.exp(values))


def cut_history(history: History, runs: int) -> History:
    return History(history.labels, history.times[:runs], history.values[:runs])


def all_histories() -> list[History]:
    """A history of 203 days. It fell on day 100, and again seven runs before its end; day 203 is a Tuesday, so settings
    are the same on both of the last days."""
    return [make_noisy_history(5, 203, {100: 0.5, 196: 0.4})]


@cache
def _run_survey(runs: int) -> str:
    cache = ResultCache()
    survey_histories([cut_history(all_histories()[0], runs)], cache=cache)
    return json.dumps(cache.build_document())


def asked_at(runs: int) -> dict[str, Any]:
    """The cached state of a history of this length, as a document that the test may change."""
    document: dict[str, Any] = json.loads(_run_survey(runs))
    return document


@cache
def said_of_whole() -> str:
    """The text of a survey of the history without a cache."""
    return survey_text(survey_histories(all_histories()))


def test_only_new_runs_of_a_history_are_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ResultCache(asked_at(202))
    pushed = 0
    push = DetectorBank.push_runs

    def push_and_count(self: DetectorBank, values: Any) -> Any:
        nonlocal pushed
        pushed += 1
        return push(self, values)

    def fail_if_computed(*_: object, **__: object) -> None:
        raise AssertionError("this was known already")

    monkeypatch.setattr(DetectorBank, "push_runs", push_and_count)
    for name in ("calibrate_detector", "find_segments", "simulate_detectable_drop"):
        monkeypatch.setattr(f"sonde.trends.survey.{name}", fail_if_computed)
    survey_histories(all_histories(), cache=cache)
    assert pushed == 1


def survey_with_mutated_cache(change: Callable[[dict[str, Any]], None], kind: str) -> str:
    """Text of a survey whose cached results of one kind were changed by `change`."""
    document = asked_at(202)
    for question, answer in document.items():
        if question.startswith(kind):
            change(answer)
    cache = ResultCache(document)
    return survey_text(survey_histories(all_histories(), cache=cache)) + json.dumps(cache.build_document())


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("watch", lambda document: document["alarms"].pop()),
        ("watch", lambda document: document.update(filled=document["filled"] - 2)),
        ("watch", lambda document: document.update(reference=[40.0, 0.01])),
        ("noise", lambda document: document.__setitem__(1, 2 * document[1])),
        ("settings", lambda document: document.update(per_100_runs=9.0)),
        ("ratio", lambda document: document.__setitem__(0, 0.9 * document[0])),
    ],
)
def test_modified_cache_changes_the_result_which_proves_its_use(kind: str, change: Callable[[Any], None]) -> None:
    right = survey_with_mutated_cache(lambda document: None, kind)
    assert right == said_of_whole() + json.dumps(asked_at(203))
    assert survey_with_mutated_cache(change, kind) != right


@pytest.mark.parametrize("rubbish", [None, 3, "x", [], [1], {}, {"runs": 3}, [[[0, 1]], 0.1, None]])
def test_malformed_cached_results_are_recomputed(rubbish: Any) -> None:
    document = dict.fromkeys(asked_at(203), rubbish)
    assert survey_text(survey_histories(all_histories(), cache=ResultCache(document))) == said_of_whole()


@pytest.mark.parametrize("state", [{"runs": 500}, {"filled": -1}, {"filled": 300}, {"filled": 81}])
def test_impossible_cached_watch_state_is_discarded(state: dict[str, int]) -> None:
    document = asked_at(203)
    for question in document:
        if question.startswith("watch"):
            document[question] |= state
    assert survey_text(survey_histories(all_histories(), cache=ResultCache(document))) == said_of_whole()


@pytest.mark.parametrize("smallest", [0.1, 0.7])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_changed_values_or_smallest_change_are_recomputed(smallest: float, factor: float) -> None:
    """The runs are as many and at the same times, with noise that is `factor` times as broad."""
    history = all_histories()[0]
    scattered = [History(history.labels, history.times, 1e9 * (history.values / 1e9) ** factor)]
    cache = ResultCache(asked_at(203))
    assert survey_text(survey_histories(scattered, smallest_change=smallest, cache=cache)) == survey_text(
        survey_histories(scattered, smallest_change=smallest)
    )


def test_changed_budget_is_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_SIMULATED_RUNS", 8000)
    monkeypatch.setattr(budget, "_SIMULATED_RUNS_PER_HISTORY", 200)
    cache = ResultCache()
    generous = survey_histories(all_histories(), 40.0, 0.01, cache=cache).calibration.settings
    strict = survey_histories(
        all_histories(), 0.5, 0.01, cache=ResultCache(cache.build_document())
    ).calibration.settings
    assert generous.arl0 < strict.arl0
    assert strict == survey_histories(all_histories(), 0.5, 0.01).calibration.settings


def test_result_cache_retains_only_results_of_the_last_survey() -> None:
    cache = ResultCache(asked_at(203))
    other = [make_noisy_history(6, 90, {40: 0.5})]
    survey_histories(other, cache=cache)
    fresh = ResultCache()
    survey_histories(other, cache=fresh)
    assert cache.build_document() == fresh.build_document()
    assert cache.build_document(is_finished=False) == asked_at(203) | fresh.build_document(), (
        "unless it did not come to its end"
    )


def test_batched_watch_equals_individual_watches() -> None:
    number = np.random.default_rng(3)
    lengths = [0, 1, 19, 20, 21, 80, 81, 200, 600, 1100]
    rows = [np.round(number.normal(0, 0.05, size), 2) for size in lengths]
    for row in rows:
        row[row.size // 2 :] -= 0.4
    together = watch_from_earlier_state(rows, DetectorSettings())
    alone = [watch_from_earlier_state([row], DetectorSettings())[0] for row in rows]
    assert [watch.state for watch in together] == [watch.state for watch in alone]
    assert [[alarm.noticed for alarm in watch.alarms] for watch in together] == [
        [alarm.noticed for alarm in find_alarms_in_rows(row[None, :])] for row in rows
    ]
    assert [watch.state.runs for watch in together] == lengths
    assert sum(len(watch.alarms) for watch in together) >= 6


def test_alarms_are_sorted_in_order_of_occurrence() -> None:
    rows = np.array([make_noisy_history(seed, 150, {60: 0.3, 90: 1.5}).values for seed in range(9)])
    assert sort_alarms(watch_from_earlier_state(list(np.log(rows)), DetectorSettings())) == find_alarms_in_rows(
        np.log(rows)
    )


def test_watch_progress_counts_only_new_runs() -> None:
    rows = [np.zeros(700), np.zeros(30)]
    progress: list[tuple[int, int]] = []
    half = watch_from_earlier_state([row[: row.size // 2] for row in rows], DetectorSettings())
    watch_from_earlier_state(
        rows, DetectorSettings(), dict(enumerate(half)), lambda done, total: progress.append((done, total))
    )
    assert progress[-1] == (365, 365)
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)
    assert find_alarms_in_histories([]) == []


def test_digest_depends_on_boundaries_between_parts() -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0])
    names = [
        compute_digest(a, b),
        compute_digest(np.array([1.0]), np.array([2.0, 3.0])),
        compute_digest(np.array([1.0, 2.0, 3.0])),
    ]
    names += [
        compute_digest("ab", "c"),
        compute_digest("a", "bc"),
        compute_digest(b, a),
        compute_digest(a, np.array([3.0000001])),
    ]
    assert len(set(names)) == len(names)
    assert compute_digest(a, b) == names[0]


def test_changed_source_file_changes_the_cache_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    files = ("stats/a.py", "trends/a.py", "findings/a.py", "store/history.py")
    for file, text in itertools.product(files, ("1", "2")):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
        hash_survey_code.cache_clear()
        names.append(hash_survey_code(tmp_path))
    assert len(set(names)) == len(names)
    hash_survey_code.cache_clear()
    before = make_selection_key("delivered", 1.0)
    assert make_selection_key("delivered", 1.0) == before != make_selection_key("delivered", 2.0)
    monkeypatch.setattr(survey_cache, "hash_survey_code", lambda: "another")
    assert make_selection_key("delivered", 1.0) != before
