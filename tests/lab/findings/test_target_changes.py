# SPDX-License-Identifier: Apache-2.0
"""Targets on two sides: the one that changed is named with its interval, and nobody where none did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from target_load import drawn_answers, phase_of, run_with

from sonde.findings.target_changes import LevelChanges, PhaseChanges, compare_phase_targets
from sonde.findings.target_operations import find_slow_targets_by_latency
from sonde.model.lines import LayoutLine, PhaseBeginLine, TableLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run

NOBODY = make_recorded_run(RecordReader())


def make_phase_changes(
    phases_before: Sequence[PhaseRecord], phases_after: Sequence[PhaseRecord], run: RecordedRun = NOBODY
) -> PhaseChanges:
    return compare_phase_targets([(run, phase) for phase in phases_before], [(run, phase) for phase in phases_after])


def make_even_answers(targets: int = 8, slices: int = 32, ns: int = 5_000_000) -> tuple[np.ndarray, np.ndarray]:
    """Twenty operations a slice on each target, all alike."""
    return np.full((targets, slices), 20), np.full((targets, slices), 20 * ns)


def print_sentences(level: LevelChanges) -> list[str]:
    return [replace_no_break_spaces(sentence) for sentence in level.change_sentences]


def list_differing_parts(level: LevelChanges) -> list[tuple[str, str, float]]:
    """Name, verdict and what is left of its rate, to three digits."""
    return [(change.name, change.verdict, round(change.relative_rate or 0.0, 3)) for change in level.changed_parts]


def get_target_changes(phase_changes: PhaseChanges) -> LevelChanges:
    assert phase_changes.levels[0].level == "target"
    return phase_changes.levels[0]


def draw_changes(seed: int, slowdown: float, run_count: int) -> LevelChanges:
    """So many runs a side of the same targets, less than a minute each, under loads that wander; the third is slower
    afterwards."""
    random = np.random.default_rng(seed)
    targets, slices = int(random.integers(4, 48)), int(random.integers(20, 65))
    sides = [
        [phase_of(*drawn_answers(random, targets, slices, slice(2, 3), target_factor)) for _ in range(run_count)]
        for target_factor in (1.0, slowdown)
    ]
    return get_target_changes(make_phase_changes(sides[0], sides[1]))


def test_half_speed_target_is_reported_with_a_covering_interval() -> None:
    """Of 200 such draws, 181 report the target, and 114 with one run a side. One and two report another target."""
    named_count = held = others = 0
    for seed in range(30):
        changed = {change.name: change for change in draw_changes(seed, 2.0, 3).changed_parts}
        slow = changed.pop("OST0002", None)
        others += len(changed)
        if slow is not None and slow.low is not None and slow.high is not None:
            named_count += slow.verdict == "slower"
            held += slow.low <= 0.5 <= slow.high
    assert named_count >= 24
    assert held >= named_count - 1
    assert others <= 1


@draw_by_day_and_night(60, 150)
def test_no_change_is_reported_without_a_change(draws: int) -> None:
    """Of 500 such draws, 3 report a target; 0.5 % may do so by chance."""
    assert sum(bool(draw_changes(1000 + seed, 1.0, 1).changed_parts) for seed in range(draws)) <= draws / 50


def test_a_target_that_was_slow_before_as_after_is_no_change() -> None:
    ops, ns = make_even_answers()
    ns[5] *= 2
    assert [target.name for target in find_slow_targets_by_latency(phase_of(ops, ns))] == ["OST0005"]
    phase_changes = make_phase_changes(
        [phase_of(ops, ns)], [phase_of(ops, 3 * ns)]
    )  # all of them became slower together
    (level,) = phase_changes.levels
    assert level.changed_parts == []
    assert level.parts[0].rate == pytest.approx(1 / 3)
    assert level.parts[0].relative_rate == pytest.approx(1.0)
    assert print_sentences(level) == [
        "Of 8 targets none answered otherwise than before, held against the others (a change by less than a factor of"
        " 1.3 would not show)."
    ]
    assert phase_changes.unknown == ()


def test_target_change_names_target_relative_rate_and_interval() -> None:
    ops, ns = make_even_answers(24)
    later = ns.copy()
    later[3] *= 4
    later[6] //= 2
    target_level = get_target_changes(make_phase_changes([phase_of(ops, ns, "read")], [phase_of(ops, later, "read")]))
    assert list_differing_parts(target_level) == [("OST0003", "slower", 0.25), ("OST0006", "faster", 2.0)]
    interval = "held against the other targets (99.5 % interval over all of them:"
    assert print_sentences(target_level) == [
        f"Target OST0003 answered reads at 0.25 of its rate before, {interval} 0.25 to 0.25).",
        f"Target OST0006 answered reads at 2.00 of its rate before, {interval} 2.00 to 2.00).",
    ]


def test_median_of_runs_counts_and_five_give_an_interval() -> None:
    ops, ns = make_even_answers()
    once = ns.copy()
    once[1] *= 5
    before = [phase_of(ops, ns * (10 + index) // 10) for index in range(5)]
    after = [phase_of(ops, once), *(phase_of(ops, 2 * ns * (10 + index) // 10) for index in range(4))]
    (level,) = make_phase_changes(before, after).levels
    assert level.changed_parts == []
    assert level.parts[0].rate == pytest.approx(0.5, rel=0.3)
    assert level.parts[0].rate_low is not None
    assert level.parts[0].rate_low < 0.5 < (level.parts[0].rate_high or 0)
    assert make_phase_changes(before[:4], after).levels[0].parts[0].rate_low is None


def test_change_among_three_targets_is_undecidable() -> None:
    ops, ns = make_even_answers(3)
    later = ns.copy()
    later[1] *= 10
    (level,) = make_phase_changes([phase_of(ops, ns)], [phase_of(ops, later)]).levels
    assert {change.verdict for change in level.parts} == {"not known"}
    assert print_sentences(level) == ["Not compared: 3 targets (fewer than 4 with enough operations on both sides)."]
    assert level.parts[1].rate == pytest.approx(0.1)


def test_one_sided_and_rarely_used_targets_are_distinguished() -> None:
    ops, ns = make_even_answers(9)
    few = np.array(ops)
    few[2] = 0
    few[2, 0] = 1
    (level,) = make_phase_changes([phase_of(ops[:8], ns[:8])], [phase_of(few, np.where(few > 0, ns, 0))]).levels
    assert level.only_after == ("OST0008",)
    assert level.only_before == ()
    assert [change.name for change in level.parts if change.verdict == "not known"] == ["OST0002"]
    assert print_sentences(level)[1:] == [
        "Not compared: 1 target (too few operations on one alone).",
        "Only after served any: target OST0008.",
    ]


def test_single_drive_has_no_target_comparison() -> None:
    ops, ns = make_even_answers(1)
    assert make_phase_changes([phase_of(ops, ns)], [phase_of(ops, 2 * ns)]) == PhaseChanges((), ())
    assert make_phase_changes(
        [make_phase_of_files_on_targets([1e8])], [make_phase_of_files_on_targets([1e8])]
    ) == PhaseChanges((), ())


def test_missing_target_figures_are_reported() -> None:
    ops, ns = make_even_answers()
    usable, silent = phase_of(ops, ns), PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    assert make_phase_changes([silent], [silent]) == PhaseChanges((), ())
    assert make_phase_changes([silent], [usable]) == PhaseChanges(
        (), ("Of the run before no figures of targets are known.",)
    )
    phase_changes = make_phase_changes([usable, silent], [usable])
    assert [replace_no_break_spaces(sentence) for sentence in phase_changes.unknown] == [
        "Of 1 of 2 runs before no figures of targets are known."
    ]
    assert len(phase_changes.levels) == 1
    assert usable.targets is not None
    partly = phase_of(ops, ns)
    partly.targets = replace(usable.targets, bytes=2 * usable.targets.known_bytes, files=10)
    assert make_phase_changes([usable], [partly]).unknown == (
        "After, 50 % of the bytes belong to no known target: the layout of 2 of 10 opened files is not known.",
    )
    other = make_phase_changes([usable], [phase_of(ops, ns, "read")])
    assert other == PhaseChanges(
        (), ("Targets cannot be compared: before and after are measured by writes and reads.",)
    )


def test_unit_is_slower_only_if_more_than_one_target_is_slower() -> None:
    ops, ns = make_even_answers(24)
    run, later = run_with(24, 4), ns.copy()
    later[8:12] *= 2
    levels = {
        level.level: level for level in make_phase_changes([phase_of(ops, ns)], [phase_of(ops, later)], run).levels
    }
    assert list(levels) == ["target", "OSS", "SSU"]
    assert list_differing_parts(levels["SSU"]) == [("ssu2", "slower", 0.5)]
    assert (
        levels["SSU"]
        .change_sentences[0]
        .startswith(
            "SSU ssu2 answered writes at 0.50 of its rate before, held against the other SSU (99.5 % interval over all"
        )
    )
    alone = ns.copy()
    alone[5] *= 8
    levels = {
        level.level: level for level in make_phase_changes([phase_of(ops, ns)], [phase_of(ops, alone)], run).levels
    }
    assert [change.name for change in levels["target"].changed_parts] == ["OST0005"]
    assert levels["SSU"].changed_parts == []


def make_phase_of_files_on_targets(rates: Sequence[float], tasks_per_target: int = 6) -> PhaseRecord:
    """Tasks with a file each on one of the targets, which serve them at these rates."""
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write", measured=True))
    tasks = [(index, rate) for index, rate in enumerate(rate for rate in rates for _ in range(tasks_per_target))]
    phase.layout = LayoutLine(
        columns=("task", "targets"),
        rows=tuple((task, ((f"{task // tasks_per_target}@oss", 1),)) for task, _ in tasks),
    )
    phase.tasks.append(TableLine(columns=("task", "bytes", "bytes_per_s"), rows=tuple((t, 10**9, r) for t, r in tasks)))
    return phase


def test_file_rates_reveal_changes_without_operation_tables() -> None:
    before, after = [1e8] * 6, [1e8, 1e8, 5e7, 1e8, 1e8, 1e8]
    (level,) = make_phase_changes(
        [make_phase_of_files_on_targets(before)], [make_phase_of_files_on_targets(after)]
    ).levels
    assert level.kind == "file"
    assert list_differing_parts(level) == [("2@oss", "slower", 0.5)]
    assert level.change_sentences[0].startswith("Target 2@oss served its files at 0.50 of its rate before")
    few = make_phase_changes(
        [make_phase_of_files_on_targets(before, 4)], [make_phase_of_files_on_targets(after, 4)]
    ).levels[0]
    assert print_sentences(few) == ["Not compared: 6 targets (fewer than 5 files of tasks on one alone)."]
    assert level.to_json()["parts"][0] == {
        "name": "0@oss", "verdict": "no change seen", "relative_rate": 1.0, "low": 1.0, "high": 1.0,
    }  # fmt: skip
