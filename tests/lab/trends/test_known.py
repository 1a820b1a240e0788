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

from sonde.trends import budget, remembered
from sonde.trends.known import Known, digest
from sonde.trends.lanes import Lanes, Settings
from sonde.trends.remembered import Memory, of_question, rules
from sonde.trends.series import Series
from sonde.trends.survey import Survey, survey
from sonde.trends.watch import go_on, in_order, watch, watch_rows

DAY = 86400.0
Run = tuple[float, float]  # time, rate


@pytest.fixture(autouse=True)
def small_years(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are learned on few simulated runs: how good they are is not asked here."""
    monkeypatch.setattr(budget, "_SIMULATED_RUNS", 600)
    monkeypatch.setattr(budget, "_SIMULATED_YEAR", 60)


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
        """What happens to an archive between two questions."""
        what = self.chance.choice(["grow", "grow", "grow", "nothing", "one", "remove", "between", "history"])
        names = list(self.histories)
        one = self.histories[self.chance.choice(names)]
        if what == "grow":
            for name in names:
                for _ in range(self.chance.choice([0, 1, 1, 12])):
                    self.append(name)
        elif what == "one":
            self.append(self.chance.choice(names))
        elif what == "remove" and one:
            begin = self.chance.choice([0, len(one) // 2, len(one) - 1])
            del one[begin : begin + self.chance.choice([1, 7])]
        elif what == "between" and one:
            time, rate = self.chance.choice(one)
            one[:] = sorted([*one, (time + 1.0, 0.9 * rate)])
        elif what == "history":
            self.new_history()
            if len(names) > 2:
                del self.histories[names[0]]

    def series(self) -> list[Series]:
        return [
            Series({"experiment": name, "file_system": name[-1]}, *np.array(runs, dtype=float).reshape(-1, 2).T)
            for name, runs in self.histories.items()
        ]


def said(found: Survey) -> str:
    """All of it, to the last digit."""
    return json.dumps(remembered._document(found))


def damage(path: Path, chance: random.Random, older: bytes) -> None:
    """What disks, copies and other programs do to a file."""
    content = path.read_bytes()
    at = chance.randrange(len(content))
    path.write_bytes(
        chance.choice(
            [
                content[:at],
                content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :],
                older,
                b"",
                b"0\n{}",
                content * 2,
            ]
        )
    )


@pytest.mark.parametrize("seed", range(6))
def test_whatever_came_or_went_the_answer_is_that_from_nothing(tmp_path: Path, seed: int) -> None:
    site, memory = Site(seed), Memory(tmp_path / "trend")
    file, older = tmp_path / "trend" / "q.kept", b""
    budgets, smallest = [1.0, 1.0, 1.0, 0.2], [0.1, 0.1, 0.1, 0.4]
    for _ in range(7):
        options = (site.chance.choice(budgets), site.chance.choice(smallest))
        known = memory.recall_known("q")
        found = survey(site.series(), *options, known=known)
        memory.keep_known("q", known, finished=site.chance.random() < 0.8)
        assert said(found) == said(survey(site.series(), *options))
        if site.chance.random() < 0.2:
            damage(file, site.chance, older)
        older = file.read_bytes()
        site.change()


def noisy(seed: int, runs: int, steps: dict[int, float]) -> Series:
    values = np.random.default_rng(seed).normal(0, 0.04, runs)
    for run, factor in steps.items():
        values[run:] += np.log(factor)
    return Series({"experiment": f"e{seed}"}, DAY * np.arange(float(runs)), 1e9 * np.exp(values))


def until(one: Series, runs: int) -> Series:
    return Series(one.labels, one.times[:runs], one.values[:runs])


def whole() -> list[Series]:
    """A history of 203 days. It fell on day 100, and again seven runs before its end; day 203 is a Tuesday, so settings
    are the same on both of the last days."""
    return [noisy(5, 203, {100: 0.5, 196: 0.4})]


@cache
def _asked(runs: int) -> str:
    known = Known()
    survey([until(whole()[0], runs)], known=known)
    return json.dumps(known.document())


def asked_at(runs: int) -> dict[str, Any]:
    """What is known when the history was so long, to be changed as one likes."""
    document: dict[str, Any] = json.loads(_asked(runs))
    return document


@cache
def said_of_whole() -> str:
    """What a survey from nothing says of the history."""
    return said(survey(whole()))


def test_of_a_history_that_grew_only_the_new_run_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known(asked_at(202))
    pushed = 0
    push = Lanes.push

    def counted(self: Lanes, values: Any) -> Any:
        nonlocal pushed
        pushed += 1
        return push(self, values)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("this was known already")

    monkeypatch.setattr(Lanes, "push", counted)
    for name in ("calibrate", "segments", "simulated_visible"):
        monkeypatch.setattr(f"sonde.trends.survey.{name}", never)
    survey(whole(), known=known)
    assert pushed == 1


def mutated(change: Callable[[dict[str, Any]], None], kind: str) -> str:
    """What is said when what is known of that kind is wrong."""
    document = asked_at(202)
    for question, answer in document.items():
        if question.startswith(kind):
            change(answer)
    known = Known(document)
    return said(survey(whole(), known=known)) + json.dumps(known.document())


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("watch", lambda one: one["alarms"].pop()),
        ("watch", lambda one: one.update(filled=one["filled"] - 2)),
        ("watch", lambda one: one.update(held=[40.0, 0.01])),
        ("noise", lambda one: one.__setitem__(1, 2 * one[1])),
        ("settings", lambda one: one.update(per_100_runs=9.0)),
        ("ratio", lambda one: one.__setitem__(0, 0.9 * one[0])),
    ],
)
def test_what_is_known_is_used_so_that_a_wrong_state_would_be_seen(kind: str, change: Callable[[Any], None]) -> None:
    right = mutated(lambda one: None, kind)
    assert right == said_of_whole() + json.dumps(asked_at(203))
    assert mutated(change, kind) != right


@pytest.mark.parametrize("rubbish", [None, 3, "x", [], [1], {}, {"runs": 3}, [[[0, 1]], 0.1, None]])
def test_answers_of_another_form_are_found_out_again(rubbish: Any) -> None:
    document = dict.fromkeys(asked_at(203), rubbish)
    assert said(survey(whole(), known=Known(document))) == said_of_whole()


@pytest.mark.parametrize("place", [{"runs": 500}, {"filled": -1}, {"filled": 300}, {"filled": 81}])
def test_a_place_where_no_watch_can_stand_is_not_gone_on_from(place: dict[str, int]) -> None:
    document = asked_at(203)
    for question in document:
        if question.startswith("watch"):
            document[question] |= place
    assert said(survey(whole(), known=Known(document))) == said_of_whole()


@pytest.mark.parametrize("smallest", [0.1, 0.7])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_other_runs_and_another_size_are_other_questions(smallest: float, factor: float) -> None:
    """The runs are as many and at the same times, with noise that is `factor` times as broad."""
    one = whole()[0]
    scattered = [Series(one.labels, one.times, 1e9 * (one.values / 1e9) ** factor)]
    known = Known(asked_at(203))
    assert said(survey(scattered, smallest=smallest, known=known)) == said(survey(scattered, smallest=smallest))


def test_another_budget_is_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_SIMULATED_RUNS", 8000)
    monkeypatch.setattr(budget, "_SIMULATED_YEAR", 200)
    known = Known()
    generous = survey(whole(), 40.0, 0.01, known=known).calibration.settings
    strict = survey(whole(), 0.5, 0.01, known=Known(known.document())).calibration.settings
    assert generous.arl0 < strict.arl0
    assert strict == survey(whole(), 0.5, 0.01).calibration.settings


def test_only_what_the_last_survey_asked_is_kept() -> None:
    known = Known(asked_at(203))
    other = [noisy(6, 90, {40: 0.5})]
    survey(other, known=known)
    fresh = Known()
    survey(other, known=fresh)
    assert known.document() == fresh.document()
    assert known.document(finished=False) == asked_at(203) | fresh.document(), "unless it did not come to its end"


def test_series_of_all_lengths_are_watched_as_each_alone() -> None:
    number = np.random.default_rng(3)
    lengths = [0, 1, 19, 20, 21, 80, 81, 200, 600, 1100]
    rows = [np.round(number.normal(0, 0.05, size), 2) for size in lengths]
    for row in rows:
        row[row.size // 2 :] -= 0.4
    together = go_on(rows, Settings())
    alone = [go_on([row], Settings())[0] for row in rows]
    assert [one.place for one in together] == [one.place for one in alone]
    assert [[alarm.noticed for alarm in one.alarms] for one in together] == [
        [alarm.noticed for alarm in watch_rows(row[None, :])] for row in rows
    ]
    assert [one.place.runs for one in together] == lengths
    assert sum(len(one.alarms) for one in together) >= 6


def test_alarms_come_in_the_order_in_which_they_are_raised() -> None:
    rows = np.array([noisy(seed, 150, {60: 0.3, 90: 1.5}).values for seed in range(9)])
    assert in_order(go_on(list(np.log(rows)), Settings())) == watch_rows(np.log(rows))


def test_steps_of_a_watch_tell_all_runs_that_are_new() -> None:
    rows = [np.zeros(700), np.zeros(30)]
    told: list[tuple[int, int]] = []
    half = go_on([row[: row.size // 2] for row in rows], Settings())
    go_on(rows, Settings(), dict(enumerate(half)), lambda done, total: told.append((done, total)))
    assert told[-1] == (365, 365)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert watch([]) == []


def test_a_digest_tells_where_one_part_ends() -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0])
    names = [digest(a, b), digest(np.array([1.0]), np.array([2.0, 3.0])), digest(np.array([1.0, 2.0, 3.0]))]
    names += [digest("ab", "c"), digest("a", "bc"), digest(b, a), digest(a, np.array([3.0000001]))]
    assert len(set(names)) == len(names)
    assert digest(a, b) == names[0]


def test_another_rule_has_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    files = ("stats/a.py", "trends/a.py", "findings/a.py", "store/history.py")
    for file, text in itertools.product(files, ("1", "2")):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
        rules.cache_clear()
        names.append(rules(tmp_path))
    assert len(set(names)) == len(names)
    rules.cache_clear()
    before = of_question("delivered", 1.0)
    assert of_question("delivered", 1.0) == before != of_question("delivered", 2.0)
    monkeypatch.setattr(remembered, "rules", lambda: "another")
    assert of_question("delivered", 1.0) != before
