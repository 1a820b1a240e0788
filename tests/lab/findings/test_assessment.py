# SPDX-License-Identifier: Apache-2.0
"""The assessment on a phase: which sentences there are, in which order, and in which unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phase_builders import MIB, make_phase, planned, run_with, table

from sonde.findings.assessment import Assessment, assess_phase_rate, describe_variation, format_phase_rate
from sonde.findings.caveats import convert_caveat_to_json
from sonde.findings.classification import Classification
from sonde.findings.variation import RateVariation
from sonde.model.line_members import ByteCounts, IntervalSeconds, PhaseRates, Rate, TrainingResult, TreeShape
from sonde.model.lines import Finding, SeriesLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord

WARNING = Finding(id="noisy", severity="warning", text="others were busy.", advice="Ask them.")
INVALID_FINDING = Finding(id="clock", severity="invalid")


def test_assessment_lists_caveats_once_in_a_fixed_order() -> None:
    caveats = (WARNING, replace(WARNING, text=" others were busy"), INVALID_FINDING)
    assessment = Assessment(
        Classification.BURST, "from storage", "invalid", caveats, "M.", "S.", "T.", "N.", "G.", "U."
    )
    assert assessment.classification_text == "From storage."
    assert assessment.caveat_sentence == "Doubtful: others were busy; clock."
    assert assessment.detail_sentences == (assessment.caveat_sentence, "M.", "T.", "S.", "N.", "G.", "U.")
    assert assessment.to_json() == {
        "classification": "burst",
        "validity": "invalid",
        "classification_text": "From storage.",
        "caveats": [
            {"id": "noisy", "severity": "warning", "text": "others were busy.", "advice": "Ask them."},
            {"id": "noisy", "severity": "warning", "text": " others were busy", "advice": "Ask them."},
            {"id": "clock", "severity": "invalid"},
        ],
        "variation": "M.", "stragglers": "S.", "cache_rate": "T.",
        "slow_nodes": "N.", "slow_targets": "G.", "slow_units": "U.",
    }  # fmt: skip


def test_bare_number_reports_only_its_classification() -> None:
    assessment = Assessment(Classification.UNKNOWN, "nothing\N{NO-BREAK SPACE}was moved")
    assert (assessment.caveat_sentence, assessment.detail_sentences, assessment.validity) == ("", (), "good")
    assert assessment.to_json() == {
        "classification": "unknown",
        "validity": "good",
        "classification_text": "Nothing was moved.",
    }
    assert convert_caveat_to_json(Finding()) == {"severity": "info"}


def test_rate_is_formatted_in_the_unit_of_the_phase() -> None:
    assert replace_no_break_spaces(format_phase_rate(2e6, is_operation_rate=False)) == "2.00 MB/s"
    assert replace_no_break_spaces(format_phase_rate(2000.0, is_operation_rate=True)) == "2,000 op/s"
    moved = RateVariation("drift", 1.0, 1.0, before=100.0, after=200.0)
    assert replace_no_break_spaces(describe_variation(moved, True, 9.0)) == "rose gradually from 100 op/s to 200 op/s"


def make_phase_with_series(
    phase: PhaseRecord, slices: list[int], slice_s: float, ops: list[int] | None = None, active: int = 1
) -> PhaseRecord:
    line = SeriesLine(
        phase="p", slice_s=slice_s, bytes=tuple(slices), ops=tuple(ops or slices), active=(active,) * len(slices)
    )
    phase.series.append(line)
    return phase


def describe_phase_variation(phase: PhaseRecord, interval: str = "total", **plan: Any) -> str:
    return replace_no_break_spaces(assess_phase_rate(run_with(phase, **plan), phase, interval).variation)


def test_variation_of_less_than_half_a_second_is_not_described() -> None:
    phases = {
        count: make_phase(moved=count * MIB, operation_count=count, seconds=count / 20, direct=True)
        for count in (9, 10)
    }
    assert describe_phase_variation(make_phase_with_series(phases[9], [MIB] * 9, 0.05)) == ""
    assert (
        describe_phase_variation(make_phase_with_series(phases[10], [MIB] * 10, 0.05))
        == "Steady, ±1 % around 21.0 MB/s."
    )


def test_small_operations_move_in_operations_and_small_files_in_files() -> None:
    """Operations have two levels while bytes are constant: only the operations are described, as they explain the
    rate."""

    def phase(**begin: Any) -> PhaseRecord:
        record = make_phase(moved=3000 * 512, operation_count=3000, seconds=6.0, direct=True, **begin)
        return make_phase_with_series(record, [51200] * 30, 0.2, [150] * 10 + [75] * 20)

    assert describe_phase_variation(phase()) == "Fell from 750 op/s to 375 op/s after 2.00 s."
    assert describe_phase_variation(phase(tree=TreeShape())) == "Fell from 750 files/s to 375 files/s after 2.00 s."


def test_rate_limited_by_accelerators_is_not_reported_as_falling() -> None:
    """The queues of samples fill, then accelerators take what they need."""
    slices = [4 * MIB] * 10 + [MIB] * 20
    phase = make_phase_with_series(
        make_phase(moved=60 * MIB, operation_count=60, seconds=3.0, direct=True), slices, 0.1
    )
    assert phase.end is not None
    phase.end = replace(phase.end, training=TrainingResult(accelerators=2, utilization=0.6))
    assert describe_phase_variation(phase).startswith("Fell from 41.9 MB/s to 10.5 MB/s")
    phase.findings.append(Finding(id="rate_limited", severity="info"))
    assert describe_phase_variation(phase) == ""
    phase.end = replace(phase.end, training=None)  # a limit of the plan: storage may still fall
    assert describe_phase_variation(phase).startswith("Fell from")


def test_variation_is_compared_with_the_displayed_interval() -> None:
    """The transfer is twice as fast as the whole, and the series is that of the transfer."""
    phase = make_phase_with_series(
        make_phase(moved=20 * MIB, operation_count=20, seconds=4.0, direct=True), [MIB] * 20, 0.1
    )
    assert phase.end is not None
    assert phase.end.rates.total is not None
    transfer = Rate(20 * MIB, 20, 2.0, 10.0 * MIB, 10.0)
    phase.end = replace(phase.end, rates=replace(phase.end.rates, transfer=transfer))
    assert describe_phase_variation(phase) == ""
    assert describe_phase_variation(phase, "transfer") == "Steady, ±1 % around 10.5 MB/s."
    phase.end = replace(phase.end, rates=PhaseRates())
    assert describe_phase_variation(phase) == ""
    phase.end = None
    assert describe_phase_variation(phase) == ""


def test_slow_task_of_a_metadata_phase_is_reported_in_files() -> None:
    phase = make_phase("write", moved=0, operation_count=2100, seconds=1.0, tree=TreeShape())
    phase.tasks.append(table(("task", "ops_per_s"), *((index, 100.0) for index in range(20)), (20, 50.0)))
    judged = assess_phase_rate(run_with(phase), phase)
    assert replace_no_break_spaces(judged.stragglers) == "Task 20 reached 50.0 files/s, the median task 100 files/s."


@pytest.mark.parametrize(
    ("changed_members", "is_printed"),
    [
        ({}, True),
        ({"bytes": ByteCounts(MIB, MIB, MIB, 0)}, False),
        ({"rates": PhaseRates(total=Rate(MIB, 1, 4.0, 2.5e8))}, False),
        ({"rates": PhaseRates(transfer=Rate(MIB, 1, 1.0, 1e9))}, False),
        ({"seconds": IntervalSeconds(fsync=0.0)}, False),
        ({"seconds": IntervalSeconds()}, False),
    ],
)
def test_page_cache_rate_appears_only_with_a_separate_flush_time(
    changed_members: dict[str, Any], is_printed: bool
) -> None:
    phase = make_phase("write")
    assert phase.end is not None
    rates = PhaseRates(total=Rate(MIB, 1, 4.0, 2.5e8), transfer=Rate(MIB, 1, 1.0, 1e9))
    phase.end = replace(phase.end, bytes=ByteCounts(MIB, MIB, 0, MIB), rates=rates, seconds=IntervalSeconds(fsync=3.0))
    phase.end = replace(phase.end, **changed_members)
    judged = assess_phase_rate(run_with(phase, **planned(io={"fsync": "end"})), phase)
    text = "The page cache took it at 1.00 GB/s, which is not a storage number."
    assert replace_no_break_spaces(judged.cache_rate) == (text if is_printed else "")
    transfer_assessment = assess_phase_rate(run_with(phase), phase, "transfer")
    assert transfer_assessment.cache_rate == "", "beside the transfer alone it is the number itself"


def test_fall_to_zero_during_fsync_is_reported_as_fsync() -> None:
    variation = RateVariation("steps", parts=((0.0, 4e8), (2.0, 0.0)))
    assert replace_no_break_spaces(describe_variation(variation, False, 3.0, 1.0)) == (
        "transferred at 400 MB/s; after 2.00 s only the fsync was left, for 1.00 s"
    )
    assert "fell from 400 MB/s" in replace_no_break_spaces(describe_variation(variation, False, 3.0))


def test_range_explains_only_a_rate_within_it() -> None:
    variation = RateVariation("uneven", mean=440.0, low=230.0, high=434.0)
    assert not variation.has_levels_matching_rate(467.0)
    assert variation.has_levels_matching_rate(420.0)
