# SPDX-License-Identifier: Apache-2.0
"""Detection of slow targets from single operations: only slow targets are named, with their interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from target_load import COLUMNS, drawn_answers, phase_of

from sonde.findings.target_operations import (
    LevelDeviation,
    OperationTimes,
    TargetOperations,
    _compute_deviation,
    compute_deviations,
    compute_relative_rates,
    compute_relative_target_rates,
    compute_target_series,
    describe_slow_operations,
    describe_unknown_bytes,
    find_busiest_kind,
    find_slow_targets_by_latency,
    read_target_operations,
    select_slow_targets,
    select_text_for_busiest_kind,
)
from sonde.findings.targets import SlowTarget, TargetRates
from sonde.model.lines import LayoutLine, PhaseBeginLine, SeriesLine, TargetsLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord
from sonde.report.sections.target_heat_map import _sum_amounts_by_column, render_target_heat_map


def draw_target_phase(random: np.random.Generator, slowdown: float = 1.0) -> PhaseRecord:
    """Minutes of a shared file; the third target is slow, or the last of fewer."""
    targets, slices = int(random.integers(4, 48)), int(random.integers(20, 65))
    third = min(2, targets - 1)
    return phase_of(*drawn_answers(random, targets, slices, slice(third, third + 1), slowdown))


@draw_by_day_and_night(60, 200)
def test_half_speed_target_is_reported_with_a_covering_interval(draws: int) -> None:
    named_count = held = 0
    for seed in range(draws):
        slow = find_slow_targets_by_latency(draw_target_phase(np.random.default_rng(seed), 2.0))
        assert [target.name for target in slow] in ([], ["OST0002"])
        if slow:
            named_count += 1
            held += slow[0].low <= 2.0 <= slow[0].high
    assert named_count >= 0.85 * draws  # those that are not are among few others: of 4 to 9 targets
    assert held >= 0.95 * named_count


def test_several_slow_targets_do_not_hide_each_other() -> None:
    """In 200 simulated phases with two slow targets, 189 findings name both; one names a healthy target as well."""
    both = others = 0
    for seed in range(60):
        random = np.random.default_rng(2000 + seed)
        targets, slices = int(random.integers(16, 48)), int(random.integers(20, 65))
        slow = find_slow_targets_by_latency(phase_of(*drawn_answers(random, targets, slices, slice(2, 4), 2.0)))
        named_targets = {target.name for target in slow}
        both += named_targets >= {"OST0002", "OST0003"}
        others += len(named_targets - {"OST0002", "OST0003"})
    assert both >= 52
    assert others <= 1


@draw_by_day_and_night(120, 500)
def test_no_target_is_reported_if_none_is_slow(draws: int) -> None:
    named_count = sum(
        bool(find_slow_targets_by_latency(draw_target_phase(np.random.default_rng(1000 + seed))))
        for seed in range(draws)
    )
    assert named_count <= draws // 250


def test_slowdown_of_all_targets_blames_no_target() -> None:
    ops = np.full((8, 32), 20)
    ns = np.full((8, 32), 20 * 5_000_000)
    ns[:, 16:] *= 10
    assert find_slow_targets_by_latency(phase_of(ops, ns)) == []
    ns[3] *= 2
    (slow,) = find_slow_targets_by_latency(phase_of(ops, ns))
    assert slow.name == "OST0003"
    assert slow.factor == pytest.approx(2.0)


def test_few_operations_or_a_single_target_give_no_rates() -> None:
    few = phase_of(np.full((8, 4), 1), np.full((8, 4), 5_000_000))
    assert compute_relative_target_rates(few) == []
    assert compute_relative_target_rates(phase_of(np.full((1, 32), 50), np.full((1, 32), 5_000_000))) == []


def test_split_operations_alone_give_no_rates() -> None:
    phase = phase_of(np.zeros((4, 32), dtype=int), np.zeros((4, 32), dtype=int))
    assert compute_relative_target_rates(phase) == []
    assert describe_slow_operations(phase) == ""


def test_slow_target_sentence_has_factor_and_interval() -> None:
    ns = np.full((6, 32), 20 * 5_000_000)
    ns[4] *= 3
    text = replace_no_break_spaces(describe_slow_operations(phase_of(np.full((6, 32), 20), ns, "read")))
    assert text == (
        "Reads from target OST0004 took 3.0 times as long as those on the others (99.5 % interval over all targets:"
        " 3.0 to 3.0)."
    )


def make_partly_known_phase(bytes_known: int, files_known: int, file_system_kind: str = "lustre") -> PhaseRecord:
    """1,000 bytes of 1,000 files."""
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.targets = TargetsLine(files=1000, known_files=files_known, bytes=1000, known_bytes=bytes_known)
    phase.layout = LayoutLine(kind=file_system_kind)
    return phase


def test_bytes_of_unknown_targets_are_reported_as_a_share() -> None:
    assert describe_unknown_bytes(PhaseRecord(PhaseBeginLine(phase="p", op="write"))) == ""
    assert describe_unknown_bytes(make_partly_known_phase(1000, 1000)) == ""
    assert describe_unknown_bytes(make_partly_known_phase(875, 900)) == (
        "12.5 % of the bytes belong to no known target: the layout of 100 of 1,000 opened files is not known"
    )
    assert describe_unknown_bytes(make_partly_known_phase(500, 1000)) == "50 % of the bytes belong to no known target"
    assert describe_unknown_bytes(make_partly_known_phase(0, 900, "local")) == (
        "100 % of the bytes belong to no known target: a local file system chooses places for new bytes only after they"
        " were written"
    )


def test_malformed_target_table_is_read_partially() -> None:
    line = TargetsLine(columns=("target", "bytes"), rows=(("OST0000", 5), ("OST0001",)))
    assert read_target_operations(line) == []
    assert find_busiest_kind(PhaseRecord(PhaseBeginLine(phase="p", op="write"))) == ""


def test_heat_map_has_each_target_and_marks_the_slow_target() -> None:
    ns = np.full((6, 32), 20 * 5_000_000)
    ns[4] *= 3
    drawing = str(render_target_heat_map(phase_of(np.full((6, 32), 20), ns)))
    assert all(f"OST000{index}" in drawing for index in range(6))
    assert drawing.count('class="slow"') == 1
    assert render_target_heat_map(phase_of(np.full((1, 32), 20), ns[:1])) is None


def test_finished_target_is_absent_and_stalled_target_is_slow() -> None:
    ops = np.full((4, 20), 10)
    ops[1, 10:] = 0  # over before the others
    ops[2, 8:12] = 0  # stands still between
    (early, still) = (_sum_amounts_by_column(line, 20, 20) for line in phase_of(ops, ops * 1_000_000).series[1:3])
    assert np.isnan(early[10:]).all()
    assert not np.isnan(early[:10]).any()
    assert still[8:12] == [0.0] * 4


def test_deviation_is_from_the_mean_with_student_t_allowance() -> None:
    """Of one that is judged Student's t with four degrees of freedom at 0.995 on two sides, 5.598, times the spread of
    five others, 1.5811, times the root of one and a fifth."""
    deviation = _compute_deviation(9.0, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 1)
    assert deviation.by == 6.0
    assert deviation.room == pytest.approx(5.598 * 1.5811 * 1.0954, rel=1e-3)


def test_a_row_is_read_by_the_names_of_its_columns() -> None:
    columns = ("ops", "bytes", "single_ns", "single_ops", "max_ns", "p99_ns", "p90_ns", "p50_ns", "kind", "target")
    (operation,) = read_target_operations(
        TargetsLine(columns=columns, rows=((7, 9, 500, 5, 4, 3.5, 2, "x", "read", "OST0007"),))
    )
    assert operation == TargetOperations("OST0007", "read", 9, 7, 5, 500, None, 2.0, 3.5, 4.0)
    (bare,) = read_target_operations(
        TargetsLine(columns=("bytes", "ops", "single_ops", "single_ns"), rows=((1, 2, 3, 4),))
    )
    assert bare == TargetOperations("?", "", 1, 2, 3, 4, None, None, None, None)


def make_phase_of_operation_kinds(*rows: tuple[str, int]) -> PhaseRecord:
    """One target that served so many bytes of each kind."""
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    phase.targets = TargetsLine(columns=COLUMNS, rows=tuple(("t", kind, moved, 1, 1, 1) for kind, moved in rows))
    return phase


def test_busiest_kind_transferred_most_and_selects_the_series() -> None:
    phase = make_phase_of_operation_kinds(("read", 5), ("write", 4), ("write", 3))
    assert find_busiest_kind(phase) == "write"
    assert find_busiest_kind(make_phase_of_operation_kinds(("read", 5), ("write", 5))) == "read"
    phase.series += [
        SeriesLine(scope=scope, target=name, kind=kind, slice_s=slice_s)
        for scope, name, kind, slice_s in (
            ("target", "a", "write", 1.0), ("target", "b", "read", 1.0), ("node", "c", "write", 1.0),
            ("target", "d", "write", 0.0), ("target", "e", "write", 0.5),
        )
    ]  # fmt: skip
    assert [line.target for line in compute_target_series(phase)] == ["a", "e"]
    texts = "reading", "writing", "either"
    assert [
        select_text_for_busiest_kind(make_phase_of_operation_kinds((kind, 1)), *texts)
        for kind in ("read", "write", "sync")
    ] == [*texts]
    assert select_text_for_busiest_kind(PhaseRecord(PhaseBeginLine(phase="p")), *texts) == "either"


def make_operation_times(*rows: tuple[float, ...], ops: float = 10.0) -> list[OperationTimes]:
    """Operation latency in ns by target and slice, with `ops` operations in each slice."""
    return [
        OperationTimes(f"t{index}", (ops,) * len(row), tuple(ops * duration_ns for duration_ns in row))
        for index, row in enumerate(rows)
    ]


def test_relative_rate_is_that_to_the_median_of_each_block() -> None:
    rates = compute_relative_rates(make_operation_times((10.0,) * 5, (20.0,) * 5, (40.0, 40.0, 10.0, 5.0, 80.0)))
    assert [target.name for target in rates] == ["t0", "t1", "t2"]
    assert rates[0].rates == pytest.approx((2.0, 2.0, 1.0, 1.0, 2.0))
    assert rates[1].rates == pytest.approx((1.0, 1.0, 0.5, 0.5, 1.0))
    assert rates[2].rates == pytest.approx((0.5, 0.5, 1.0, 2.0, 0.25))


@pytest.mark.parametrize(("ops", "slices", "blocks"), [(8.0, 4, 0), (8.0, 5, 5), (7.9, 5, 0), (8.0, 16, 16),
                                                       (8.0, 40, 16), (4.0, 20, 10)])  # fmt: skip
def test_there_are_five_to_sixteen_blocks_of_eight_operations(ops: float, slices: int, blocks: int) -> None:
    rates = compute_relative_rates(make_operation_times((10.0,) * slices, (20.0,) * slices, ops=ops))
    assert [len(target.rates) for target in rates] == ([blocks] * 2 if blocks else [])
    assert compute_relative_rates(make_operation_times((10.0,) * slices, ops=ops)) == []


def test_blocks_with_few_operations_or_no_time_are_skipped() -> None:
    """A block with fewer than two remaining targets has no median, so it is skipped."""
    ops = ((8.0, 4.0, 3.9, 8.0, 8.0, 8.0), (16.0,) * 6, (16.0, 16.0, 16.0, 16.0, 16.0, 0.0))
    ns = ((80.0, 40.0, 39.0, 0.0, 0.0, 80.0), (80.0,) * 6, (80.0, 80.0, 80.0, 80.0, 0.0, 0.0))
    rates = compute_relative_rates(
        [OperationTimes(f"t{index}", *both) for index, both in enumerate(zip(ops, ns, strict=True))]
    )
    assert [len(target.rates) for target in rates] == [3, 5, 4]
    silent = [OperationTimes(f"t{index}", (8.0,) * 6, (80.0 if index == 0 else 0.0,) * 6) for index in range(3)]
    assert compute_relative_rates(silent) == []
    assert compute_relative_rates([]) == []
    assert compute_relative_rates([OperationTimes("a", (), ()), OperationTimes("b", (), ())]) == []


def test_deviation_must_exceed_its_allowance_and_30_percent() -> None:
    least = math.log(1.3)
    deviations = [LevelDeviation(by, room) for by, room in ((-1.0, 0.99), (-1.0, 1.0), (1.0, 0.99), (1.0, 1.0))]
    assert [deviation.is_different for deviation in deviations] == [True, False, True, False]
    assert [LevelDeviation(by, 0.1).is_different for by in (least, -least, least - 1e-9, 1e-9 - least)] == [
        True,
        True,
        False,
        False,
    ]


def test_outlier_detection_needs_four_values() -> None:
    assert compute_deviations([0.0, 0.0, 9.0]) == [None] * 3
    assert compute_deviations([]) == []
    deviations = [deviation for deviation in compute_deviations([0.0, 0.0, 0.0, -9.0]) if deviation is not None]
    assert [deviation.is_different for deviation in deviations] == [False, False, False, True]
    assert (deviations[3].by, deviations[3].room) == (-9.0, 0.0)


@pytest.mark.parametrize(("targets", "differing_count"), [(11, 0), (12, 2), (17, 0), (18, 3)])
def test_at_most_a_sixth_of_the_values_are_outliers(targets: int, differing_count: int) -> None:
    """Of 11 values, two outliers hide each other; of 17 values, three do."""
    out = targets // 6 + (targets % 6 > 0)
    sound = [0.01 * (-1) ** index for index in range(targets - out)]
    deviations = compute_deviations([*[-1.0] * out, *sound])
    assert sum(deviation is not None and deviation.is_different for deviation in deviations) == differing_count


@pytest.mark.parametrize(("far", "room"), [(2.8, "wide"), (3.4, "narrow")])
def test_the_level_is_shared_by_all_that_are_judged(far: float, room: str) -> None:
    """With 0 and one tenth on either side a fourth differs from 3.27 on: 28.3, Student's t with two degrees of freedom
    at 99.9375 %, times a tenth times the root of one and a third. Only then the room of the others is without it."""
    deviations = compute_deviations([0.0, 0.1, -0.1, far])
    assert deviations[3] is not None
    assert deviations[3].room == pytest.approx(3.265, rel=2e-3)
    assert deviations[3].is_different == (room == "narrow")
    assert deviations[0] is not None
    without = _compute_deviation(0.0, np.array([0.1, -0.1]), 4).room
    within = _compute_deviation(0.0, np.array([0.1, -0.1, far]), 4).room
    assert deviations[0].room == (without if room == "narrow" else within)


def test_deviation_limit_of_five_values_equals_student_t() -> None:
    """For five values the limit is Student's t with four degrees of freedom at 0.9995: 8.610."""
    deviation = _compute_deviation(9.0, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 5)
    assert deviation.room == pytest.approx(8.610 * 1.5811 * 1.0954, rel=1e-3)


