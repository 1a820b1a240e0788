# SPDX-License-Identifier: Apache-2.0
"""Changes of targets and units in words, in order and in JSON, and the figures of both sides beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from target_load import phase_of, run_with

from sonde.findings.target_changes import LevelChanges, PartChange, compare_phase_targets
from sonde.model.lines import LayoutLine, PhaseBeginLine, TableLine
from sonde.model.quantities import to_plain_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import to_recorded_run

NOBODY = to_recorded_run(RecordReader())


def part(name: str, own: float | None, **more: Any) -> PartChange:
    """One that changed by the factor, with an interval of a tenth on either side."""
    verdict = "not known" if own is None else "slower" if own < 1 else "faster"
    bounds = (None, None) if own is None else (own / 1.1, own * 1.1)
    made = PartChange(name, verdict, "", own, *bounds, *[None] * 7)  # type: ignore[arg-type]
    return replace(made, **more)


def level(*parts: PartChange, **more: Any) -> LevelChanges:
    return replace(LevelChanges("target", "write", parts, (), ()), **more)


def said(changes: LevelChanges) -> list[str]:
    return [to_plain_spaces(words) for words in changes.sentences]


def test_the_strongest_change_comes_first_whichever_way_it_went() -> None:
    same = part("same", 1.5, verdict="no change seen")
    parts = (part("half", 0.5), part("thrice", 3.0), same, part("fifth", 0.2), part("unknown", None))
    assert [one.name for one in level(*parts).differing] == ["fifth", "thrice", "half"]
    assert [one.differs for one in parts] == [True, True, False, True, False]


HELD = "held against the other targets (99.5 % interval over all of them:"


@pytest.mark.parametrize(
    ("count", "more"),
    [(3, []), (4, ["So does 1 target more."]), (6, ["So do 3 targets more."])],
)
def test_three_changes_are_told_and_the_others_counted(count: int, more: list[str]) -> None:
    found = said(level(*(part(f"t{at}", 1 / (2 + at)) for at in range(count))))
    first = f"Target t{count - 1} answered writes at {1 / (1 + count):.2f} of its rate before, {HELD}"
    assert found[0].startswith(first)
    assert [words.split()[1] for words in found[:3]] == [f"t{count - 1 - at}" for at in range(3)]
    assert found[3:] == more


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("read", "target", f"Target t answered reads at 0.50 of its rate before, {HELD} 0.45 to 0.55)."),
        ("file", "target", f"Target t served its files at 0.50 of its rate before, {HELD} 0.45 to 0.55)."),
        ("sync", "target", f"Target t answered at 0.50 of its rate before, {HELD} 0.45 to 0.55)."),
        ("write", "OSS", "OSS t answered writes at 0.50 of its rate before, held against the other OSS (99.5 % interval"
         " over all of them: 0.45 to 0.55)."),
        ("write", "unit", "Unit t answered writes at 0.50 of its rate before, held against the other units (99.5 %"
         " interval over all of them: 0.45 to 0.55)."),
    ],
)  # fmt: skip
def test_a_change_is_told_by_what_was_served_and_at_which_level(kind: str, name: str, words: str) -> None:
    assert said(level(part("t", 0.5), level=name, kind=kind)) == [words]


def test_names_are_cut_where_a_line_would_break() -> None:
    (words,) = said(level(part("n" * 61, 0.5), level="l" * 41))
    assert words.startswith(f"L{'l' * 39}… {'n' * 60}… answered writes")
    (whole,) = said(level(part("n" * 60, 0.5), level="l" * 40))
    assert whole.startswith(f"L{'l' * 39} {'n' * 60} answered writes")


def test_where_none_changed_the_widest_interval_says_what_could_not_have_been_seen() -> None:
    calm = {"verdict": "no change seen"}
    narrow, wide = part("a", 1.0, **calm), part("b", 1.0, low=0.5, high=2.0, **calm)
    words = "none answered otherwise than before, held against the others (a change by less than a factor of"
    assert said(level(narrow)) == [f"Of 1 target {words} 1.3 would not show)."]
    assert said(level(narrow, wide)) == [f"Of 2 targets {words} 2.0 would not show)."]
    assert said(level(narrow, wide, level="OSS")) == [f"Of 2 OSS {words} 2.0 would not show)."]
    assert said(level(narrow, part("c", 0.5)))[0].startswith("Target c answered"), "then only the change is told"
    assert said(level()) == []


def test_what_is_not_known_is_told_by_its_reason_and_what_one_side_lacks_by_its_names() -> None:
    silent = [part(f"s{at}", None, reason="nobody asked") for at in range(2)]
    changes = level(*silent, part("few", None, reason="too few"), only_before=("a",), only_after=tuple("bcdef"))
    assert said(changes) == [
        "Of 2 targets it is not known: nobody asked.",
        "Of 1 target it is not known: too few.",
        "Only before served any: target a.",
        "Only after served any: target b, c, d and 2 more.",
    ]
    assert said(level(only_after=("b", "c", "d"), level="SSU")) == ["Only after served any: SSU b, c, d."]
    assert said(level(only_before=("x" * 40, "y" * 41))) == [f"Only before served any: target {'x' * 40}, {'y' * 40}…."]


def test_the_machine_form_leaves_out_what_is_not_known() -> None:
    changes = level(part("a", 0.5, bytes_after=3.0), part("b", None, reason="too few"), only_before=("c",))
    assert changes.as_json() == {
        "level": "target",
        "kind": "write",
        "parts": [
            {
                "name": "a",
                "verdict": "slower",
                "relative_rate": 0.5,
                "low": 0.5 / 1.1,
                "high": 0.5 * 1.1,
                "bytes_after": 3.0,
            },
            {"name": "b", "verdict": "not known", "reason": "too few"},
        ],
        "only_before": ["c"],
        "only_after": [],
    }


def even(targets: int = 8, ns: int = 5_000_000) -> tuple[np.ndarray, np.ndarray]:
    return np.full((targets, 32), 20), np.full((targets, 32), 20 * ns)


def test_figures_of_both_sides_are_medians_of_the_runs() -> None:
    """Of targets and of units: the mean latency of an operation, and the bytes."""
    ops, ns = even()
    run = run_with(8, 2)
    before = [(run, phase_of(ops * by, ns * by * slow)) for by, slow in ((1, 1), (2, 4), (5, 3))]
    found = compare_phase_targets(before, [(run, phase_of(ops, 2 * ns))])
    each = 20 * 32 << 20
    for at, many in ((0, 1), (1, 1), (2, 2)):  # targets, servers of one, units of two
        changes = found.levels[at]
        assert [one.verdict for one in changes.parts] == ["no change seen"] * (8 // many)
        one = changes.parts[-1]
        assert (one.mean_ns_before, one.mean_ns_after) == pytest.approx((1.5e7, 1e7))
        assert (one.bytes_before, one.bytes_after) == (2.0 * many * each, 1.0 * many * each)
        assert one.rate == pytest.approx(1.5)
        assert (one.rate_low, one.rate_high) == (None, None)
        assert (one.relative_rate, one.low, one.high) == pytest.approx((1.0, 1.0, 1.0))


def test_the_rate_is_the_middle_of_all_ratios_of_means_after_and_before() -> None:
    ops, ns = even()
    before = [(NOBODY, phase_of(ops, ns * by)) for by in (1, 2)]
    (level_,) = compare_phase_targets(before, [(NOBODY, phase_of(ops, 4 * ns))]).levels
    assert level_.parts[0].rate == pytest.approx(math.sqrt(1 / 4 * 2 / 4))


def test_what_one_run_of_a_side_does_not_know_the_others_tell() -> None:
    """Of the latest run is the kind; runs of another kind have no figures of it."""
    ops, ns = even()
    later = ns.copy()
    later[3] *= 4
    reads, writes = phase_of(ops, ns, "read"), phase_of(ops, ns)
    (found,) = compare_phase_targets([(NOBODY, reads), (NOBODY, writes)], [(NOBODY, phase_of(ops, later))]).levels
    assert (found.kind, [one.name for one in found.differing]) == ("write", ["OST0003"])
    assert found.parts[3].relative_rate == pytest.approx(0.25)
    assert found.parts[3].rate == pytest.approx(0.25)
    other = compare_phase_targets([(NOBODY, writes), (NOBODY, reads)], [(NOBODY, writes)])
    assert other.unknown == ("Targets cannot be compared: before and after are measured by reads and writes.",)
    assert other.levels == ()


def test_units_are_compared_at_the_levels_that_both_sides_have() -> None:
    ops, ns = even()
    both = compare_phase_targets([(run_with(8, 2), phase_of(ops, ns))], [(NOBODY, phase_of(ops, ns))])
    assert [one.level for one in both.levels] == ["target"]


def test_what_belongs_to_no_target_is_told_of_the_run_in_which_that_is_most() -> None:
    ops, ns = even()

    def partly(known: int) -> PhaseRecord:
        phase = phase_of(ops, ns)
        assert phase.targets is not None
        phase.targets = replace(phase.targets, bytes=100, known_bytes=known)
        return phase

    side = [(NOBODY, partly(known)) for known in (90, 40, 100)]
    found = compare_phase_targets(side, [(NOBODY, partly(100)), (NOBODY, PhaseRecord(PhaseBeginLine(phase="p")))])
    assert [to_plain_spaces(words) for words in found.unknown] == [
        "Of 1 of 2 runs after no figures of targets are known.",
        "Before, 60 % of the bytes belong to no known target.",
    ]


def files(rates: dict[str, float], each: int = 5) -> PhaseRecord:
    """So many tasks with a file on each target, at the rate of that target."""
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    tasks = [(name, rate) for name, rate in rates.items() for _ in range(each)]
    rows = tuple((at, ((name, 1),)) for at, (name, _) in enumerate(tasks))
    phase.layout = LayoutLine(columns=("task", "targets"), rows=rows)
    told = tuple((at, rate) for at, (_, rate) in enumerate(tasks))
    phase.tasks.append(TableLine(columns=("task", "bytes_per_s"), rows=told))
    return phase


def test_a_target_that_took_no_part_on_a_slow_day_has_not_changed() -> None:
    """Nor has one whose run was told by operations instead of files."""
    fast, slow = dict.fromkeys("abcdef", 1e8), dict.fromkeys("abcde", 5e7)
    side = [(NOBODY, phase_of(*even())), (NOBODY, files(slow)), (NOBODY, files(fast))]
    (found,) = compare_phase_targets(side, [(NOBODY, files(fast))]).levels
    assert {one.name: one.relative_rate for one in found.parts} == pytest.approx(dict.fromkeys("abcdef", 1.0))


def test_files_are_held_against_the_middle_target_of_their_run() -> None:
    """A run twice as fast on every target is no change; a target with five files is judged, one with four is not."""
    before = dict.fromkeys("abcdef", 1e8)
    after = dict.fromkeys("abcdef", 2e8) | {"c": 5e7}
    (found,) = compare_phase_targets([(NOBODY, files(before, 5))], [(NOBODY, files(after, 5))]).levels
    assert [(one.name, round(one.relative_rate or 0.0, 9)) for one in found.differing] == [("c", 0.25)]
    assert found.parts[0].bytes_before is None
    assert found.parts[0].rate is None
    (few,) = compare_phase_targets([(NOBODY, files(before, 5))], [(NOBODY, files(after, 4))]).levels
    assert {one.verdict for one in few.parts} == {"not known"}
    assert compare_phase_targets([(NOBODY, files(before, 5))], []).levels == ()
    ops, ns = even()
    mixed = compare_phase_targets([(NOBODY, files(before, 5))], [(NOBODY, phase_of(ops, ns))])
    assert mixed.unknown == (
        "Targets cannot be compared: before and after are measured by whole files on single targets and writes.",
    )
