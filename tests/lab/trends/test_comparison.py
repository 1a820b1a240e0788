# SPDX-License-Identifier: Apache-2.0
"""Two sides compared number by number: verdicts at their borders, and names that tell numbers apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sonde.model.errors import UserError
from sonde.model.history_key import HistoryKey
from sonde.stats.ratio import RateRatio
from sonde.store.summary import read_summary
from sonde.trends.comparison import NumberComparison, _decide_change_verdict, compare_sides, make_location_names
from sonde.trends.comparison_text import (
    describe_shared_runs,
    format_change_verdict,
    format_history_rate,
    format_ratio_interval,
)
from sonde.trends.sides import ComparedSide

AddRun = Callable[..., Path]
KEY = HistoryKey("a", "lustre:fs1@/x", "hash", "fat", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")
READ, WRITE = ("read", "read"), ("write", "write")


@pytest.mark.parametrize(
    ("value", "p", "is_known", "verdict"),
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
def test_change_verdict_needs_significance_and_ten_percent(
    value: float, p: float | None, is_known: bool, verdict: str
) -> None:
    size = RateRatio(value, 0.9 * value if is_known else None, 1.1 * value if is_known else None, None, 9, 9, 0.95)
    assert _decide_change_verdict(size, p, 0.1) == verdict


def test_smallest_change_option_sets_the_small_change_verdict() -> None:
    size = RateRatio(0.75, 0.7, 0.8, 0.001, 9, 9, 0.95)
    assert [_decide_change_verdict(size, 0.01, smallest) for smallest in (0.2, 0.25, 0.26)] == [
        "slower",
        "slower",
        "small change",
    ]


def make_side(add_run: AddRun, name: str, first_day: int, *rates: dict[tuple[str, str], float]) -> ComparedSide:
    return ComparedSide(name, tuple(read_summary(add_run(first_day + day, rates)) for day, rates in enumerate(rates)))


def test_common_numbers_are_compared_and_unmatched_reported(add_run: AddRun) -> None:
    old = make_side(
        add_run, "old", 0, *({READ: 1e9 + step, WRITE: 4e8 + step, ("stat", "stat"): 1e6} for step in range(6))
    )
    new = make_side(add_run, "new", 10, *({READ: 5e8 + step, WRITE: 4e8 + step} for step in range(5)))
    comparison = compare_sides(old, new)
    read, write = comparison.numbers
    assert (read.verdict, write.verdict) == ("slower", "no change seen")
    assert read.before == tuple(1e9 + step for step in range(6))
    assert read.after == tuple(5e8 + step for step in range(5))
    assert (read.runs_before, read.runs_after) == (tuple(run.id for run in old.runs), tuple(run.id for run in new.runs))
    assert (read.plan, read.location, read.differs_in) == ("probe", "lustre:fs1 /scratch", ())
    assert read.ratio.p == pytest.approx(2 / 462)
    assert read.p == pytest.approx(2 * 2 / 462), "two numbers are looked at"
    assert read.scatter_before is not None
    assert read.scatter_before.count == 6
    assert read.has_changed
    assert not write.has_changed
    assert comparison.changed_numbers == [read]
    ((name, alone),) = comparison.unpaired
    assert (name, alone.key.op) == ("old", "stat")
    assert comparison.shared_run_count == 0
    assert compare_sides(new, old).unpaired[0][0] == "old"
    assert compare_sides(new, old).numbers[0].verdict == "faster"


def test_shared_runs_of_both_sides_are_counted_and_reported(add_run: AddRun) -> None:
    first_side = make_side(add_run, "one", 0, {READ: 1e9}, {READ: 1e9}, {READ: 2e9})
    comparison = compare_sides(first_side, ComparedSide("two", first_side.runs[1:]))
    assert comparison.shared_run_count == 2
    assert describe_shared_runs(comparison) == "2 runs on both sides: a run does not differ from itself."
    assert describe_shared_runs(compare_sides(first_side, ComparedSide("two", first_side.runs[2:]))).startswith(
        "1 run on both"
    )
    assert describe_shared_runs(compare_sides(first_side, make_side(add_run, "three", 9, {READ: 1e9}))) == ""
    (number,) = comparison.numbers
    assert (number.verdict, number.p, number.visible) == ("too few runs", None, None)
    assert number.scatter_after is not None
    assert compare_sides(first_side, ComparedSide("two", first_side.runs[2:])).numbers[0].scatter_after is None, (
        "one run does not scatter"
    )


def test_sides_without_a_number_in_common_are_refused(add_run: AddRun) -> None:
    with pytest.raises(UserError) as error:
        compare_sides(make_side(add_run, "old", 0, {READ: 1e9}), make_side(add_run, "new", 1, {WRITE: 1e9}))
    assert str(error.value) == (
        "old and new have no number in common: they ran different phases or operations; `sonde show` shows what each"
        " of them did."
    )


def test_location_name_is_the_storage_plus_distinguishing_labels() -> None:
    def names(*members: dict[str, str]) -> list[str]:
        return make_location_names([(member.pop("plan", "probe"), replace(KEY, **member)) for member in members])

    assert names({}) == ["lustre:fs1"]
    assert names({"file_system": ""}) == ["a"], "where nothing is known of the storage, the machine"
    assert names({}, {"system": "b"}) == ["lustre:fs1 on a", "lustre:fs1 on b"]
    assert names({}, {"system": "b", "file_system": ""}) == ["lustre:fs1 on a", "b"]
    # the same name of storage at two places; other tests keep the short one
    assert names({}, {"file_system": "lustre:fs1@/y"}, {"op": "write"}) == [
        "lustre:fs1, lustre:fs1@/x", "lustre:fs1, lustre:fs1@/y", "lustre:fs1"
    ]  # fmt: skip
    for member, other in (("node_class", "thin"), ("cache", "warm"), ("definition", "IOR"), ("plan_hash", "second")):
        value = getattr(KEY, member)
        assert names({}, {member: other}) == [f"lustre:fs1, {value}", f"lustre:fs1, {other}"]
    assert names({}, {"node_class": ""}) == ["lustre:fs1, fat", "lustre:fs1, unknown"]
    assert names({"cache": "warm"}, {}, {"node_class": "thin"}) == [
        "lustre:fs1, fat, warm", "lustre:fs1, fat, cold", "lustre:fs1, thin"
    ]  # fmt: skip
    for member in ("plan", "phase", "op"):
        assert names({"node_class": "thin"}, {member: "other"}) == ["lustre:fs1"] * 2, "another test"


def number(verdict: str, visible: float | None = None) -> NumberComparison:
    size = RateRatio(1.0, 0.9, 1.1, 0.5, 9, 9, 0.95, "so few runs")
    return NumberComparison(KEY, "", (1.0,), (1.0,), size, visible, verdict, 0.5, (), "", None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number_comparison", "doubtful", "expected_text", "style"),
    [
        (number("slower"), False, "slower", "bold red"),
        (number("faster"), True, "faster, doubtful", "green"),
        (number("small change"), False, "small change", ""),
        (number("no change seen"), False, "no change seen", ""),
        (number("no change seen", 0.123), False, "no change seen (smallest detectable drop: 12 %)", ""),
        (number("too few runs"), True, "too few runs, doubtful", "yellow"),
        (number("slower", 0.1), False, "slower", "bold red"),
    ],
)
def test_verdict_text_and_color(
    number_comparison: NumberComparison, doubtful: bool, expected_text: str, style: str
) -> None:
    text = format_change_verdict(number_comparison, doubtful)
    assert (text.plain, text.style) == (expected_text, style)


def test_ratio_interval_text_omits_missing_limits() -> None:
    assert format_ratio_interval(None, 0.5, 0.6) == "-"
    assert format_ratio_interval(0.5, None, 0.6) == format_ratio_interval(0.5, 0.4, None) == "−50 %"
    assert format_ratio_interval(1.5, 1.4, 1.62) == "+50 % [+40, +62]"
    assert format_history_rate(2000.0, "op/s") == "2,000 op/s"


def test_plan_differences_show_members_or_hashes(
    add_run: AddRun,
) -> None:
    def with_plan(day: int, depth: int | None) -> ComparedSide:
        document = {"data": {"io": {"depth": depth}}} if depth else None
        return ComparedSide(
            str(day), tuple(read_summary(add_run(day + step, {READ: 1e9}, document=document)) for step in range(2))
        )

    first_side, two, unknown = with_plan(0, 1), with_plan(10, 2), with_plan(20, None)
    (number,) = compare_sides(first_side, two).numbers
    assert number.differs_in == (("data.io.depth", "1", "2"),)
    (number,) = compare_sides(first_side, unknown).numbers
    assert [(name, old != new) for name, old, new in number.differs_in] == [("plan hash", True)]
    (number,) = compare_sides(first_side, with_plan(30, 1)).numbers
    assert number.differs_in == ()


def test_displayed_levels_match_the_displayed_ratio(add_run: AddRun) -> None:
    """The medians of these runs fall from 8.0 to 7.0 although the median of all ratios rises."""
    old = make_side(add_run, "old", 0, *({READ: rate} for rate in (1e9, 8e9, 8e9, 1.5e9, 8.5e9)))
    new = make_side(add_run, "new", 10, *({READ: rate} for rate in (2e9, 2.2e9, 7e9, 12e9, 13e9)))
    (read,) = compare_sides(old, new).numbers
    assert read.ratio.value > 1
    assert read.levels_before_and_after[1] / read.levels_before_and_after[0] == pytest.approx(read.ratio.value)


def test_numbers_have_the_order_of_runs_and_phases(add_run: AddRun) -> None:
    sides = []
    for day, name in enumerate(("old", "new")):
        first = add_run(day, {("z", "write"): 1e9, ("a", "read"): 1e9}, plan="p")
        second = add_run(day + 0.1, {("m", "write"): 1e9}, plan="o")
        sides.append(ComparedSide(name, (read_summary(first), read_summary(second))))
    assert [number.key.phase for number in compare_sides(sides[0], sides[1]).numbers] == ["z", "a", "m"]
