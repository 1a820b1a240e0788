# SPDX-License-Identifier: Apache-2.0
"""Remarks on phases whose answer is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from phase_builders import run_with

from sonde.findings.irregularities import describe_irregularities, describe_late_tasks, describe_periodic_dips
from sonde.findings.phase_timeline import PhaseTimeline, build_timeline
from sonde.model.lines import (
    NodeLine,
    PhaseBeginLine,
    PhaseEndLine,
    SeriesLine,
    TableLine,
)
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import make_recorded_run


def make_timeline(bytes_per_slice: np.ndarray) -> PhaseTimeline:
    slices = tuple(int(rate) for rate in bytes_per_slice)
    count = len(slices)
    line = SeriesLine(
        t=0.0, phase="read", slice_s=0.1, scope="all", bytes=slices, ops=(1,) * count, active=(2,) * count
    )
    timeline = build_timeline(replace(PhaseRecord(PhaseBeginLine(t=0.0, phase="read")), series=[line]))
    assert timeline is not None
    return timeline


def test_periodic_dips_are_reported_with_their_period() -> None:
    random = np.random.default_rng(1)
    rates = 1e8 * np.exp(random.normal(0, 0.1, 200))
    rates[np.arange(200) % 25 < 5] *= 0.3
    match = re.fullmatch(
        r"The rate fell by (\d+) % again and again: 8 dips, one every (\S+)\s+s\.",
        describe_periodic_dips(make_timeline(rates), counts_operations=False),
    )
    assert match
    assert int(match[1]) == pytest.approx(70, abs=3)
    assert float(match[2]) == pytest.approx(2.5, abs=0.1)


def test_single_dip_is_not_reported_as_periodic() -> None:
    random = np.random.default_rng(2)
    rates = 1e8 * np.exp(random.normal(0, 0.1, 200))
    assert describe_periodic_dips(make_timeline(rates), counts_operations=False) == ""
    rates[50:60] *= 0.1
    assert describe_periodic_dips(make_timeline(rates), counts_operations=False) == ""
    assert describe_periodic_dips(None, counts_operations=False) == ""


def describe_task_delays(seconds: list[float], stopped_by: str = "volume", tasks_a_node: int = 100) -> str:
    """The sentence about tasks with these durations; nodes have names."""
    rows = tuple((task, task // tasks_a_node, 1.0, 1.0 + delay_s) for task, delay_s in enumerate(seconds))
    table = TableLine(phase="p", columns=("task", "node", "start_s", "end_s"), rows=rows)
    end = PhaseEndLine(phase="p", stopped_by=stopped_by)
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="write"), end, tasks=[table])
    record = RecordReader()
    record.nodes = [NodeLine(node=number, host=f"nid{number}") for number in range(5)]
    record.phases["p"] = phase
    run = make_recorded_run(record)
    assert describe_irregularities(run, phase, None, counts_operations=False) == [
        text for text in [describe_late_tasks(run, phase)] if text
    ]
    return replace_no_break_spaces(describe_late_tasks(run, phase))


def test_late_task_is_blamed_if_all_tasks_had_equal_work() -> None:
    uneven = [10.0] * 11 + [14.0]
    text = "Without task 11 the run would have been 40 % faster."
    assert describe_task_delays(uneven) == text
    assert describe_task_delays(uneven, "stonewall") == text
    assert describe_task_delays(uneven, "time") == "", "who is stopped by the clock makes nobody wait"
    assert describe_task_delays([10.0] * 12) == ""
    assert describe_task_delays([10.0, 20.0]) == "", "of two nobody is the slow one"


def test_node_with_only_late_tasks_is_blamed_by_host() -> None:
    seconds = [10.0] * 12 + [14.0] * 3
    assert describe_task_delays(seconds, tasks_a_node=3) == "Without node nid4 the run would have been 40 % faster."


def test_slow_task_of_three_and_unnamed_node_are_identified() -> None:
    assert describe_task_delays([10.0, 10.0, 14.0]) == "Without task 2 the run would have been 40 % faster."
    seconds = [10.0] * 18 + [14.0] * 3
    assert describe_task_delays(seconds, tasks_a_node=3) == "Without node 6 the run would have been 40 % faster."


def test_dips_of_operations_are_reported_for_operation_phases() -> None:
    """Of 200 slices of 0.1 s, the first five of every 25 have a third of the operations and the same bytes."""
    random = np.random.default_rng(1)
    rates = 1e6 * np.exp(random.normal(0, 0.1, 200))
    rates[np.arange(200) % 25 < 5] *= 0.3
    ops = tuple(int(rate) for rate in rates)
    line = SeriesLine(phase="read", slice_s=0.1, scope="all", bytes=(10**8,) * 200, ops=ops, active=(2,) * 200)
    phase = replace(PhaseRecord(PhaseBeginLine(phase="read")), series=[line])
    timeline, run = build_timeline(phase), make_recorded_run(RecordReader())
    assert describe_periodic_dips(timeline, counts_operations=False) == ""
    text = describe_periodic_dips(timeline, counts_operations=True)
    assert replace_no_break_spaces(text) == "The rate fell by 69 % again and again: 8 dips, one every 2.47 s."
    assert describe_irregularities(run, phase, timeline, counts_operations=True) == [text]
    assert describe_irregularities(run, phase, timeline, counts_operations=False) == []


def test_nothing_is_remarked_of_a_phase_without_an_end() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="read"))
    assert describe_late_tasks(run_with(phase), phase) == ""
    assert describe_periodic_dips(None, False) == ""
