# SPDX-License-Identifier: Apache-2.0
"""Names, details, classifications, movements and members in words, each from a record of which all is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_phase import make_phase, planned, run_with, table

from sonde.findings.assessment import assess_phase_rate, describe_variation, is_reported_in_operations
from sonde.findings.best_numbers import determine_work_kind
from sonde.findings.caveats import format_caveat
from sonde.findings.classification import (
    Classification,
    classify_number,
    describe_flush,
    describe_interruption,
    format_error_line,
)
from sonde.findings.irregularities import describe_late_tasks, describe_periodic_dips
from sonde.findings.node_history import collect_node_history, describe_repeated_stragglers
from sonde.findings.phase_summary import (
    assess_phase,
    describe_access,
    format_rate_terms,
    get_transfer_size,
    make_phase_heading,
)
from sonde.findings.phase_timeline import build_timeline
from sonde.findings.stragglers import collect_node_rates, collect_task_rates, compute_straggler_limit, find_stragglers
from sonde.findings.variation import RateVariation, analyze_rate_variation
from sonde.model.lines import (
    ByteCounts,
    ErrorLine,
    FileSystemFacts,
    Finding,
    IntervalSeconds,
    LatencySummary,
    NodeLine,
    PhaseBeginLine,
    PhaseRates,
    ProgressLine,
    Rate,
    RunLine,
    SeriesLine,
    TreatmentLine,
    TreeShape,
)
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader

NETWORK = FileSystemFacts("nfs", network=True)


TREE, FOLDERS = TreeShape(), TreeShape(objects="directories")


@pytest.mark.parametrize(
    ("phase", "plan", "name"),
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
        (make_phase("read", files=100, done=100), planned(files={"mapping": "many"}), "Open and read files"),
        (make_phase("read", files=99, done=100), planned(files={"mapping": "many"}), "Sequential read"),
        (make_phase("read", direct=True), planned(io={"queue_depth": 32}), "Sequential read, direct, 32 in flight"),
    ],
)
def test_what_was_done_has_a_name(phase: PhaseRecord, plan: dict[str, Any], name: str) -> None:
    assert make_phase_heading(run_with(phase, **plan), phase) == name


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

    large = make_phase(moved=3 * 10**9, done=300)
    assert headline(large) == (
        "1.00 GB/s",
        "954 MiB/s for 3.00 s",
        "3,000,000,000 B / 3.0000 s, first open to last close",
    )
    small = make_phase(moved=300 * 4096, done=300)
    assert headline(small) == ("100 op/s", "410 kB/s for 3.00 s", "300 operations / 3.0000 s, first open to last close")
    names = make_phase("stat", moved=0, done=300)
    assert headline(names)[:2] == ("100 files/s", "300 in 3.00 s")
    for op in ("mktree", "rmtree"):
        assert headline(make_phase(op, moved=0, done=300))[0] == "100 dirs/s"
    none = make_phase()
    none.end = replace(none.end, rates=PhaseRates()) if none.end else None
    summary = assess_phase(run_with(none), none).summary
    assert (summary.rate, summary.secondary_rate, summary.rate_terms) == (None, "", "")
    assert replace_no_break_spaces(format_rate_terms(Rate(1 << 30, 7, 1.302), False)) == "1,073,741,824 B / 1.3020 s"


@pytest.mark.parametrize(("size", "operations"), [(65535, True), (65536, False)])
def test_operations_below_64_kib_are_counted_as_operations(size: int, operations: bool) -> None:
    assert is_reported_in_operations(make_phase(moved=size * 10, done=10)) == operations
    assert not is_reported_in_operations(make_phase(moved=0, done=0))
    assert not is_reported_in_operations(PhaseRecord(PhaseBeginLine(phase="p")))


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (op, "not made durable: not a storage number")
        for op in ("remove", "mktree", "create", "rename", "cycle", "rmtree")
    ]
    + [
        (op, "names in the memory of this node: not a storage number")
        for op in ("stat", "open_close", "readdir", "walk")
    ],
)
def test_names_of_a_local_file_system_are_in_memory(op: str, text: str) -> None:
    phase = make_phase(op, moved=0)
    assert classify_number(run_with(phase), phase) == (Classification.CACHE, text)


@pytest.mark.parametrize("op", ["remove", "mktree", "create", "rename", "rmtree"])
def test_the_servers_of_a_network_file_system_change_names(op: str) -> None:
    phase = make_phase(op, moved=0)
    classification, because = classify_number(run_with(phase, NETWORK), phase)
    assert classification is Classification.BURST
    assert replace_no_break_spaces(because) == "at the servers, which changed the names; a burst of 3.00 s"


@pytest.mark.parametrize("op", ["stat", "open_close", "readdir", "walk"])
def test_names_of_network_file_systems_are_unknown_until_dropped(op: str) -> None:
    """Clients of NFS, Lustre and GPFS keep attributes; a treatment that was planned and not done changes nothing."""
    phase = make_phase(op, moved=0)
    unknown = (Classification.UNKNOWN, "how many of the names this node still knew is not known")
    assert classify_number(run_with(phase, NETWORK), phase) == unknown
    phase.treatments.append(TreatmentLine(phase=phase.id, kind="drop_page_cache", outcome="failed"))
    phase.treatments.append(TreatmentLine(phase=phase.id, kind="sleep", outcome="done"))
    assert classify_number(run_with(phase, NETWORK), phase) == unknown
    # without root only the data of files was asked for
    phase.treatments.append(TreatmentLine(phase=phase.id, kind="drop_page_cache", outcome="done"))
    assert classify_number(run_with(phase, NETWORK), phase) == unknown
    phase.treatments.append(
        TreatmentLine(phase=phase.id, kind="drop_page_cache", outcome="done", metadata_cache_dropped=True)
    )
    classification, because = classify_number(run_with(phase, NETWORK), phase)
    assert classification is Classification.BURST
    assert (
        replace_no_break_spaces(because)
        == "from the servers: this node had dropped its metadata cache; a burst of 3.00 s"
    )


def test_classification_values_match_names_in_archives() -> None:
    names = (
        *("storage", "burst", "short", "cache", "memory", "synthetic", "simulated", "unknown", "invalid", "failed"),
    )
    assert tuple(classification.value for classification in Classification) == names
    assert len({classification.group_heading for classification in Classification}) == len(names)


def test_what_moved_nothing_what_is_synthetic_and_what_is_invalid() -> None:
    nothing = make_phase(moved=0, done=0)
    assert classify_number(run_with(nothing), nothing) == (Classification.UNKNOWN, "nothing was moved")
    for backend in ("null", "paced"):
        phase = make_phase(backend=backend)
        classification, because = classify_number(run_with(phase), phase)
        assert (classification, because) == (
            Classification.SYNTHETIC, f"the backend “{backend}” moves no data: not a storage number",
        )  # fmt: skip
    wrong = make_phase()
    wrong.findings.append(Finding(id="x", severity="invalid", phase="p", text="clocks differ."))
    assert classify_number(run_with(wrong), wrong) == (Classification.INVALID, "clocks differ")


@pytest.mark.parametrize(
    ("seconds", "has_tree", "classification"),
    [
        (0.49, False, Classification.SHORT),
        (0.5, False, Classification.BURST),
        (49.9, False, Classification.BURST),
        (50.0, False, Classification.STORAGE),
        (0.09, True, Classification.SHORT),
        (0.1, True, Classification.BURST),
    ],
)
def test_how_long_it_lasted_decides(seconds: float, has_tree: bool, classification: Classification) -> None:
    phase = make_phase(seconds=seconds, direct=True, tree=TREE if has_tree else None)
    assert classify_number(run_with(phase), phase)[0] is classification


def test_why_a_phase_has_no_result() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="read"))
    assert classify_number(run_with(phase), phase) == (Classification.FAILED, "it did not end")
    phase.progress = ProgressLine(phase="p", bytes=5 * 10**9, phase_s=3.0)
    assert (
        replace_no_break_spaces(describe_interruption(run_with(phase), phase))
        == "it did not end; last heard of after 5.00 GB in 3.00 s"
    )
    assert (
        replace_no_break_spaces(describe_interruption(run_with(phase, status="interrupted"), phase))
        == "interrupted after 5.00 GB in 3.00 s"
    )
    phase.errors.append(ErrorLine(phase="p", text="no space left."))
    assert replace_no_break_spaces(describe_interruption(run_with(phase), phase)) == (
        "stopped by an error after 5.00 GB in 3.00 s: no space left"
    )
    for stopped in ("error", "interrupt"):
        ended = make_phase(moved=10**9)
        assert ended.end is not None
        ended.end = replace(ended.end, stopped_by=stopped)
        assert classify_number(run_with(ended, status="interrupted"), ended)[0] is Classification.FAILED
        assert (
            replace_no_break_spaces(describe_interruption(run_with(ended, status="interrupted"), ended))
            == "interrupted after 1.00 GB"
        )


def test_an_error_without_a_sentence_is_put_together() -> None:
    full = ErrorLine(operation="write", path="/a/b", host="nid7", name="ENOSPC", errno=28)
    assert format_error_line(full) == "write of /a/b failed on nid7: ENOSPC"
    assert format_error_line(replace(full, name="")) == "write of /a/b failed on nid7: errno 28"
    assert format_error_line(ErrorLine()) == "operation failed: no reason recorded"
    assert format_error_line(replace(full, text="its own words")) == "its own words"


@pytest.mark.parametrize(
    ("op", "io", "text"),
    [
        ("write", {"sync": "dsync", "fsync": "end"}, "O_DSYNC"),
        ("rewrite", {"sync": "sync"}, "O_SYNC"),
        ("mixed", {"fsync": "per_op"}, "fsync after every write"),
        ("duplex", {"fsync": "end"}, "fsync at the end"),
        ("write", {"fsync": "end_timed_separately"}, "fsync at the end"),
        ("write", {"fsync": "none"}, ""),
        ("read", {"fsync": "end"}, ""),
    ],
)
def test_how_data_was_made_durable(op: str, io: dict[str, str], text: str) -> None:
    phase = make_phase(op)
    assert describe_flush(run_with(phase, **planned(io=io)), phase) == text


def test_an_fsync_that_was_timed_was_done_though_no_plan_says_so() -> None:
    phase = make_phase("write")
    assert phase.end is not None
    phase.end = replace(phase.end, latency={"fsync": LatencySummary(count=1)})
    assert describe_flush(run_with(phase), phase) == "fsync at the end"


@pytest.mark.parametrize(
    ("moved", "text"),
    [
        (RateVariation("steady", 1e9, 1e9, 0.98e9, 1.02e9), "steady, ±2 % around 1.00 GB/s"),
        (RateVariation("steady", 1e9, 1e9, 1e9, 1e9), "steady, ±1 % around 1.00 GB/s"),
        (RateVariation("uneven", 1e9, 1e9, 5e8, 2e9),
         "uneven, between 500 MB/s and 2.00 GB/s for nine tenths of the time"),
        (RateVariation("drift", 1e9, 1e9, before=5e8, after=1e9), "rose gradually from 500 MB/s to 1.00 GB/s"),
        (RateVariation("stalls", 1e9, stalled_s=2.0, moving=1e9),
         "stood still for 2.00 s of 12.0 s; otherwise 1.00 GB/s"),
        (RateVariation("steps", parts=((0.0, 1e9), (4.0, 5e8))), "fell from 1.00 GB/s to 500 MB/s after 4.00 s"),
        (RateVariation("steps", parts=((0.0, 1e9), (4.0, 5e8), (6.0, 2e9))),
         "fell from 1.00 GB/s to 500 MB/s after 4.00 s, then rose to 2.00 GB/s after 6.00 s"),
        (RateVariation("short"), ""),
    ],
)  # fmt: skip
def test_each_movement_in_words(moved: RateVariation, text: str) -> None:
    assert replace_no_break_spaces(describe_variation(moved, False, 12.0)) == text


def test_the_spread_is_half_of_nine_tenths_over_the_median() -> None:
    assert RateVariation("steady", median=10.0, low=8.0, high=14.0).relative_spread == 0.3
    assert RateVariation("short").relative_spread == 0.0
    ramp = analyze_rate_variation([float(rate) for rate in range(100, 200)] * 1, [1] * 100, 1.0)
    assert ramp.kind == "drift"
    swing = analyze_rate_variation([100.0, 200.0] * 50, [1] * 100, 0.5)
    assert swing.kind in ("steady", "uneven")
    assert analyze_rate_variation([1.0] * 7, [1] * 7, 1.0).kind == "short"
    assert analyze_rate_variation([1.0] * 8, [1] * 8, 1.0).kind == "steady"


def test_nine_tenths_lie_between_low_and_high() -> None:
    """Sixty rates from 1 to 60 in a mixed order: the 5th and 95th percentile by linear interpolation."""
    rates = np.random.default_rng(3).permutation(np.arange(1.0, 61.0))
    variation = analyze_rate_variation(rates.tolist(), [1] * 60, 1.0)
    assert (variation.low, variation.high) == pytest.approx((np.quantile(rates, 0.05), np.quantile(rates, 0.95)))
    assert (variation.median, variation.mean) == pytest.approx((30.5, 30.5))


def test_steps_begin_at_the_time_of_the_phase() -> None:
    """Two slices before all tasks are at work, then twenty at one rate and twenty at another, 0.5 s each."""
    variation = analyze_rate_variation([1.0] * 2 + [40.0] * 20 + [10.0] * 20, [1, 1] + [2] * 40, 0.5)
    assert variation.kind == "steps"
    assert [number for part in variation.parts for number in part] == pytest.approx([1.0, 80.0, 11.0, 20.0])


def test_task_rate_is_recorded_or_bytes_over_its_own_time() -> None:
    phase = make_phase()
    phase.tasks.append(table(("task", "node", "start_s", "end_s", "bytes", "ops"), (0, 0, 1.0, 3.0, 800, 8),
                             (1, 7, 2.0, 2.0, 800, 8)))  # fmt: skip
    first, second = collect_task_rates(run_with(phase), phase, False)
    assert (first.name, first.value, first.host) == ("task 0", 400.0, "nid1")
    assert (second.name, second.value, second.host) == ("task 1", 0.0, "node 7")
    assert [member.value for member in collect_task_rates(run_with(phase), phase, True)] == [4.0, 0.0]
    recorded = make_phase()
    recorded.tasks.append(table(("bytes_per_s", "bytes", "seconds"), (5.0, 100, 2.0)))
    assert [
        (member.name, member.value, member.host) for member in collect_task_rates(run_with(recorded), recorded, False)
    ] == [("task 0", 5.0, "")]
    assert collect_task_rates(run_with(recorded), recorded, True) == []  # no operations
    lacking = make_phase()
    lacking.tasks.append(table(("task", "bytes", "start_s"), (0, 100, 2.0)))
    assert collect_task_rates(run_with(lacking), lacking, False) == []
    assert collect_task_rates(run_with(make_phase()), make_phase(), False) == []


def test_nodes_have_their_names_and_rates() -> None:
    phase = make_phase()
    phase.nodes.append(table(("node", "bytes", "ops", "seconds"), (0, 100, 10, 2.0), (3, 50, 5, 1.0)))
    assert [(member.name, member.value) for member in collect_node_rates(run_with(phase), phase, False)] == [
        ("nid1", 50.0),
        ("node 3", 50.0),
    ]
    assert collect_node_rates(run_with(make_phase()), make_phase(), False) == []


def test_who_is_slow_is_below_the_middle_by_the_factor() -> None:
    assert compute_straggler_limit([10.0, 10.0, 10.0]) == pytest.approx(10.0 / 1.15)
    assert compute_straggler_limit([10.0, 1.0]) == 0.0
    assert compute_straggler_limit([0.0, 0.0, 10.0]) == 0.0
    assert compute_straggler_limit([]) == 0.0
    assert find_stragglers([]) is None


def test_the_slow_task_is_named_with_how_many_were_slow_too() -> None:
    def slow(*rates: float) -> str:
        phase = make_phase(moved=10**9, done=10)
        rows = [(index, 0, rate) for index, rate in enumerate(rates)]
        phase.tasks.append(table(("task", "node", "bytes_per_s"), *rows))
        return replace_no_break_spaces(assess_phase_rate(run_with(phase), phase).stragglers)

    even = [1e9] * 20
    assert slow(*even) == ""
    assert slow(*even, 5e8) == "Task 20 on nid1 reached 500 MB/s, the median task 1.00 GB/s."
    assert slow(*even, 5e8, 4e8) == (
        "Task 21 on nid1 reached 400 MB/s, the median task 1.00 GB/s; 1 other task was slow too."
    )
    assert slow(*even, 5e8, 4e8, 5e8).endswith("; 2 other tasks were slow too.")


def test_what_the_page_cache_took_is_said_apart() -> None:
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


def test_caveat_is_its_text_or_id_up_to_600_characters() -> None:
    assert format_caveat(Finding(id="noisy", text=" others were busy. ")) == "others were busy"
    assert format_caveat(Finding(id="noisy")) == "noisy"
    assert format_caveat(Finding(text="x" * 600)) == "x" * 600
    assert format_caveat(Finding(text="x" * 601)) == "x" * 600 + "…"


def node(number: int, host: str) -> NodeLine:
    return NodeLine(node=number, host=host)


def a_run_of_nodes(run: str, rates: dict[str, float]) -> tuple[RecordReader, PhaseRecord]:
    reader = RecordReader()
    reader.run = RunLine(id=run)
    reader.nodes += [node(index, host) for index, host in enumerate(rates) if not host.startswith("node ")]
    phase = make_phase()
    phase.nodes.append(table(("node", "bytes_per_s"), *enumerate(rates.values())))
    return reader, phase


def test_node_slow_in_three_runs_is_named_by_host_or_number() -> None:
    even = {f"n{index}": 100.0 for index in range(6)}
    runs = [
        a_run_of_nodes(f"r{index}", even | {"node 6": 50.0} | ({"n0": 50.0} if index < 2 else {})) for index in range(3)
    ]
    history = collect_node_history([*runs, a_run_of_nodes("small", {"n0": 1.0, "n1": 2.0})])
    assert history is not None
    assert (history.hosts, history.runs) == (("n0", "n1", "n2", "n3", "n4", "n5", "node 6"), ("r0", "r1", "r2"))
    assert history.slow == ((6, 3),)
    assert (
        describe_repeated_stragglers(history)
        == "Slower than the middle node again and again: node 6 (50 %, in 3 of 3 runs)."
    )
    assert history.shares[1].tolist() == [1.0, 1.0, 1.0]
    calm = collect_node_history(runs[:2])
    assert calm is not None
    assert describe_repeated_stragglers(calm) == ""
    assert collect_node_history([a_run_of_nodes("two", {"a": 1.0, "b": 2.0, "c": 0.0})]) is None
    rates = {f"n{node:02}": 50.0 if node < 7 else 100.0 for node in range(40)}
    wide_history = collect_node_history([a_run_of_nodes(f"r{run}", rates) for run in range(3)])
    assert wide_history is not None
    assert describe_repeated_stragglers(wide_history).endswith("n04 (50 %, in 3 of 3 runs) and 2 more.")


def test_the_profile_of_known_slices() -> None:
    phase = make_phase()
    assert phase.end is not None
    phase.end = replace(phase.end, seconds=IntervalSeconds(elapsed=2.25))
    phase.series.append(
        SeriesLine(phase="p", slice_s=0.5, bytes=(0, 10, 10, 10, 5, 0, 0), ops=(0, 1), active=(1, 2, 2, 2, 1))
    )
    result_profile = build_timeline(phase)
    assert result_profile is not None
    assert result_profile.edges == (0.0, 0.5, 1.0, 1.5, 2.0, 2.25)
    assert result_profile.bytes_per_s == (0.0, 20.0, 20.0, 20.0, 20.0)
    assert result_profile.ops_per_s == (0.0, 2.0, 0.0, 0.0, 0.0)
    assert result_profile.active == (1, 2, 2, 2, 1)
    assert result_profile.steady == (0.5, 2.0)
    assert (result_profile.tasks, result_profile.joined, result_profile.slice_s) == (2, 1, 0.5)
    for elapsed, last in ((2.0, 2.5), (2.5, 2.5), (None, 2.5), (9.0, 2.5)):
        phase.end = replace(phase.end, seconds=IntervalSeconds(elapsed=elapsed))
        timeline = build_timeline(phase)
        assert timeline is not None
        assert timeline.edges[-1] == last
    for none in (
        (),
        (SeriesLine(phase="p", slice_s=0.0, bytes=(1,)),),
        (SeriesLine(phase="p", slice_s=1.0, bytes=(0,)),),
    ):
        phase.series[:] = none
        assert build_timeline(phase) is None


@pytest.mark.parametrize(("slices", "joined", "slices_drawn"), [(240, 1, 240), (241, 2, 121), (480, 2, 240)])
def test_many_slices_are_joined_whole(slices: int, joined: int, slices_drawn: int) -> None:
    phase = make_phase()
    phase.series.append(
        SeriesLine(phase="p", slice_s=1.0, bytes=(4,) * slices, ops=(1,) * slices, active=(1,) * slices)
    )
    timeline = build_timeline(phase)
    assert timeline is not None
    assert (timeline.joined, len(timeline.bytes_per_s)) == (joined, slices_drawn)
    assert set(timeline.bytes_per_s) == {4.0}
    assert timeline.edges[-1] == slices


def test_steady_is_within_10_percent_and_drift_may_end_near_zero() -> None:
    assert analyze_rate_variation([90.0, 110.0] * 30, [1] * 60, 0.5).kind == "steady"
    assert analyze_rate_variation([88.0, 112.0] * 30, [1] * 60, 0.5).kind == "uneven"
    down = analyze_rate_variation([100.0 - 0.995 * index for index in range(100)], [1] * 100, 1.0)
    assert down.kind == "drift"
    assert 0 <= down.after < 2


def test_levels_explain_a_number_within_a_tenth() -> None:
    moved = RateVariation("steady", mean=100.0)
    assert moved.has_levels_of_rate(91.0)
    assert moved.has_levels_of_rate(110.0)
    assert not moved.has_levels_of_rate(90.0)
    assert not moved.has_levels_of_rate(112.0)
    assert not moved.has_levels_of_rate(0.0)


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"])
def test_each_file_system_that_lives_in_memory_is_known(kind: str) -> None:
    phase = make_phase(direct=True)
    assert classify_number(run_with(phase, FileSystemFacts(kind)), phase)[0] is Classification.MEMORY


@pytest.mark.parametrize(
    ("op", "verb"),
    [("write", "writes"), ("rewrite", "rewrites"), ("read", "reads"), ("reread", "reads"), ("read_only", "reads")],
)
def test_each_direction_has_its_best(op: str, verb: str) -> None:
    phase = make_phase(op)
    kind = determine_work_kind(run_with(phase), phase)
    assert kind is not None
    assert (kind.verb, kind.random) == (verb, "")
    assert determine_work_kind(run_with(make_phase("mixed")), make_phase("mixed")) is None


def test_nothing_is_remarked_of_a_phase_without_an_end() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="read"))
    assert describe_late_tasks(run_with(phase), phase) == ""
    assert describe_periodic_dips(None, False) == ""
