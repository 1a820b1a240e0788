# SPDX-License-Identifier: Apache-2.0
"""Two sides compared number by number: verdicts at their borders, and names that tell numbers apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sonde.model.errors import UserError
from sonde.model.series import SeriesKey
from sonde.stats.ratio import Ratio
from sonde.store.summary import read_summary
from sonde.trends.comparison import Compared, _verdict, compare, median, place_names
from sonde.trends.comparison_words import interval_words, on_both_sides, value_text, verdict_text
from sonde.trends.sides import Side

AddRun = Callable[..., Path]
KEY = SeriesKey("a", "lustre:fs1@/x", "hash", "fat", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
READ, WRITE = ("read", "read"), ("write", "write")


@pytest.mark.parametrize(
    ("value", "p", "known", "verdict"),
    [
        (0.5, 0.05, True, "slower"),
        (0.5, 0.0501, True, "no change seen"),
        (0.5, None, True, "too few runs"),
        (0.5, 0.001, False, "too few runs"),
        (0.9, 0.001, True, "slower"),
        (0.901, 0.001, True, "small change"),
        (1.0, 0.001, True, "small change"),
        (1.111, 0.001, True, "small change"),
        (1.112, 0.001, True, "faster"),  # the inverse of a tenth less
    ],
)
def test_a_change_counts_from_a_tenth_on_when_it_is_more_than_chance(
    value: float, p: float | None, known: bool, verdict: str
) -> None:
    size = Ratio(value, 0.9 * value if known else None, 1.1 * value if known else None, None, 9, 9, 0.95)
    assert _verdict(size, p, 0.1) == verdict


def test_what_counts_as_small_is_what_was_asked_for() -> None:
    size = Ratio(0.75, 0.7, 0.8, 0.001, 9, 9, 0.95)
    assert [_verdict(size, 0.01, smallest) for smallest in (0.2, 0.25, 0.26)] == ["slower", "slower", "small change"]


def side(add_run: AddRun, name: str, first_day: int, *rates: dict[tuple[str, str], float]) -> Side:
    return Side(name, tuple(read_summary(add_run(first_day + at, one)) for at, one in enumerate(rates)))


def test_every_number_of_both_sides_is_compared_and_those_of_one_are_named(add_run: AddRun) -> None:
    old = side(add_run, "old", 0, *({READ: 1e9 + at, WRITE: 4e8 + at, ("stat", "stat"): 1e6} for at in range(6)))
    new = side(add_run, "new", 10, *({READ: 5e8 + at, WRITE: 4e8 + at} for at in range(5)))
    found = compare(old, new)
    read, write = found.numbers
    assert (read.verdict, write.verdict) == ("slower", "no change seen")
    assert read.before == tuple(1e9 + at for at in range(6))
    assert read.after == tuple(5e8 + at for at in range(5))
    assert (read.runs_before, read.runs_after) == (tuple(one.id for one in old.runs), tuple(one.id for one in new.runs))
    assert (read.plan, read.place, read.differs_in) == ("probe", "lustre:fs1 /scratch", ())
    assert read.ratio.p == pytest.approx(2 / 462)
    assert read.p == pytest.approx(2 * 2 / 462), "two numbers are looked at"
    assert read.scatter_before is not None
    assert read.scatter_before.count == 6
    assert read.changed
    assert not write.changed
    assert found.changed == [read]
    ((name, alone),) = found.alone
    assert (name, alone.key.op) == ("old", "stat")
    assert found.on_both_sides == 0
    assert compare(new, old).alone[0][0] == "old"
    assert compare(new, old).numbers[0].verdict == "faster"


def test_runs_on_both_sides_are_counted_and_said(add_run: AddRun) -> None:
    one = side(add_run, "one", 0, {READ: 1e9}, {READ: 1e9}, {READ: 2e9})
    found = compare(one, Side("two", one.runs[1:]))
    assert found.on_both_sides == 2
    assert on_both_sides(found) == "2 runs on both sides: a run does not differ from itself."
    assert on_both_sides(compare(one, Side("two", one.runs[2:]))).startswith("1 run on both")
    assert on_both_sides(compare(one, side(add_run, "three", 9, {READ: 1e9}))) == ""
    (number,) = found.numbers
    assert (number.verdict, number.p, number.visible) == ("too few runs", None, None)
    assert number.scatter_after is not None
    assert compare(one, Side("two", one.runs[2:])).numbers[0].scatter_after is None, "one run does not scatter"


def test_sides_without_a_number_in_common_are_refused(add_run: AddRun) -> None:
    with pytest.raises(UserError) as said:
        compare(side(add_run, "old", 0, {READ: 1e9}), side(add_run, "new", 1, {WRITE: 1e9}))
    assert str(said.value) == (
        "old and new have no number in common: they ran different phases or operations; `sonde show` shows what each"
        " of them did."
    )


def test_a_place_is_the_storage_and_what_else_tells_two_numbers_of_one_test_apart() -> None:
    def names(*members: dict[str, str]) -> list[str]:
        return place_names([(one.pop("plan", "probe"), replace(KEY, **one)) for one in members])

    assert names({}) == ["lustre:fs1"]
    assert names({"file_system": ""}) == ["a"], "where nothing is known of the storage, the machine"
    assert names({}, {"system": "b"}) == ["lustre:fs1 on a", "lustre:fs1 on b"]
    assert names({}, {"system": "b", "file_system": ""}) == ["lustre:fs1 on a", "b"]
    # the same name of storage at two places; other tests keep the short one
    assert names({}, {"file_system": "lustre:fs1@/y"}, {"op": "write"}) == [
        "lustre:fs1, lustre:fs1@/x", "lustre:fs1, lustre:fs1@/y", "lustre:fs1"
    ]  # fmt: skip
    for member, other in (("node_class", "thin"), ("cache", "warm"), ("definition", "IOR"), ("plan_hash", "second")):
        own = getattr(KEY, member)
        assert names({}, {member: other}) == [f"lustre:fs1, {own}", f"lustre:fs1, {other}"]
    assert names({}, {"node_class": ""}) == ["lustre:fs1, fat", "lustre:fs1, unknown"]
    assert names({"cache": "warm"}, {}, {"node_class": "thin"}) == [
        "lustre:fs1, fat, warm", "lustre:fs1, fat, cold", "lustre:fs1, thin"
    ]  # fmt: skip
    for member in ("plan", "phase", "op"):
        assert names({"node_class": "thin"}, {member: "other"}) == ["lustre:fs1"] * 2, "another test"


def number(verdict: str, visible: float | None = None) -> Compared:
    size = Ratio(1.0, 0.9, 1.1, 0.5, 9, 9, 0.95, "so few runs")
    return Compared(KEY, "", (1.0,), (1.0,), size, visible, verdict, 0.5, (), "", None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "doubtful", "words", "style"),
    [
        (number("slower"), False, "slower", "bold red"),
        (number("faster"), True, "faster, doubtful", "green"),
        (number("small change"), False, "small change", ""),
        (number("no change seen"), False, "no change seen", ""),
        (number("no change seen", 0.123), False, "no change seen (a drop below 12 % would not show)", ""),
        (number("too few runs"), True, "so few runs, doubtful", "yellow"),
        (number("slower", 0.1), False, "slower", "bold red"),
    ],
)
def test_a_verdict_in_words_and_color(one: Compared, doubtful: bool, words: str, style: str) -> None:
    text = verdict_text(one, doubtful)
    assert (text.plain, text.style) == (words, style)


def test_an_interval_in_words_is_as_long_as_what_is_known() -> None:
    assert interval_words(None, 0.5, 0.6) == "-"
    assert interval_words(0.5, None, 0.6) == interval_words(0.5, 0.4, None) == "−50 %"
    assert interval_words(1.5, 1.4, 1.62) == "+50 % [+40, +62]"
    assert value_text(2000.0, "op/s") == "2,000 op/s"
    assert median((4.0, 1.0, 9.0, 2.0)) == 3.0


def test_plans_that_differ_are_told_by_their_members_and_by_their_hash_where_these_are_not_known(
    add_run: AddRun,
) -> None:
    def with_plan(day: int, depth: int | None) -> Side:
        document = {"data": {"io": {"depth": depth}}} if depth else None
        return Side(str(day), tuple(read_summary(add_run(day + at, {READ: 1e9}, document=document)) for at in range(2)))

    one, two, unknown = with_plan(0, 1), with_plan(10, 2), with_plan(20, None)
    (number,) = compare(one, two).numbers
    assert number.differs_in == (("data.io.depth", "1", "2"),)
    (number,) = compare(one, unknown).numbers
    assert [(name, old != new) for name, old, new in number.differs_in] == [("plan hash", True)]
    (number,) = compare(one, with_plan(30, 1)).numbers
    assert number.differs_in == ()
