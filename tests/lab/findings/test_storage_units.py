# SPDX-License-Identifier: Apache-2.0
"""Servers and units of storage by the sums of their targets: the slow one is named, and nobody where none is slow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from phase_builders import MIB
from target_load import drawn_answers, phase_of, run_with

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.storage_units import (
    collect_operation_times_of_units,
    collect_unit_series,
    describe_slow_units,
    find_slow_units,
    list_storage_levels,
    sum_unit_operations,
)
from sonde.findings.target_operations import compute_busy_rate, select_target_series
from sonde.model.lines import PhaseBeginLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import make_recorded_run
from sonde.report.sections.target_heat_map import SECTION, render_unit_heat_map
from sonde.terminal.target_tables import build_targets_document


def draw_unit_phase(
    random: np.random.Generator, targets_per_unit: int, unit_count: int, slowdown: float = 1.0
) -> PhaseRecord:
    """Minutes of a shared file; the second unit is slow."""
    slices = int(random.integers(20, 65))
    return phase_of(
        *drawn_answers(
            random, targets_per_unit * unit_count, slices, slice(targets_per_unit, 2 * targets_per_unit), slowdown
        )
    )


def test_unit_sums_equal_target_sums_with_joined_latencies() -> None:
    ops = np.tile([[10], [10], [20], [20], [30], [30], [40], [40]], (1, 20))
    phase, run = phase_of(ops, ops * 1_000_000), run_with(8, 4)
    assert list_storage_levels(run, phase) == ["OSS", "SSU"]
    first, second = sum_unit_operations(run, phase, "SSU")
    assert (first.unit, first.kind, first.targets, first.ops) == ("ssu0", "write", 4, 60 * 20)
    assert (second.bytes, second.bytes_per_s) == (140 * 20 << 20, 140 << 20)
    assert first.mean_ns == pytest.approx(1e6)
    assert (first.worst_p99_ns, second.worst_p99_ns) == (4e7, 8e7)
    assert (
        sum(unit.bytes for unit in sum_unit_operations(run, phase, "OSS")) == phase.targets.bytes
        if phase.targets
        else 0
    )
    series = {unit_series.unit: unit_series for unit_series in collect_unit_series(run, phase, "SSU")}
    assert series["ssu1"].bytes == (float(140 << 20),) * 20
    document = build_targets_document(run, phase)
    assert [target["target"] for target in document["targets"]] == [f"OST000{index}" for index in range(8)]
    assert [unit["unit"] for unit in document["units"]["SSU"]] == ["ssu0", "ssu1"]
    assert document["units"]["SSU"][1]["bytes"] == second.bytes


def test_slow_target_has_the_lowest_rate() -> None:
    ops = np.zeros((8, 20), dtype=int)
    ops[:, :2], ops[1] = 40, 4  # equal amounts; the second target needs all twenty slices
    phase, run = phase_of(ops, ops * 1_000_000), run_with(8, 4)
    rates = [compute_busy_rate(select_target_series(phase, "write", [f"OST{index:04x}"])) for index in range(8)]
    assert rates == [40 << 20, 4 << 20, *([40 << 20] * 6)]
    assert [unit.bytes_per_s for unit in sum_unit_operations(run, phase, "SSU")] == [(320 << 20) / 20, (320 << 20) / 2]


def test_targets_that_the_system_does_not_have_belong_to_no_unit() -> None:
    phase, run = phase_of(np.full((8, 20), 20), np.full((8, 20), 20_000_000)), run_with(4, 2)
    assert [unit.targets for unit in sum_unit_operations(run, phase, "SSU")] == [2, 2]
    nobody = make_recorded_run(RecordReader())
    assert list_storage_levels(nobody, phase) == []
    assert describe_slow_units(nobody, phase) == ""
    assert "units" not in build_targets_document(nobody, phase)


def test_half_speed_unit_is_reported_with_a_covering_interval() -> None:
    named_count = held = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        each, units = int(random.integers(2, 9)), int(random.integers(6, 13))
        slow = find_slow_units(run_with(each * units, each), draw_unit_phase(random, each, units, 2.0), "SSU")
        assert [unit.name for unit in slow] in ([], ["ssu1"])
        if slow:
            named_count += 1
            held += slow[0].low <= 2.0 <= slow[0].high
    assert named_count >= 95
    assert held >= 0.95 * named_count


@draw_by_day_and_night(80, 200)
def test_no_unit_is_reported_if_none_is_slow(draws: int) -> None:
    named_count = 0
    for seed in range(draws):
        random = np.random.default_rng(1000 + seed)
        each, units = int(random.integers(2, 9)), int(random.integers(4, 13))
        named_count += bool(find_slow_units(run_with(each * units, each), draw_unit_phase(random, each, units), "SSU"))
    assert named_count <= 2


@pytest.mark.parametrize(("slowdown", "is_slow"), [(2.0, False), (2.5, True)])
def test_unit_is_reported_beyond_the_interval_of_its_peers_only(slowdown: float, is_slow: bool) -> None:
    """Nine units differ by up to 22 %: an interval of 99.5 % blames a tenth from 2.26 times as slow, one of 85 %
    from 1.58, one of 95 % from 1.74, one of 99.9 % from 2.8."""
    levels = np.append(np.exp(np.linspace(-0.2, 0.2, 9)), slowdown)
    ns = np.repeat(20 * 5e6 * levels, 2)[:, None] * np.ones(32)
    phase = phase_of(np.full((20, 32), 20), ns.astype(int))
    assert [unit.name for unit in find_slow_units(run_with(20, 2), phase, "SSU")] == ["ssu9"] * is_slow


def test_one_slow_target_does_not_make_its_unit_slow() -> None:
    ns = np.full((24, 32), 20 * 5_000_000)
    ns[5] *= 8  # more than the other three of its unit together
    phase, run = phase_of(np.full((24, 32), 20), ns), run_with(24, 4)
    assert find_slow_units(run, phase, "SSU") == []
    ns[4:8] = 20 * 40_000_000
    (slow,) = find_slow_units(run, phase_of(np.full((24, 32), 20), ns), "SSU")
    assert slow.name == "ssu1"
    assert slow.factor == pytest.approx(8.0)


def test_slow_unit_sentence_is_complete_on_every_surface() -> None:
    ns = np.full((24, 32), 20 * 5_000_000)
    ns[8:12] *= 2
    phase, run = phase_of(np.full((24, 32), 20), ns), run_with(24, 4)
    text = replace_no_break_spaces(describe_slow_units(run, phase))
    assert text.endswith(
        "SSU ssu2 answered writes at 0.50 of the rate of the others (99.5 % interval over all of them: 0.50 to 0.50)."
    )
    assessment = assess_phase_rate(run, phase)
    assert assessment.to_json()["slow_units"] == text
    assert replace_no_break_spaces(assessment.detail_sentences[-1]) == text
    drawing = str(render_unit_heat_map(run, phase, "SSU"))
    assert drawing.count('class="slow"') == 1
    assert all(f"ssu{index}" in drawing for index in range(6))
    assert render_unit_heat_map(run_with(4, 4), phase_of(np.full((4, 32), 20), ns[:4]), "SSU") is None
    assert SECTION.rank == 41


def test_unit_combines_available_data_of_its_targets() -> None:
    """Two targets, of which one has no latencies; without series there is no rate."""
    phase, run = phase_of(np.full((2, 20), 20), np.full((2, 20), 20_000_000)), run_with(2, 2)
    assert phase.targets is not None
    silent = ("OST0001", "write", 5, 3, 0, 0, None, None, None, None)
    phase.targets = replace(phase.targets, rows=(phase.targets.rows[0], silent))
    (unit,) = sum_unit_operations(run, phase, "SSU")
    assert (unit.targets, unit.bytes, unit.ops) == (2, (400 << 20) + 5, 403)
    assert (unit.mean_ns, unit.worst_p99_ns, unit.max_ns) == (1e6, 1e7, 9e9)
    assert unit.bytes_per_s == 40 << 20
    phase.targets = replace(phase.targets, rows=(silent,))
    phase.series.clear()
    (bare,) = sum_unit_operations(run, phase, "SSU")
    assert bare.to_json() == {"unit": "ssu0", "kind": "write", "targets": 1, "bytes": 5, "ops": 3}


def test_units_keep_system_order_with_reads_before_writes() -> None:
    phase, run = phase_of(np.full((4, 20), 20), np.full((4, 20), 20_000_000)), run_with(4, 2)
    assert phase.targets is not None
    reads = tuple((row[0], "read", *row[2:]) for row in phase.targets.rows[2:])
    phase.targets = replace(phase.targets, rows=(*phase.targets.rows[::-1], *reads))
    assert [(unit.unit, unit.kind) for unit in sum_unit_operations(run, phase, "SSU")] == [
        ("ssu0", "write"), ("ssu1", "read"), ("ssu1", "write"),
    ]  # fmt: skip
    assert sum_unit_operations(run, phase, "rack") == []
    silent = PhaseRecord(PhaseBeginLine(phase="p"))
    assert sum_unit_operations(run, silent, "SSU") == []
    assert collect_unit_series(run, silent, "SSU") == []
    assert list_storage_levels(run, silent) == []


def test_series_of_different_lengths_are_added_slice_by_slice() -> None:
    phase, run = phase_of(np.full((2, 3), 1), np.full((2, 3), 5)), run_with(2, 2)
    phase.series[1] = replace(phase.series[1], bytes=(7,), single_ops=(4,), single_ns=(9,))
    (unit_series,) = collect_unit_series(run, phase, "SSU")
    assert (unit_series.unit, unit_series.bytes, unit_series.slice_s) == (
        "ssu0",
        (7.0 + MIB, float(MIB), float(MIB)),
        1.0,
    )
    (unit_times,) = collect_operation_times_of_units(run, phase, "SSU", ())
    assert (unit_times.name, unit_times.ops, unit_times.ns) == ("ssu0", (5.0, 1.0, 1.0), (14.0, 5.0, 5.0))


@pytest.mark.parametrize(("named_count", "counted"), [(0, 4), (1, 3), (2, 4), (3, 4)])
def test_slow_targets_are_excluded_below_half_of_the_unit(named_count: int, counted: int) -> None:
    phase, run = phase_of(np.full((4, 2), 10), np.full((4, 2), 50)), run_with(4, 4)
    (unit_times,) = collect_operation_times_of_units(
        run, phase, "SSU", {f"OST{index:04x}" for index in range(named_count)}
    )
    assert unit_times.ops == (10.0 * counted,) * 2
    assert unit_times.ns == (50.0 * counted,) * 2


def test_slowest_unit_of_each_level_has_shortened_names() -> None:
    ns = np.full((24, 32), 20 * 5_000_000)
    ns[8:10] *= 2
    ns[16:18] *= 4
    phase = phase_of(np.full((24, 32), 20), ns, "read")
    names = [[f"OST{index:04x}" for index in range(start, start + 2)] for start in range(0, 24, 2)]
    for level, part, name_text in (
        ("r" * 40, "u" * 60, f"{'r' * 40} {'u' * 60}"),
        ("r" * 41, "u" * 61, f"{'r' * 40}… {'u' * 60}…"),
    ):
        parts = {f"{part}" if index == 8 else f"p{index}": name for index, name in enumerate(names)}
        run = make_recorded_run(RecordReader(), Path(), {"parents": {"system": "s", "levels": {level: parts}}})
        text = replace_no_break_spaces(describe_slow_units(run, phase))
        assert text == (
            f"{name_text} answered reads at 0.25 of the rate of the others (99.5 % interval over all of them: 0.25 to"
            " 0.25)."
        )
