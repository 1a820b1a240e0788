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
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import make_recorded_run

NOBODY = make_recorded_run(RecordReader())


def make_part_change(part_name: str, relative_rate: float | None, **more: Any) -> PartChange:
    """A part whose rate changed by the factor, with an interval of ±10 %."""
    verdict = "not known" if relative_rate is None else "slower" if relative_rate < 1 else "faster"
    bounds = (None, None) if relative_rate is None else (relative_rate / 1.1, relative_rate * 1.1)
    change = PartChange(part_name, verdict, "", relative_rate, *bounds, *[None] * 7)  # type: ignore[arg-type]
    return replace(change, **more)


def make_level_changes(*parts: PartChange, **more: Any) -> LevelChanges:
    return replace(LevelChanges("target", "write", parts, (), ()), **more)


def print_sentences(changes: LevelChanges) -> list[str]:
    return [replace_no_break_spaces(sentence) for sentence in changes.change_sentences]


def test_strongest_change_is_first_regardless_of_direction() -> None:
    same = make_part_change("same", 1.5, verdict="no change seen")
    parts = (
        make_part_change("half", 0.5),
        make_part_change("thrice", 3.0),
        same,
        make_part_change("fifth", 0.2),
        make_part_change("unknown", None),
    )
    assert [change.name for change in make_level_changes(*parts).changed_parts] == ["fifth", "thrice", "half"]
    assert [change.has_changed for change in parts] == [True, True, False, True, False]


COMPARISON_CLAUSE = "held against the other targets (99.5 % interval over all of them:"


@pytest.mark.parametrize(
    ("change_count", "expected_remainder"),
    [(3, []), (4, ["So does 1 target more."]), (6, ["So do 3 targets more."])],
)
def test_three_changes_are_described_and_more_counted(change_count: int, expected_remainder: list[str]) -> None:
    sentences = print_sentences(
        make_level_changes(*(make_part_change(f"t{index}", 1 / (2 + index)) for index in range(change_count)))
    )
    rate_share = f"{1 / (1 + change_count):.2f}"
    first = f"Target t{change_count - 1} answered writes at {rate_share} of its rate before, {COMPARISON_CLAUSE}"
    assert sentences[0].startswith(first)
    assert [sentence.split()[1] for sentence in sentences[:3]] == [f"t{change_count - 1 - index}" for index in range(3)]
    assert sentences[3:] == expected_remainder


@pytest.mark.parametrize(
    ("operation_kind", "level", "text"),
    [
        ("read", "target", f"Target t answered reads at 0.50 of its rate before, {COMPARISON_CLAUSE} 0.45 to 0.55)."),
        ("file", "target", f"Target t served its files at 0.50 of its rate before, {COMPARISON_CLAUSE} 0.45 to 0.55)."),
        ("sync", "target", f"Target t answered at 0.50 of its rate before, {COMPARISON_CLAUSE} 0.45 to 0.55)."),
        ("write", "OSS", "OSS t answered writes at 0.50 of its rate before, held against the other OSS (99.5 % interval"
         " over all of them: 0.45 to 0.55)."),
        ("write", "unit", "Unit t answered writes at 0.50 of its rate before, held against the other units (99.5 %"
         " interval over all of them: 0.45 to 0.55)."),
    ],
)  # fmt: skip
def test_change_sentence_has_operation_kind_and_level(operation_kind: str, level: str, text: str) -> None:
    assert print_sentences(make_level_changes(make_part_change("t", 0.5), level=level, kind=operation_kind)) == [text]


def test_names_are_cut_where_a_line_would_break() -> None:
    (cut_text,) = print_sentences(make_level_changes(make_part_change("n" * 61, 0.5), level="l" * 41))
    assert cut_text.startswith(f"L{'l' * 39}… {'n' * 60}… answered writes")
    (full_text,) = print_sentences(make_level_changes(make_part_change("n" * 60, 0.5), level="l" * 40))
    assert full_text.startswith(f"L{'l' * 39} {'n' * 60} answered writes")


