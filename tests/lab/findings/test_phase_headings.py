# SPDX-License-Identifier: Apache-2.0
"""Heading, access line and headline rate of a phase, from records with known contents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phase_builders import make_phase, planned, run_with

from sonde.findings.assessment import assess_phase_rate, is_reported_in_operations
from sonde.findings.phase_summary import (
    assess_phase,
    describe_access,
    format_rate_terms,
    get_transfer_size,
    make_phase_heading,
)
from sonde.model.line_members import ByteCounts, IntervalSeconds, PhaseRates, Rate, TreeShape
from sonde.model.lines import PhaseBeginLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord

TREE, FOLDERS = TreeShape(), TreeShape(objects="directories")


@pytest.mark.parametrize(
    ("phase", "plan", "expected_name"),
    [
        (make_phase("read"), {}, "Sequential read"),
        (make_phase("read", direct=True), {}, "Sequential read, direct"),
        (make_phase("reread"), planned(access={"order": "reverse"}), "Backward reread"),
        (make_phase("write"), planned(access={"order": "stride"}), "Strided write"),
        (make_phase("rewrite"), planned(access={"order": "random_permute"}), "Random rewrite"),
        (make_phase("mixed"), planned(access={"order": "random_replace"}), "Random mixed read and write"),
        (make_phase("read_only"), planned(access={"order": "zigzag"}), "Read"),
        (make_phase("duplex"), {}, "Simultaneous read and write"),
        (make_phase("sing"), {}, "Sequential sing"),
        (make_phase(""), {}, "Sequential unknown operation"),
        (make_phase("write", tree=TREE), {}, "Create files"),
        (make_phase("rewrite", tree=TREE), {}, "Rewrite files"),
        (make_phase("read", tree=TREE), {}, "Open and read files"),
        (make_phase("reread", tree=TREE), {}, "Reread files"),
        (make_phase("stat"), {}, "Stat files"),
        (make_phase("stat", tree=FOLDERS), {}, "Stat directories"),
        (make_phase("remove"), {}, "Remove files"),
        (make_phase("mktree"), {}, "Make directories"),
        (make_phase("create"), {}, "Create files"),
        (make_phase("open_close"), {}, "Open and close files"),
        (make_phase("readdir"), {}, "List directories"),
        (make_phase("walk"), {}, "Walk trees"),
        (make_phase("rename"), {}, "Rename files"),
        (make_phase("cycle"), {}, "Stat, read, remove and create files"),
        (make_phase("rmtree"), {}, "Remove directories"),
        (make_phase("read", files=100, operation_count=100), planned(files={"mapping": "many"}), "Open and read files"),
        (make_phase("read", files=99, operation_count=100), planned(files={"mapping": "many"}), "Sequential read"),
        (make_phase("read", direct=True), planned(io={"queue_depth": 32}), "Sequential read, direct, 32 in flight"),
    ],
)
def test_phase_heading_follows_operation_and_plan(phase: PhaseRecord, plan: dict[str, Any], expected_name: str) -> None:
    assert make_phase_heading(run_with(phase, **plan), phase) == expected_name


@pytest.mark.parametrize(
    ("phase", "plan", "detail"),
    [
        (make_phase(), {}, "buffered"),
        (make_phase("stat"), {}, "operations on names"),
        (make_phase(direct=True, backend="posix"), planned(access={"transfer": "1MiB"}), "1 MiB transfers · direct"),
        (make_phase(backend="mpiio"), planned(access={"transfer": 4096}), "4 KiB transfers · mpiio · buffered"),
        (make_phase(backend="null"), planned(access={"transfer": "4k"}), "null"),
        (make_phase(backend="x" * 50), {}, "x" * 40 + "… · buffered"),
        (make_phase(), planned(io={"queue_depth": 1}), "buffered"),
        (make_phase(), planned(io={"queue_depth": 2}), "buffered · queue depth 2"),
        (make_phase("write"), planned(io={"fsync": "end"}), "buffered · fsync at the end"),
    ],
)
def test_how_it_was_done_is_one_line(phase: PhaseRecord, plan: dict[str, Any], detail: str) -> None:
    assert replace_no_break_spaces(describe_access(run_with(phase, **plan), phase)) == detail


def test_a_transfer_that_is_no_size_is_none() -> None:
    phase = make_phase()
    for transfer, size in ((4096, 4096.0), ("1MiB", 1048576.0), ("4k", None), (1.5, None), (None, None)):
        assert get_transfer_size(run_with(phase, **planned(access={"transfer": transfer})), phase) == size


def test_the_headline_is_in_the_unit_of_the_phase() -> None:
    def headline(phase: PhaseRecord) -> tuple[str, str, str]:
        summary = assess_phase(run_with(phase), phase).summary
        return (
            replace_no_break_spaces(str(summary.rate)),
            replace_no_break_spaces(summary.secondary_rate),
            replace_no_break_spaces(summary.rate_terms),
        )

    large = make_phase(moved=3 * 10**9, operation_count=300)
    assert headline(large) == (
        "1.00 GB/s",
        "954 MiB/s for 3.00 s",
        "3,000,000,000 B / 3.0000 s, first open to last close",
    )
    small = make_phase(moved=300 * 4096, operation_count=300)
    assert headline(small) == ("100 op/s", "410 kB/s for 3.00 s", "300 operations / 3.0000 s, first open to last close")
    names = make_phase("stat", moved=0, operation_count=300)
    assert headline(names)[:2] == ("100 files/s", "300 in 3.00 s")
    for op in ("mktree", "rmtree"):
        assert headline(make_phase(op, moved=0, operation_count=300))[0] == "100 dirs/s"
    none = make_phase()
    none.end = replace(none.end, rates=PhaseRates()) if none.end else None
    summary = assess_phase(run_with(none), none).summary
    assert (summary.rate, summary.secondary_rate, summary.rate_terms) == (None, "", "")
    assert replace_no_break_spaces(format_rate_terms(Rate(1 << 30, 7, 1.302), False)) == "1,073,741,824 B / 1.3020 s"


@pytest.mark.parametrize(("operation_bytes", "is_counted"), [(65535, True), (65536, False)])
def test_operations_below_64_kib_are_counted_as_operations(operation_bytes: int, is_counted: bool) -> None:
    assert is_reported_in_operations(make_phase(moved=operation_bytes * 10, operation_count=10)) == is_counted
    assert not is_reported_in_operations(make_phase(moved=0, operation_count=0))
    assert not is_reported_in_operations(PhaseRecord(PhaseBeginLine(phase="p")))


def test_page_cache_rate_is_reported_separately() -> None:
    def describe_cache_rate(total_s: float, fsync: float | None = 1.0, **begin: Any) -> str:
        phase = make_phase("write", **begin)
        total, transfer = Rate(10**9, 10, total_s, 10**9 / total_s), Rate(10**9, 10, 1.0, 1e9)
        assert phase.end is not None
        phase.end = replace(
            phase.end,
            bytes=ByteCounts(10**9, 10**9, 0, 10**9),
            rates=PhaseRates(total=total, transfer=transfer),
            seconds=IntervalSeconds(fsync=fsync),
        )
        return replace_no_break_spaces(assess_phase_rate(run_with(phase), phase).cache_rate)

    assert describe_cache_rate(4.0) == "The page cache took it at 1.00 GB/s, which is not a storage number."
    assert describe_cache_rate(1.25) != ""
    assert describe_cache_rate(1.24) == ""
    assert describe_cache_rate(4.0, fsync=None) == ""
    assert describe_cache_rate(4.0, direct=True) == ""
