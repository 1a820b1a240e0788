# SPDX-License-Identifier: Apache-2.0
"""Where one classification ends and the next begins, and the words of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phase_builders import make_phase, planned, run_with

from sonde.findings.classification import (
    Classification,
    classify_number,
    describe_flush,
    describe_interruption,
    format_error_line,
    get_tested_file_system,
    is_memory_backed,
    is_one_file_per_operation,
    is_unfinished,
)
from sonde.model.line_members import (
    ByteCounts,
    FileSystemFacts,
    LatencySummary,
    OperationCounts,
    PhaseRates,
    Rate,
    TreeShape,
)
from sonde.model.lines import ErrorLine, Finding, NodeLine, PhaseBeginLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run

NETWORK = FileSystemFacts("nfs", network=True)


def classify_phase(
    phase: PhaseRecord, interval: str = "total", run: RecordedRun | None = None
) -> tuple[Classification, str]:
    classification, because = classify_number(run or run_with(phase), phase, interval)
    return classification, replace_no_break_spaces(because)


def make_ended_phase(phase: PhaseRecord, **end: Any) -> PhaseRecord:
    assert phase.end is not None
    phase.end = replace(phase.end, **end)
    return phase


PARTLY = "partly served from page cache ({} of the data was there): not a storage number"


@pytest.mark.parametrize(
    ("residency", "classification", "text"),
    [
        (
            0.0,
            Classification.BURST,
            "from storage: 0 % of the data was in the page cache before (device reads were not counted)"
            "; a burst of 3.00 s",
        ),
        (
            0.01,
            Classification.BURST,
            "from storage: 1.0 % of the data was in the page cache before (device reads were not counted)"
            "; a burst of 3.00 s",
        ),
        (0.011, Classification.CACHE, PARTLY.format("1.1 %")),
        (0.5, Classification.CACHE, PARTLY.format("50 %")),
        (0.949, Classification.CACHE, PARTLY.format("95 %")),
        (0.95, Classification.CACHE, "served from page cache: not a storage number"),
        (1.0, Classification.CACHE, "served from page cache: not a storage number"),
        (None, Classification.UNKNOWN, "how much of it came from the page cache is not known"),
    ],
)
def test_residency_of_1_percent_is_cold_and_of_95_is_cached(
    residency: float | None, classification: Classification, text: str
) -> None:
    assert classify_phase(make_ended_phase(make_phase(), residency=residency)) == (classification, text)


@pytest.mark.parametrize(
    ("cache", "classification", "text"),
    [
        (
            "cold",
            Classification.BURST,
            "from storage: 0 % of the data was in the page cache before (device reads were not counted)"
            "; a burst of 3.00 s",
        ),
        ("direct", Classification.BURST, "from storage: direct I/O; a burst of 3.00 s"),
        ("warm", Classification.CACHE, "may have been served from page cache: not a storage number"),
        ("unknown", Classification.UNKNOWN, "how much of it came from the page cache is not known"),
    ],
)
def test_read_without_measurement_is_classified_by_the_plan(
    cache: str, classification: Classification, text: str
) -> None:
    assert classify_phase(make_phase(cache=cache)) == (classification, text)


@pytest.mark.parametrize(
    ("planned_bytes", "read_bytes", "node_memory_bytes", "is_reread"),
    [
        (1000, 1050, (2000,), False),
        (1000, 1051, (2000,), True),
        (1000, 2000, (1000,), False),
        (1000, 2000, (1001,), True),
        (1000, 2000, (600, 401), True),
        (1000, 2000, (600, 400), False),
        (1000, 2000, (None,), True),
        (0, 2000, (2000,), False),
        (None, 2000, (2000,), False),
    ],
)
def test_rereads_that_fit_into_memory_count_as_cache(
    planned_bytes: int | None, read_bytes: int, node_memory_bytes: tuple[int | None, ...], is_reread: bool
) -> None:
    phase = make_ended_phase(make_phase(), bytes=ByteCounts(planned_bytes, read_bytes, read_bytes, 0), residency=0.0)
    record = RecordReader()
    record.nodes = [
        NodeLine(node=index, memory_bytes=memory_bytes) for index, memory_bytes in enumerate(node_memory_bytes)
    ]
    classification, text = classify_phase(phase, run=make_recorded_run(record))
    assert (classification is Classification.CACHE) == is_reread
    assert is_reread == (text == "read more than once, so partly from page cache: not a storage number")


def test_cache_finding_with_first_pass_bytes_means_reread() -> None:
    phase = make_ended_phase(make_phase(), residency=0.0)
    phase.findings.append(Finding(id="cache_suspect", severity="warning", evidence={"first_pass_bytes": 5}))
    assert classify_phase(phase) == (
        Classification.CACHE, "read more than once, so partly from page cache: not a storage number",
    )  # fmt: skip
    phase.findings[:] = [Finding(id="other", severity="warning", evidence={"first_pass_bytes": 5})]
    assert classify_phase(phase)[0] is Classification.BURST


@pytest.mark.parametrize(
    ("io", "interval", "phase_members", "expected_text"),
    [
        ({"fsync": "end"}, "total", {}, "to storage: fsync at the end; a burst of 3.00 s"),
        ({"fsync": "end"}, "transfer", {}, "into page cache: not a storage number"),
        ({"fsync": "per_op"}, "transfer", {}, "to storage: fsync after every write; a burst of 3.00 s"),
        ({"sync": "dsync"}, "transfer", {}, "to storage: O_DSYNC; a burst of 3.00 s"),
        ({}, "transfer", {}, "into page cache: not a storage number"),
        ({}, "transfer", {"direct": True}, "to storage: direct I/O, not flushed; a burst of 3.00 s"),
        ({"fsync": "end"}, "transfer", {"direct": True}, "to storage: fsync at the end; a burst of 3.00 s"),
        ({}, "total", {}, "into page cache, not made durable: not a storage number"),
        ({"fsync": "end"}, "total", {"cache": "warm"}, "into page cache, not made durable: not a storage number"),
    ],
)
def test_write_classification_follows_its_durability(
    io: dict[str, str], interval: str, phase_members: dict[str, Any], expected_text: str
) -> None:
    phase = make_phase("write", **phase_members)
    assert classify_phase(phase, interval, run_with(phase, **planned(io=io)))[1] == expected_text


def make_lasting_phase(**seconds: float) -> PhaseRecord:
    rates = {name: Rate(1 << 30, 1000, value, 1e9, 300.0) for name, value in seconds.items()}
    return make_ended_phase(make_phase(direct=True), rates=PhaseRates(**rates))


def test_duration_is_that_of_the_interval_or_its_fallback() -> None:
    assert classify_phase(make_lasting_phase(total=60.0, steady=0.2), "steady")[0] is Classification.SHORT
    assert (
        classify_phase(make_lasting_phase(total=60.0, steady=0.2))[1]
        == "from storage: direct I/O; sustained for 1 min 00 s"
    )
    assert classify_phase(make_lasting_phase(total=60.0), "steady")[0] is Classification.STORAGE
    assert (
        classify_phase(make_lasting_phase(transfer=0.4))[1]
        == "from storage: direct I/O; over in 400 ms: too short to trust"
    )
    assert classify_phase(make_ended_phase(make_phase(direct=True), rates=PhaseRates())) == (
        Classification.STORAGE,
        "from storage: direct I/O",
    )
    assert classify_phase(make_lasting_phase(total=60.0, transfer=1.0))[0] is Classification.STORAGE


@pytest.mark.parametrize(
    ("nodes", "shift", "is_known"),
    [(2, {"by": "node"}, True), (1, {"by": "node"}, False), (2, None, False), (2, {}, False)],
)
def test_items_created_by_another_node_come_from_the_servers(nodes: int, shift: Any, is_known: bool) -> None:
    phase = make_phase("stat", moved=0)
    run = run_with(phase, NETWORK, phases=[{"id": "p"} | ({} if shift is None else {"shift": shift})])
    run.record.nodes += [NodeLine(node=index, file_system=NETWORK) for index in range(1, nodes)]
    expected = (Classification.BURST, "from the servers: another node had made the names; a burst of 3.00 s")
    unknown = (Classification.UNKNOWN, "how many of the names this node still knew is not known")
    assert classify_phase(phase, run=run) == (expected if is_known else unknown)


def test_names_and_small_files_need_a_tenth_of_a_second() -> None:
    for seconds, classification in ((0.099, Classification.SHORT), (0.1, Classification.BURST)):
        names = make_phase("create", moved=0, seconds=seconds)
        assert classify_phase(names, run=run_with(names, NETWORK))[0] is classification
        files = make_phase("read", direct=True, seconds=seconds, tree=TreeShape())
        assert classify_phase(files)[0] is classification


@pytest.mark.parametrize(
    ("done", "files", "mapping", "counts_files"),
    [(100, 100, "many", True), (101, 100, "many", False), (101, None, "many", True), (1, 100, "per_task", False)],
)
def test_operations_are_files_where_none_of_many_files_has_two(
    done: int, files: int | None, mapping: str, counts_files: bool
) -> None:
    phase = make_phase("read", operation_count=done, files=files)
    assert is_one_file_per_operation(run_with(phase, **planned(files={"mapping": mapping})), phase) == counts_files


def test_unfinished_phase_uses_the_file_mapping_of_the_plan() -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="p", op="read", files=3))
    assert is_one_file_per_operation(run_with(phase, **planned(files={"mapping": "many"})), phase)
    assert not is_one_file_per_operation(run_with(phase), phase)
    assert is_one_file_per_operation(run_with(phase), replace(phase, begin=PhaseBeginLine(phase="p", op="stat")))
    assert is_one_file_per_operation(
        run_with(phase), replace(phase, begin=PhaseBeginLine(phase="p", op="read", tree=TreeShape()))
    )


def test_gravest_classification_takes_precedence() -> None:
    """Failed operations before a synthetic backend, that before memory, and what is invalid before all three."""
    phase = make_ended_phase(make_phase("write", backend="null"), ops=OperationCounts(9, 9, failed=1))
    tmpfs = run_with(phase, FileSystemFacts("tmpfs"))
    assert classify_phase(phase, run=tmpfs) == (Classification.FAILED, "1 operation failed")
    phase = make_ended_phase(phase, ops=OperationCounts(9, 9))
    assert classify_phase(phase, run=tmpfs)[0] is Classification.SYNTHETIC
    phase.begin = replace(phase.begin, backend="posix")
    assert classify_phase(phase, run=tmpfs)[0] is Classification.MEMORY
    phase.findings += [Finding(id="w", severity="warning", text="a"), Finding(id="i", severity="invalid", text="b.")]
    assert classify_phase(phase, run=tmpfs) == (Classification.INVALID, "b")


def test_a_run_without_nodes_has_no_file_system_and_is_not_in_memory() -> None:
    run = make_recorded_run(RecordReader())
    assert get_tested_file_system(run) == FileSystemFacts()
    assert not is_memory_backed(run)
    phase = make_phase()
    assert is_memory_backed(run_with(phase, FileSystemFacts("odd", memory_backed=True)))
    assert not is_memory_backed(run_with(phase, FileSystemFacts("odd", memory_backed=False)))
    assert get_tested_file_system(run_with(phase, NETWORK)) is NETWORK


@pytest.mark.parametrize(("stopped_by", "cut"), [("error", True), ("interrupt", True), ("volume", False), ("", False)])
def test_a_phase_is_unfinished_that_an_error_or_a_signal_ended(stopped_by: str, cut: bool) -> None:
    phase = make_ended_phase(make_phase(), stopped_by=stopped_by)
    assert is_unfinished(phase) == cut
    assert is_unfinished(PhaseRecord(PhaseBeginLine(phase="p")))


def test_interruption_text_has_the_first_error_or_the_run_status() -> None:
    phase = make_ended_phase(make_phase(moved=10**9), stopped_by="error")
    assert (
        replace_no_break_spaces(describe_interruption(run_with(phase), phase))
        == "it did not end; last heard of after 1.00 GB"
    )
    phase.errors += [ErrorLine(text="first."), ErrorLine(text="second.")]
    assert (
        replace_no_break_spaces(describe_interruption(run_with(phase), phase))
        == "stopped by an error after 1.00 GB: first"
    )
    silent = PhaseRecord(PhaseBeginLine(phase="p", op="read"), errors=[ErrorLine(operation="open")])
    assert describe_interruption(run_with(silent), silent) == "stopped by an error: open failed: no reason recorded"
    silent.errors.clear()
    assert describe_interruption(run_with(silent, status="interrupted"), silent) == "interrupted"


def test_long_record_texts_are_cut() -> None:
    def cut(made_of: str, length: int) -> str:
        return made_of * length + "…"

    assert format_error_line(ErrorLine(text="x" * 600)) == "x" * 600
    assert format_error_line(ErrorLine(text="x" * 601)) == cut("x", 600)
    error = ErrorLine(operation="w" * 40, path="p" * 300, host="h" * 80, name="n" * 40)
    assert format_error_line(error) == f"{'w' * 40} of {'p' * 300} failed on {'h' * 80}: {'n' * 40}"
    longer = ErrorLine(operation="w" * 41, path="p" * 301, host="h" * 81, name="n" * 41)
    assert format_error_line(longer) == f"{cut('w', 40)} of {cut('p', 300)} failed on {cut('h', 80)}: {cut('n', 40)}"
    phase = make_phase()
    for length, kind in ((40, "k" * 40), (41, cut("k", 40))):
        system = FileSystemFacts("k" * length, memory_backed=True)
        assert (
            classify_phase(phase, run=run_with(phase, system))[1]
            == f"files on {kind} live in memory: not a storage number"
        )
    for length, text in ((300, "i" * 300), (301, cut("i", 300))):
        phase.findings[:] = [Finding(severity="invalid", text="i" * length)]
        assert classify_phase(phase)[1] == text


def test_error_number_zero_is_printed() -> None:
    assert format_error_line(ErrorLine(operation="read", errno=0)) == "read failed: errno 0"


def test_flush_of_the_phase_overrides_that_of_the_plan() -> None:
    phase = make_phase("write")
    recorded_run = run_with(phase, data={"io": {"fsync": "end"}}, phases=[{"id": "p", "io": {"sync": "sync"}}])
    assert describe_flush(recorded_run, phase) == "O_SYNC"
    timed = make_ended_phase(make_phase("write"), latency={"fsync": LatencySummary(count=0)})
    assert describe_flush(run_with(timed), timed) == ""
    assert describe_flush(run_with(phase), PhaseRecord(PhaseBeginLine(phase="p", op="write"))) == ""