def test_unchanged_targets_state_the_smallest_visible_change() -> None:
    calm = {"verdict": "no change seen"}
    narrow, wide = make_part_change("a", 1.0, **calm), make_part_change("b", 1.0, low=0.5, high=2.0, **calm)
    text = "none answered otherwise than before, held against the others (a change by less than a factor of"
    assert print_sentences(make_level_changes(narrow)) == [f"Of 1 target {text} 1.3 would not show)."]
    assert print_sentences(make_level_changes(narrow, wide)) == [f"Of 2 targets {text} 2.0 would not show)."]
    assert print_sentences(make_level_changes(narrow, wide, level="OSS")) == [f"Of 2 OSS {text} 2.0 would not show)."]
    assert print_sentences(make_level_changes(narrow, make_part_change("c", 0.5)))[0].startswith("Target c answered"), (
        "then only the change is told"
    )
    assert print_sentences(make_level_changes()) == []


def test_unknown_targets_have_reasons_and_missing_targets_names() -> None:
    silent = [make_part_change(f"s{index}", None, reason="nobody asked") for index in range(2)]
    changes = make_level_changes(
        *silent, make_part_change("few", None, reason="too few"), only_before=("a",), only_after=tuple("bcdef")
    )
    assert print_sentences(changes) == [
        "Not compared: 2 targets (nobody asked).",
        "Not compared: 1 target (too few).",
        "Only before served any: target a.",
        "Only after served any: target b, c, d and 2 more.",
    ]
    assert print_sentences(make_level_changes(only_after=("b", "c", "d"), level="SSU")) == [
        "Only after served any: SSU b, c, d."
    ]
    assert print_sentences(make_level_changes(only_before=("x" * 40, "y" * 41))) == [
        f"Only before served any: target {'x' * 40}, {'y' * 40}…."
    ]


