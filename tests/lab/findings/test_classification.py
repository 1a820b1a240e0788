# SPDX-License-Identifier: Apache-2.0
"""The classification of a number depends only on the content of the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonde.findings.caveats import determine_phase_validity, find_caveats
from sonde.findings.classification import Classification, classify_number
from sonde.model.line_members import ByteCounts, FileSystemFacts, LatencySummary, OperationCounts, PhaseRates, Rate
from sonde.model.lines import Finding, NodeLine, PhaseBeginLine, PhaseEndLine, TreatmentLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run

GIB = 1 << 30


def make_classified_phase(
    seconds: float = 3.0,
    op: str = "read",
    direct: bool = False,
    residency: float | None = 0.0,
    fsync: int = 0,
    planned_bytes: int = GIB,
    moved_bytes: int = GIB,
    failed: int = 0,
) -> PhaseRecord:
    """A phase that took `seconds`, and 1 s less without its fsync."""
    writes = op == "write"
    total, part = (
        Rate(moved_bytes, 1024, took, moved_bytes / took, 1024 / took) for took in (seconds, max(seconds - 1, 0.1))
    )
    end = PhaseEndLine(
        phase="p",
        bytes=ByteCounts(planned_bytes, moved_bytes, 0 if writes else moved_bytes, moved_bytes if writes else 0),
        ops=OperationCounts(1, 1, failed=failed),
        latency={"fsync": LatencySummary(count=fsync)} if fsync else {},
        rates=PhaseRates(total=total, transfer=part),
        residency=residency,
    )
    return PhaseRecord(PhaseBeginLine(phase="p", op=op, direct=direct), end)


def run(phase_record: PhaseRecord, file_system: FileSystemFacts | None = None) -> RecordedRun:
    record = RecordReader()
    record.nodes.append(
        NodeLine(host="n", memory_bytes=16 * GIB, file_system=file_system or FileSystemFacts(type="ext4"))
    )
    record.phases["p"] = phase_record
    return make_recorded_run(record)


def classify_phase(
    phase_record: PhaseRecord, interval: str = "total", file_system: FileSystemFacts | None = None
) -> tuple[Classification, str]:
    classification, because = classify_number(run(phase_record, file_system), phase_record, interval)
    return classification, replace_no_break_spaces(because)


@pytest.mark.parametrize(
    ("phase_record", "classification", "expected_text"),
    [
        (
            make_classified_phase(),
            Classification.BURST,
            "from storage: 0 % of the data was in the page cache before (device reads were not counted)",
        ),
        (make_classified_phase(60.0), Classification.STORAGE, "sustained for 1 min 00 s"),
        (make_classified_phase(0.2), Classification.SHORT, "over in 200 ms: too short to trust"),
        (make_classified_phase(residency=0.37), Classification.CACHE, "37 % of the data was there"),
        (make_classified_phase(residency=0.37, direct=True), Classification.BURST, "from storage: direct I/O"),
        (
            make_classified_phase(residency=None),
            Classification.UNKNOWN,
            "how much of it came from the page cache is not known",
        ),
        (
            make_classified_phase(moved_bytes=3 * GIB),
            Classification.CACHE,
            "read more than once, so partly from page cache",
        ),
        (make_classified_phase(moved_bytes=3 * GIB, direct=True), Classification.BURST, "from storage"),
        (make_classified_phase(moved_bytes=60 * GIB, planned_bytes=20 * GIB), Classification.BURST, "from storage"),
        (
            make_classified_phase(op="write"),
            Classification.CACHE,
            "into page cache, not made durable: not a storage number",
        ),
        # However much it was: the engine warns alike (tests/engine/results/phase_findings.cpp).
        (
            make_classified_phase(op="write", moved_bytes=60 * GIB, planned_bytes=60 * GIB),
            Classification.CACHE,
            "into page cache, not made durable",
        ),
        (
            make_classified_phase(op="write", fsync=1),
            Classification.BURST,
            "to storage: fsync at the end; a burst of 3.00 s",
        ),
        (make_classified_phase(op="write", direct=True), Classification.BURST, "to storage: direct I/O, not flushed"),
        (make_classified_phase(failed=3), Classification.FAILED, "3 operations failed"),
    ],
)
def test_phases_have_their_expected_classification(
    phase_record: PhaseRecord, classification: Classification, expected_text: str
) -> None:
    assert classify_phase(phase_record)[0] is classification
    assert expected_text in classify_phase(phase_record)[1]


def test_bytes_or_operations_alone_count_as_transferred() -> None:
    """Only where neither is there nothing was moved."""
    counted, empty = make_classified_phase(moved_bytes=0, direct=True), make_classified_phase(direct=True)
    assert empty.end is not None
    assert counted.end is not None
    assert classify_phase(counted)[1] != "nothing was moved"
    assert classify_phase(replace(empty, end=replace(empty.end, ops=OperationCounts(1, 0))))[1] != "nothing was moved"
    nothing = replace(counted, end=replace(counted.end, ops=OperationCounts(1, 0)))
    assert classify_phase(nothing) == (Classification.UNKNOWN, "nothing was moved")


def test_each_classification_has_a_heading() -> None:
    assert [classification.group_heading for classification in Classification] == [
        "Storage",
        "Storage, for seconds only: bursts that may have ended in caches of devices or servers",
        "Too short to trust",
        "Page cache: not storage numbers",
        "Memory: no storage is involved",
        "Synthetic backend: no storage is involved",
        "Simulated: nothing was measured",
        "Not decided: storage or cache",
        "Not valid",
        "Failed or not finished",
    ]


def test_reread_data_may_be_cached_if_memory_size_is_unknown() -> None:
    """Data larger than all memory cannot have stayed there; data of unknown memory may."""
    phase_record = make_classified_phase(moved_bytes=60 * GIB, planned_bytes=20 * GIB)
    recorded_run = run(phase_record)
    recorded_run.record.nodes[0] = replace(recorded_run.record.nodes[0], memory_bytes=None)
    assert classify_number(recorded_run, phase_record)[0] is Classification.CACHE


def test_a_write_counts_as_storage_only_with_its_fsync() -> None:
    phase_record = make_classified_phase(op="write", fsync=4)
    assert classify_phase(phase_record)[0] is Classification.BURST
    assert classify_phase(phase_record, "transfer") == (Classification.CACHE, "into page cache: not a storage number")
    assert classify_phase(make_classified_phase(op="write", direct=True), "transfer")[0] is Classification.BURST


def test_numbers_of_a_memory_file_system_are_never_storage() -> None:
    for phase_record in (
        make_classified_phase(60.0, direct=True),
        make_classified_phase(60.0, op="write", fsync=1),
        make_classified_phase(60.0),
    ):
        for kind in (FileSystemFacts(type="tmpfs"), FileSystemFacts(type="odd", memory_backed=True)):
            assert classify_phase(phase_record, file_system=kind)[0] is Classification.MEMORY
    assert (
        classify_phase(make_classified_phase(), file_system=FileSystemFacts(type="tmpfs"))[1]
        == "files on tmpfs live in memory: not a storage number"
    )


def test_residency_defaults_to_that_after_the_treatment() -> None:
    phase_record = make_classified_phase(residency=None)
    phase_record.treatments.append(TreatmentLine(phase="p", kind="fadvise", residency_after=0.0))
    assert classify_phase(phase_record)[0] is Classification.BURST


def test_numbers_of_a_bucket_describe_the_object_store() -> None:
    bucket = FileSystemFacts(type="s3", source="http://host/bucket", network=True)
    for op in ("write", "read", "stat", "create"):
        phase_record = make_classified_phase(op=op, residency=None)
        classification, clause = classify_number(run(phase_record, bucket), phase_record)
        assert classification is Classification.BURST
        assert clause.startswith("by the object store, whose own caches are not known")


NOISY = Finding(id="noisy_node", severity="warning", phase="p", text="other processes used 2.0 cores")
SUSPECT = Finding(id="cache_suspect", severity="warning", phase="p", text="the data was there before")


def test_warning_makes_a_storage_number_doubtful() -> None:
    phase_record = make_classified_phase()
    assert determine_phase_validity(run(phase_record), phase_record) == "good"
    phase_record.findings += [NOISY, Finding(id="late_start", severity="info", phase="p", text="x")]
    assert classify_phase(phase_record)[0] is Classification.BURST
    assert determine_phase_validity(run(phase_record), phase_record) == "doubtful"
    assert find_caveats(run(phase_record), phase_record, Classification.BURST) == (NOISY,)


def test_finding_of_the_classification_is_no_further_caveat() -> None:
    phase_record = make_classified_phase()
    phase_record.findings += [SUSPECT, NOISY]
    assert classify_phase(phase_record) == (
        Classification.CACHE,
        "may have been served from page cache: not a storage number",
    )
    assert find_caveats(run(phase_record), phase_record, Classification.CACHE) == (NOISY,)
    assert determine_phase_validity(run(phase_record), phase_record) == "doubtful"


def test_finding_about_a_run_applies_to_each_of_its_numbers() -> None:
    phase_record = make_classified_phase()
    recorded_run = run(phase_record)
    recorded_run.record.findings.append(Finding(id="clock", severity="invalid", text="clocks differ"))
    assert determine_phase_validity(recorded_run, phase_record) == "invalid"
    assert [caveat.id for caveat in find_caveats(recorded_run, phase_record, Classification.BURST)] == ["clock"]