def test_fast_target_or_target_with_few_blocks_is_not_slow() -> None:
    even = [TargetRates(f"t{index}", (1.0,) * 5) for index in range(12)]
    (slow,) = select_slow_targets([*even, TargetRates("few", (0.1,) * 4), TargetRates("slow", (0.25,) * 5)])
    assert slow == SlowTarget("slow", 5, 4.0, 4.0, 4.0)
    assert select_slow_targets([*even, TargetRates("fast", (4.0,) * 5)]) == []
    both = select_slow_targets([*even, TargetRates("slow", (0.25,) * 6), TargetRates("slowest", (0.125,) * 5)])
    assert [(target.name, target.files) for target in both] == [("slowest", 5), ("slow", 6)]


@pytest.mark.parametrize(("slow_targets", "expected_remainder"), [(3, ""), (4, " So did those of 1 other target."),
                                            (5, " So did those of 2 other targets.")])  # fmt: skip
def test_three_slow_targets_are_described_and_more_counted(slow_targets: int, expected_remainder: str) -> None:
    ns = np.full((30, 32), 20 * 5_000_000)
    for index in range(slow_targets):
        ns[index] *= 3 + index
    text = replace_no_break_spaces(describe_slow_operations(phase_of(np.full((30, 32), 20), ns)))
    sentences = [
        f"Writes to target OST000{target} took {3 + target}.0 times as long as those on the others (99.5 % interval"
        f" over all targets: {3 + target}.0 to {3 + target}.0)."
        for target in (slow_targets - 1, slow_targets - 2, slow_targets - 3)
    ]
    assert text == " ".join(sentences) + expected_remainder
