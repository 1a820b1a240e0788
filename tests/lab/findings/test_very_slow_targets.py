# SPDX-License-Identifier: Apache-2.0
"""A target is named however slow it is, in short and long phases, whether volume or time ends them."""

from __future__ import annotations

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from target_load import COLUMNS, run_with

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.storage_units import find_slow_units
from sonde.findings.target_operations import (
    compute_relative_target_rates,
    describe_slow_operations,
    find_slow_targets_by_latency,
    select_slow_targets,
)
from sonde.findings.targets import TargetRates
from sonde.model.line_members import IntervalSeconds
from sonde.model.lines import Finding, PhaseBeginLine, PhaseEndLine, SeriesLine, TargetsLine
from sonde.model.record import PhaseRecord

SLOW_TARGET = "OST0002"
HANG_S = 30.0
DRAWS = 40


def draw_phase(
    seed: int, slowdown: float, operations_per_target: int, stop_rule: str, hangs: bool = False
) -> PhaseRecord:
    """Operations of 5 ms, one after the other on each target, with 40 % of spread, one in a hundred twenty times as
    long, and 3 % between targets. The third target takes `slowdown` times as long, or hangs for 30 s at first.

    `stop_rule`: with "volume" each target answers `operations_per_target`; with "time" the phase lasts as long as that
    many operations of 5 ms.
    """
    random = np.random.default_rng(seed)
    targets = int(random.integers(16, 64))
    limit_s = operations_per_target * 5e-3 * 1.2 if stop_rule == "time" else np.inf
    ends = []
    for index in range(targets):
        times = 5e-3 * np.exp(random.normal(0, 0.03) + random.normal(0, 0.4, 2 * operations_per_target))
        times = np.where(random.random(2 * operations_per_target) < 0.01, 20 * times, times)
        if index == 2:
            times = times * slowdown
            times[0] += HANG_S if hangs else 0.0
        begins = np.concatenate(([0.0], np.cumsum(times)[:-1]))
        count = max(1, int(np.count_nonzero(begins < limit_s))) if stop_rule == "time" else operations_per_target
        ends.append((np.cumsum(times)[:count], times[:count]))
    return build_phase(ends)


def build_phase(ends: list[tuple[np.ndarray, np.ndarray]]) -> PhaseRecord:
    """The record of these ends and durations, with at most 64 slices, as wide as the engine makes them."""
    elapsed = max(float(end[-1]) for end, _ in ends)
    slice_s = 0.01
    while elapsed / slice_s > 64:
        slice_s *= 2
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write", measured=True))
    phase.end = PhaseEndLine(phase="p", seconds=IntervalSeconds(elapsed=elapsed))
    rows: list[tuple[object, ...]] = []
    for index, (end, times) in enumerate(ends):
        edges = np.arange(0, int(end[-1] / slice_s) + 2) * slice_s
        ops = np.histogram(end, edges)[0]
        ns = np.histogram(end, edges, weights=times * 1e9)[0]
        counts, name = tuple(ops.tolist()), f"OST{index:04x}"
        phase.series.append(
            SeriesLine(
                phase="p", scope="target", target=name, kind="write", slice_s=slice_s, bytes=counts, ops=counts,
                single_ops=counts, single_ns=tuple(ns.astype(int).tolist()),
            )
        )  # fmt: skip
        quantiles = [float(value) * 1e9 for value in np.quantile(times, (0.5, 0.9, 0.99, 1.0))]
        rows.append((name, "write", times.size, times.size, times.size, int(times.sum() * 1e9), *quantiles))
    total = sum(times.size for _, times in ends)
    phase.targets = TargetsLine(phase="p", bytes=total, known_bytes=total, columns=COLUMNS, rows=tuple(rows))
    return phase


