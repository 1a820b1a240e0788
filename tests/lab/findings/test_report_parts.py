# SPDX-License-Identifier: Apache-2.0
"""The small parts of a report: hidden characters, movement of a rate, axes, profiles."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_record import write_run
from record_scene import Scene, Work, steady

from sonde.charts import axes
from sonde.charts.plot import Panel
from sonde.findings.classification import Classification
from sonde.findings.phase_summary import assess_phase
from sonde.findings.phase_timeline import build_timeline
from sonde.findings.variation import RateVariation, analyze_rate_variation
from sonde.model.escaping import escape_line, escape_text
from sonde.model.run import read_recorded_run_folder


@given(st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "L", "N", "P", "S", "Zs", "Zl", "Zp"])))
def test_escaped_text_has_no_hidden_characters(text: str) -> None:
    for escaped, allowed in ((escape_line(text), ""), (escape_text(text), "\n\t")):
        escaped.encode("utf-8")
        for character in escaped:
            assert character.isprintable() or character in allowed or character.isspace()
    assert "\n" not in escape_line(text)
    assert escape_line("naïve – 東京 /scratch") == "naïve – 東京 /scratch"


def draw_noisy_rates(levels: list[float], seed: int = 1, spread: float = 0.03) -> list[float]:
    source = random.Random(seed)
    return [level * source.gauss(1, spread) for level in levels]


def analyze_levels(levels: list[float], spread: float = 0.03) -> RateVariation:
    """Six seconds of noise around these levels, one task at work."""
    rates = draw_noisy_rates(levels, spread=spread)
    return analyze_rate_variation([rate * 6.0 / len(rates) for rate in rates], [1] * len(rates), 6.0 / len(rates))


def test_step_drift_and_stall_are_distinguished() -> None:
    step = analyze_levels([2e9] * 60 + [8e8] * 60)
    assert step.kind == "steps"
    assert step.parts[1][0] == pytest.approx(3.0, abs=0.11)
    assert step.parts[1][1] == pytest.approx(8e8, rel=0.03)
    early = analyze_levels([2e9] * 24 + [8e8] * 216)
    assert early.kind == "steps"
    assert early.parts[1][0] == pytest.approx(0.6, abs=0.06)
    stairs = analyze_levels([2e9] * 80 + [1e9] * 80 + [3e9] * 80)
    assert [round(rate / 1e9) for _, rate in stairs.parts] == [2, 1, 3]
    drift = analyze_levels([1e9 + 1e7 * i for i in range(120)])
    assert drift.kind == "drift"
    assert drift.before == pytest.approx(1e9, rel=0.05)
    assert drift.after == pytest.approx(2.19e9, rel=0.05)
    stall = analyze_levels([1e9] * 56 + [0.0] * 8 + [1e9] * 56)
    assert stall.kind == "stalls"
    assert stall.stalled_s == pytest.approx(0.4)
    assert analyze_levels([1e9] * 120).kind == "steady"
    assert analyze_levels([1e9] * 120, spread=0.4).kind == "uneven"
    assert analyze_rate_variation([5, 5, 5], [1, 1, 1], 0.1).kind == "short"


@given(st.integers(0, 1000))
def test_noise_alone_is_never_called_a_step(seed: int) -> None:
    rates = draw_noisy_rates([1e9] * 300, seed, 0.15)
    assert analyze_rate_variation(rates, [1] * 300, 0.01).kind in ("steady", "uneven")


def test_variation_ignores_slices_without_all_tasks() -> None:
    amounts = [10] * 5 + [100] * 40 + [10] * 15
    active = [1] * 5 + [4] * 40 + [1] * 15
    variation = analyze_rate_variation(amounts, active, 0.01)
    assert variation.kind == "steady"
    assert variation.median == pytest.approx(10_000)


@given(st.floats(1e-9, 1e15), st.integers(1, 9))
def test_ticks_of_an_axis_from_zero_are_round_and_inside(largest_value: float, requested_ticks: int) -> None:
    axis = axes.build_amount_axis(largest_value, "B/s", requested_ticks)
    assert axis.high >= largest_value
    assert 1 <= len(axis.ticks) <= requested_ticks + 2
    assert all(-1e-9 <= tick.position <= 1 + 1e-9 for tick in axis.ticks)
    assert axis.ticks[0].label == "0"
    assert len({tick.label for tick in axis.ticks}) == len(axis.ticks)


@given(st.floats(1, 1e13), st.floats(1, 1e6))
def test_a_latency_axis_spans_its_values_and_has_ticks(smallest_ns: float, ratio: float) -> None:
    axis = axes.build_latency_axis(smallest_ns, smallest_ns * ratio)
    assert axis.low <= smallest_ns * 1.0001
    assert axis.high >= smallest_ns * ratio * 0.9999
    assert axis.ticks
    assert axis.scale_to_share(axis.low) == 0
    assert axis.scale_to_share(axis.high) == pytest.approx(1)


@given(st.floats(1e-5, 1e6))
def test_a_time_axis_begins_at_zero_and_names_its_unit(end_s: float) -> None:
    axis = axes.build_time_axis(end_s)
    assert axis.unit in ("µs", "ms", "s", "min", "h")
    assert axis.ticks[0].position == 0
    assert 2 <= len(axis.ticks) <= 11


def test_step_line_has_a_gap_for_unknown_values() -> None:
    panel = Panel(axes.Axis(0, 4), axes.Axis(0, 10), 100)
    assert panel.make_step_path([0, 1, 2, 3, 4], [10, None, 0, 5]) == "M0 0H250M500 100H750V50H1000"
    assert panel.make_area_path([0, 1, 2], [0, 0], [10, 5]) == "M0 0H250V50H500L500 100H250L250 100H0Z"


@pytest.mark.parametrize("slice_s", [0.001, 0.01, 0.1])
def test_joined_slices_keep_every_byte_and_every_task(tmp_path: Path, slice_s: float) -> None:
    scene = Scene(works=[Work(seconds=3.0, slice_s=slice_s, noise=0.2)], tasks=8)
    phase = read_recorded_run_folder(write_run(tmp_path / "run", scene)).phases[0]
    assert phase.end is not None
    timeline = build_timeline(phase)
    assert timeline is not None
    assert len(timeline.bytes_per_s) <= 240
    widths = [b - a for a, b in zip(timeline.edges, timeline.edges[1:], strict=False)]
    drawn_bytes = sum(rate * width for rate, width in zip(timeline.bytes_per_s, widths, strict=True))
    assert drawn_bytes == pytest.approx(phase.end.bytes.transferred, rel=1e-6)
    for low, middle, high in zip(*(timeline.task_rate[name] for name in ("min", "p50", "max")), strict=True):
        assert low is not None
        assert middle is not None
        assert high is not None
        assert low <= middle <= high


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (Work(seconds=2.0), Classification.BURST),
        (Work(seconds=60.0, slice_s=0.1), Classification.STORAGE),
        (Work(seconds=0.2), Classification.SHORT),
        (Work(seconds=2.0, fsync=0, plan={"io": {"fsync": "none"}}), Classification.CACHE),
        (Work(seconds=2.0, fsync=0, plan={"io": {"fsync": "none"}}, direct=True), Classification.BURST),
        (Work(seconds=2.0, fsync=0, plan={"io": {"fsync": "none", "sync": "dsync"}}), Classification.BURST),
        (Work("r", "read", seconds=2.0, cache="cold", residency=0.0), Classification.BURST),
        (Work("r", "read", seconds=2.0, cache="cold", residency=0.3), Classification.CACHE),
        (Work("r", "read", seconds=2.0, cache="warm", residency=1.0), Classification.CACHE),
        (Work("r", "read", seconds=2.0, cache="direct", direct=True, residency=1.0), Classification.BURST),
        (Work("r", "read", seconds=2.0), Classification.UNKNOWN),
        (Work("r", "stat", seconds=2.0, transfer=4096, fsync=0), Classification.CACHE),
        (Work("r", "remove", seconds=2.0, transfer=4096, fsync=0), Classification.CACHE),
        (Work(seconds=2.0, backend="paced"), Classification.SYNTHETIC),
        (Work(seconds=2.0, findings=({"id": "clock", "severity": "invalid", "text": "x"},)), Classification.INVALID),
        (Work(curve=steady(0.0), seconds=2.0), Classification.UNKNOWN),
        (Work(ends=False), Classification.FAILED),
    ],
)
def test_classification_follows_the_measurements(tmp_path: Path, work: Work, expected: Classification) -> None:
    run = read_recorded_run_folder(write_run(tmp_path / "run", Scene(works=[work])))
    assert assess_phase(run, run.phases[0]).summary.classification is expected


def test_the_same_rate_may_be_storage_or_cache(tmp_path: Path) -> None:
    """The verdict never follows from how fast it was."""
    fast = Work("r", "read", steady(50e9), seconds=60.0, slice_s=0.1, cache="cold", residency=0.0, transfer=1 << 28)
    slow = Work("r", "read", steady(50e3), seconds=60.0, slice_s=0.1, cache="warm", residency=1.0, transfer=4096)
    classifications = []
    for name, work in (("fast", fast), ("slow", slow)):
        run = read_recorded_run_folder(write_run(tmp_path / name, Scene(works=[work])))
        classifications.append(assess_phase(run, run.phases[0]).summary.classification)
    assert classifications == [Classification.STORAGE, Classification.CACHE]


def test_coordinates_are_finite_whatever_the_rate(tmp_path: Path) -> None:
    for rate in (0.0, 1e-3, 1e15):
        run = read_recorded_run_folder(
            write_run(tmp_path / f"{rate}", Scene(works=[Work(curve=steady(rate), transfer=1 << 40)]))
        )
        timeline = build_timeline(run.phases[0])
        if timeline is not None:
            assert all(math.isfinite(value) for value in timeline.bytes_per_s)


@pytest.mark.parametrize("expected_reason", ["error", "interrupt"])
def test_a_phase_that_an_error_or_a_signal_cut_off_is_not_finished(tmp_path: Path, expected_reason: str) -> None:
    folder = write_run(tmp_path / "run", Scene(works=[Work(seconds=2.0)]))
    record = folder / "record.ndjson"
    record.write_text(record.read_text().replace('"stopped_by": "volume"', f'"stopped_by": "{expected_reason}"'))
    run = read_recorded_run_folder(folder)
    assessment = assess_phase(run, run.phases[0]).summary
    assert assessment.classification is Classification.FAILED
    assert assessment.rate is not None  # work done until then is reported too