def test_json_omits_unknown_members() -> None:
    changes = make_level_changes(
        make_part_change("a", 0.5, bytes_after=3.0), make_part_change("b", None, reason="too few"), only_before=("c",)
    )
    assert changes.to_json() == {
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


def make_even_answers(targets: int = 8, ns: int = 5_000_000) -> tuple[np.ndarray, np.ndarray]:
    return np.full((targets, 32), 20), np.full((targets, 32), 20 * ns)


def test_figures_of_both_sides_are_medians_of_the_runs() -> None:
    """Mean operation latency and bytes, for targets and for units."""
    ops, ns = make_even_answers()
    run = run_with(8, 2)
    before = [(run, phase_of(ops * by, ns * by * slow)) for by, slow in ((1, 1), (2, 4), (5, 3))]
    comparison = compare_phase_targets(before, [(run, phase_of(ops, 2 * ns))])
    each = 20 * 32 << 20
    for level_index, factor in ((0, 1), (1, 1), (2, 2)):  # targets, servers of one, units of two
        changes = comparison.levels[level_index]
        assert [change.verdict for change in changes.parts] == ["no change seen"] * (8 // factor)
        last_change = changes.parts[-1]
        assert (last_change.mean_ns_before, last_change.mean_ns_after) == pytest.approx((1.5e7, 1e7))
        assert (last_change.bytes_before, last_change.bytes_after) == (2.0 * factor * each, 1.0 * factor * each)
        assert last_change.rate == pytest.approx(1.5)
        assert (last_change.rate_low, last_change.rate_high) == (None, None)
        assert (last_change.relative_rate, last_change.low, last_change.high) == pytest.approx((1.0, 1.0, 1.0))


def test_target_rate_is_the_median_of_all_ratios_of_means() -> None:
    ops, ns = make_even_answers()
    before = [(NOBODY, phase_of(ops, ns * by)) for by in (1, 2)]
    (level_,) = compare_phase_targets(before, [(NOBODY, phase_of(ops, 4 * ns))]).levels
    assert level_.parts[0].rate == pytest.approx(math.sqrt(1 / 4 * 2 / 4))


def test_target_comparison_uses_runs_of_the_latest_kind() -> None:
    """The latest run determines the kind of operation; runs of another kind have no figures of that kind."""
    ops, ns = make_even_answers()
    later = ns.copy()
    later[3] *= 4
    reads, writes = phase_of(ops, ns, "read"), phase_of(ops, ns)
    (level,) = compare_phase_targets([(NOBODY, reads), (NOBODY, writes)], [(NOBODY, phase_of(ops, later))]).levels
    assert (level.kind, [change.name for change in level.changed_parts]) == ("write", ["OST0003"])
    assert level.parts[3].relative_rate == pytest.approx(0.25)
    assert level.parts[3].rate == pytest.approx(0.25)
    other = compare_phase_targets([(NOBODY, writes), (NOBODY, reads)], [(NOBODY, writes)])
    assert other.unknown == ("Targets cannot be compared: before and after are measured by reads and writes.",)
    assert other.levels == ()


def test_units_are_compared_at_the_levels_that_both_sides_have() -> None:
    ops, ns = make_even_answers()
    both = compare_phase_targets([(run_with(8, 2), phase_of(ops, ns))], [(NOBODY, phase_of(ops, ns))])
    assert [level.level for level in both.levels] == ["target"]


def test_unattributed_share_is_that_of_the_worst_run() -> None:
    ops, ns = make_even_answers()

    def partly(known_bytes: int) -> PhaseRecord:
        phase = phase_of(ops, ns)
        assert phase.targets is not None
        phase.targets = replace(phase.targets, bytes=100, known_bytes=known_bytes)
        return phase

    side = [(NOBODY, partly(known_bytes)) for known_bytes in (90, 40, 100)]
    comparison = compare_phase_targets(side, [(NOBODY, partly(100)), (NOBODY, PhaseRecord(PhaseBeginLine(phase="p")))])
    assert [replace_no_break_spaces(sentence) for sentence in comparison.unknown] == [
        "Of 1 of 2 runs after no figures of targets are known.",
        "Before, 60 % of the bytes belong to no known target.",
    ]


def make_phase_of_files(rate_by_target: dict[str, float], tasks_per_target: int = 5) -> PhaseRecord:
    """So many tasks with a file on each target, at the rate of that target."""
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    tasks = [(name, rate) for name, rate in rate_by_target.items() for _ in range(tasks_per_target)]
    rows = tuple((index, ((name, 1),)) for index, (name, _) in enumerate(tasks))
    phase.layout = LayoutLine(columns=("task", "targets"), rows=rows)
    task_rates = tuple((index, rate) for index, (_, rate) in enumerate(tasks))
    phase.tasks.append(TableLine(columns=("task", "bytes_per_s"), rows=task_rates))
    return phase


def test_a_target_that_took_no_part_on_a_slow_day_has_not_changed() -> None:
    """A run described by operations instead of files has no such sentence either."""
    fast, slow = dict.fromkeys("abcdef", 1e8), dict.fromkeys("abcde", 5e7)
    side = [
        (NOBODY, phase_of(*make_even_answers())),
        (NOBODY, make_phase_of_files(slow)),
        (NOBODY, make_phase_of_files(fast)),
    ]
    (level,) = compare_phase_targets(side, [(NOBODY, make_phase_of_files(fast))]).levels
    assert {change.name: change.relative_rate for change in level.parts} == pytest.approx(dict.fromkeys("abcdef", 1.0))


def test_files_are_held_against_the_middle_target_of_their_run() -> None:
    """A run twice as fast on every target is no change; a target with five files is judged, one with four is not."""
    before = dict.fromkeys("abcdef", 1e8)
    after = dict.fromkeys("abcdef", 2e8) | {"c": 5e7}
    (level,) = compare_phase_targets(
        [(NOBODY, make_phase_of_files(before, 5))], [(NOBODY, make_phase_of_files(after, 5))]
    ).levels
    assert [(change.name, round(change.relative_rate or 0.0, 9)) for change in level.changed_parts] == [("c", 0.25)]
    assert level.parts[0].bytes_before is None
    assert level.parts[0].rate is None
    (few,) = compare_phase_targets(
        [(NOBODY, make_phase_of_files(before, 5))], [(NOBODY, make_phase_of_files(after, 4))]
    ).levels
    assert {change.verdict for change in few.parts} == {"not known"}
    assert compare_phase_targets([(NOBODY, make_phase_of_files(before, 5))], []).levels == ()
    ops, ns = make_even_answers()
    mixed = compare_phase_targets([(NOBODY, make_phase_of_files(before, 5))], [(NOBODY, phase_of(ops, ns))])
    assert mixed.unknown == (
        "Targets cannot be compared: before and after are measured by whole files on single targets and writes.",
    )