@pytest.mark.parametrize("stop_rule", ["volume", "time"])
@pytest.mark.parametrize("operations", [100, pytest.param(600, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("slowdown", [2.0, 5.0, 10.0, 100.0])
def test_slow_target_is_reported_with_its_factor(slowdown: float, operations: int, stop_rule: str) -> None:
    if (slowdown, operations, stop_rule) == (100.0, 100, "time"):
        operations = 300  # in less time the slow target answers one operation, which might be a long one of any target
    named_count = held_count = other_count = 0
    for seed in range(DRAWS):
        slow = find_slow_targets_by_latency(draw_phase(seed, slowdown, operations, stop_rule))
        other_count += any(target.name != SLOW_TARGET for target in slow)
        named_count += any(target.name == SLOW_TARGET for target in slow)
        held_count += any(target.name == SLOW_TARGET and target.low <= slowdown <= target.high for target in slow)
    assert named_count >= 0.95 * DRAWS
    assert held_count >= 0.9 * named_count
    assert other_count <= 1


@pytest.mark.parametrize("stop_rule", ["volume", "time"])
@draw_by_day_and_night(20, 40)
def test_hanging_target_with_a_single_response_is_reported(draws: int, stop_rule: str) -> None:
    """In a phase that time ends, the operation that hangs is the only one; with a volume, the others are sound."""
    slow = [find_slow_targets_by_latency(draw_phase(seed, 1.0, 100, stop_rule, hangs=True)) for seed in range(draws)]
    named_count = sum(any(target.name == SLOW_TARGET for target in targets) for targets in slow)
    assert named_count >= 0.95 * draws if stop_rule == "time" else named_count <= 0.05 * draws


@pytest.mark.parametrize("stop_rule", ["volume", "time"])
@pytest.mark.parametrize(
    "operations", [6, 20, *(pytest.param(count, marks=pytest.mark.nightly) for count in (100, 600))]
)
@draw_by_day_and_night(60, 120)
def test_sound_targets_are_rarely_reported(draws: int, operations: int, stop_rule: str) -> None:
    named_count = sum(
        bool(find_slow_targets_by_latency(draw_phase(seed, 1.0, operations, stop_rule))) for seed in range(draws)
    )
    assert named_count <= draws // 60


def test_long_operations_in_most_blocks_do_not_name_a_sound_target() -> None:
    """Drawn phases in which blocks alone name one; a target with the same median operation is not slow."""
    named_by_blocks = 0
    for seed in (700063, 700208, 700261, 700299, 700352, 700718):
        phase = draw_phase(seed, 1.0, 100, "time")
        named_by_blocks += bool(select_slow_targets(compute_relative_target_rates(phase)))
        assert not find_slow_targets_by_latency(phase)
    assert named_by_blocks == 6


def test_ten_times_slower_target_is_described() -> None:
    text = describe_slow_operations(draw_phase(1, 10.0, 400, "volume"))
    assert text.startswith(f"Writes to target {SLOW_TARGET} took ")


def test_single_operation_that_lasts_a_long_phase_is_reported() -> None:
    """The others answered thousands of operations and differ by 12 %, which is the spread between targets."""
    random = np.random.default_rng(7)
    rates = [TargetRates(f"OST{index:04x}", (float(np.exp(random.normal(0, 0.12))),), 2568) for index in range(95)]
    slow = select_slow_targets([TargetRates("hanging", (1.1e-6,), 1), *rates])
    assert [target.name for target in slow] == ["hanging"]


@pytest.mark.parametrize("slowdown", [5.0, 30.0, 100.0])
def test_very_slow_server_is_reported_with_its_factor(slowdown: float) -> None:
    """The targets of the other servers have answered all before the slow one has answered a tenth."""
    named_count = held_count = 0
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        slow = find_slow_units(run_with(48, 4), draw_unit_phase(random, 12, 4, slowdown), "SSU")
        assert [unit.name for unit in slow] in ([], ["ssu1"])
        named_count += bool(slow)
        held_count += bool(slow) and slow[0].low <= slowdown <= slow[0].high
    assert named_count >= 0.95 * DRAWS
    assert held_count >= 0.9 * named_count


def test_slow_node_is_stated_as_a_cause_of_slow_targets() -> None:
    """Each task had its target, so the targets of a slow node look slow."""
    phase, run = draw_phase(1, 10.0, 100, "volume"), run_with(48, 4)
    sentence = "All tasks on node 2 were slow: if they alone used these targets, that node explains their times."
    assert sentence not in assess_phase_rate(run, phase).slow_targets
    phase.findings.append(Finding(id="slow_node", phase="p", evidence={"node": 2}))
    assert assess_phase_rate(run, phase).slow_targets.endswith(f" {sentence}")


def draw_unit_phase(
    random: np.random.Generator, unit_count: int, targets_per_unit: int, slowdown: float
) -> PhaseRecord:
    """100 operations of 5 ms on each target, with 40 % of spread; the second unit takes `slowdown` times as long."""
    ends = []
    for index in range(unit_count * targets_per_unit):
        times = 5e-3 * np.exp(random.normal(0, 0.03) + random.normal(0, 0.4, 100))
        times = times * slowdown if index // targets_per_unit == 1 else times
        ends.append((np.cumsum(times), times))
    return build_phase(ends)
