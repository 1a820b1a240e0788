# SPDX-License-Identifier: Apache-2.0
"""Classification of a phase with its reason, interruptions, errors and flushes, from records with known contents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from phase_builders import make_phase, planned, run_with

from sonde.findings.classification import (
    Classification,
    classify_number,
    describe_flush,
    describe_interruption,
    format_error_line,
)
from sonde.model.line_members import FileSystemFacts, LatencySummary, TreeShape
from sonde.model.lines import ErrorLine, Finding, PhaseBeginLine, ProgressLine, TreatmentLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord

NETWORK = FileSystemFacts("nfs", network=True)
TREE = TreeShape()


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


def test_empty_synthetic_and_invalid_phases_are_classified() -> None:
    nothing = make_phase(moved=0, operation_count=0)
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


def test_error_without_a_sentence_is_composed_from_its_members() -> None:
    full = ErrorLine(operation="write", path="/a/b", host="nid7", name="ENOSPC", errno=28)
    assert format_error_line(full) == "write of /a/b failed on nid7: ENOSPC"
    assert format_error_line(replace(full, name="")) == "write of /a/b failed on nid7: errno 28"
    assert format_error_line(ErrorLine()) == "operation failed: no reason recorded"
    assert format_error_line(replace(full, text="its own words")) == "its own words"


@pytest.mark.parametrize(
    ("op", "io", "expected_text"),
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
def test_flush_description_follows_operation_and_sync(op: str, io: dict[str, str], expected_text: str) -> None:
    phase = make_phase(op)
    assert describe_flush(run_with(phase, **planned(io=io)), phase) == expected_text


def test_timed_fsync_is_reported_even_if_unplanned() -> None:
    phase = make_phase("write")
    assert phase.end is not None
    phase.end = replace(phase.end, latency={"fsync": LatencySummary(count=1)})
    assert describe_flush(run_with(phase), phase) == "fsync at the end"


@pytest.mark.parametrize("file_system_type", ["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"])
def test_each_memory_file_system_is_recognized(file_system_type: str) -> None:
    phase = make_phase(direct=True)
    assert classify_number(run_with(phase, FileSystemFacts(file_system_type)), phase)[0] is Classification.MEMORY
