# SPDX-License-Identifier: Apache-2.0
"""A phase in words: its heading, its line of details, its rate in both units and what was divided by what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phase_builders import MIB, make_phase, planned, run_with

from sonde.findings.classification import Classification
from sonde.findings.phase_summary import assess_phase, describe_access, format_rate_terms, make_phase_heading
from sonde.model.line_members import Rate, TreeShape
from sonde.model.lines import Finding, PhaseBeginLine, SeriesLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord

TREE, FOLDERS = TreeShape(), TreeShape(objects="directories")


@pytest.mark.parametrize(
    ("op", "begin", "plan", "expected_name"),
    [
        ("write", {}, planned(io={"queue_depth": 1}), "Sequential write"),
        ("write", {}, planned(io={"queue_depth": 2}), "Sequential write, 2 in flight"),
        ("write", {"direct": True}, planned(io={"queue_depth": 1024}), "Sequential write, direct, 1,024 in flight"),
        ("write", {}, planned(io={"queue_depth": "many"}), "Sequential write"),
        ("write", {}, planned(access={"order": ""}), "Sequential write"),
        ("duplex", {}, planned(access={"order": "reverse"}), "Simultaneous read and write"),
        ("mktree", {"tree": FOLDERS}, {}, "Make directories"),
        ("rename", {"tree": FOLDERS}, {}, "Rename directories"),
        ("read", {"tree": FOLDERS}, {}, "Open and read directories"),
        ("sing", {"tree": TREE}, {}, "Sequential sing"),
        ("o" * 40, {}, {}, f"Sequential {'o' * 40}"),
        ("o" * 41, {}, {}, f"Sequential {'o' * 40}…"),
    ],
)
def test_phase_heading_describes_the_work(
    op: str, begin: dict[str, Any], plan: dict[str, Any], expected_name: str
) -> None:
    phase = make_phase(op, **begin)
    assert make_phase_heading(run_with(phase, **plan), phase) == expected_name


@pytest.mark.parametrize(
    ("begin", "plan", "detail"),
    [
        ({"backend": "paced"}, planned(access={"transfer": 0}), "paced"),
        ({"backend": "null"}, planned(access={"transfer": 1}, io={"queue_depth": 4}),
         "1 B transfers · null · queue depth 4"),
        ({"backend": "b" * 40, "direct": True}, {}, f"{'b' * 40} · direct"),
        ({"direct": False}, planned(access={"transfer": "2MiB"}, io={"queue_depth": 2048, "fsync": "per_op"}),
         "2 MiB transfers · buffered · queue depth 2,048 · fsync after every write"),
    ],
)  # fmt: skip
def test_access_description_has_a_fixed_order(begin: dict[str, Any], plan: dict[str, Any], detail: str) -> None:
    phase = make_phase("write", **begin)
    assert replace_no_break_spaces(describe_access(run_with(phase, **plan), phase)) == detail


@pytest.mark.parametrize(
    ("op", "begin", "moved_bytes", "rate", "expected_second"),
    [
        ("write", {"tree": TREE}, 300 * 4096, "100 files/s", "410 kB/s for 3.00 s"),
        ("create", {}, 0, "100 files/s", "300 in 3.00 s"),
        ("readdir", {}, 0, "100 files/s", "300 in 3.00 s"),
        ("read", {}, 300 * 4096, "100 op/s", "410 kB/s for 3.00 s"),
        ("read", {}, 0, "100 op/s", "300 in 3.00 s"),
        ("read", {}, 300 * MIB, "105 MB/s", "100 MiB/s for 3.00 s"),
    ],
)
def test_rate_is_repeated_in_the_secondary_unit(
    op: str, begin: dict[str, Any], moved_bytes: int, rate: str, expected_second: str
) -> None:
    phase = make_phase(op, moved=moved_bytes, operation_count=300, **begin)
    assessed = assess_phase(run_with(phase), phase)
    assert replace_no_break_spaces(str(assessed.summary.rate)) == rate
    assert replace_no_break_spaces(assessed.summary.secondary_rate) == expected_second
    assert assessed.operations == (rate != "105 MB/s")


def test_a_phase_without_an_end_has_no_rate() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"))
    summary = assess_phase(run_with(phase), phase).summary
    assert (summary.rate, summary.secondary_rate, summary.rate_terms) == (None, "", "")
    assert (summary.classification, summary.classification_text, summary.detail_text) == (
        Classification.FAILED,
        "It did not end.",
        "",
    )


def test_rate_terms_have_full_precision() -> None:
    rate = Rate(bytes=1_234_567, ops=8_901, seconds=0.25)
    assert replace_no_break_spaces(format_rate_terms(rate, counts_operations=False)) == "1,234,567 B / 0.250000 s"
    assert replace_no_break_spaces(format_rate_terms(rate, counts_operations=True)) == "8,901 operations / 0.250000 s"
    assert " " not in format_rate_terms(rate, counts_operations=True).split(" / ")[0], "a number stays with its unit"


def test_a_verdict_holds_its_name_its_details_and_all_remarks() -> None:
    phase = make_phase(moved=300 * MIB, direct=True)
    phase.findings.append(Finding(id="noisy", severity="warning", text="others were busy"))
    phase.series.append(SeriesLine(phase="p", slice_s=0.1, bytes=(10 * MIB,) * 30, ops=(1,) * 30, active=(1,) * 30))
    assessed = assess_phase(run_with(phase), phase)
    summary = assessed.summary
    assert (summary.name, replace_no_break_spaces(summary.access)) == ("Sequential read, direct", "direct")
    assert replace_no_break_spaces(summary.classification_text) == "From storage: direct I/O; a burst of 3.00 s."
    assert replace_no_break_spaces(summary.detail_text) == "Doubtful: others were busy. Steady, ±1 % around 105 MB/s."
    assert replace_no_break_spaces(summary.rate_terms) == "314,572,800 B / 3.0000 s, first open to last close"
    assert assessed.phase is phase
    assert assessed.timeline is not None
    assert assessed.timeline.edges[-1] == pytest.approx(3.0)
    bare = replace(phase, series=[])
    assert assess_phase(run_with(bare), bare).timeline is None
