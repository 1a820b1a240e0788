# SPDX-License-Identifier: Apache-2.0
"""What a number is about follows from what the record holds, whoever asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonde.findings.doubts import doubts_of, verdict_of_phase
from sonde.findings.standing import Standing, standing_of
from sonde.model.lines import (
    FileSystem,
    Finding,
    Latency,
    Moved,
    NodeLine,
    Operations,
    PhaseBegin,
    PhaseEnd,
    Rate,
    Rates,
    TreatmentLine,
)
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import Run, run_of

GIB = 1 << 30


def phase(
    seconds: float = 3.0,
    op: str = "read",
    direct: bool = False,
    resident: float | None = 0.0,
    fsync: int = 0,
    planned: int = GIB,
    moved: int = GIB,
    failed: int = 0,
) -> PhaseRecord:
    """A phase that took `seconds`, and 1 s less without its fsync."""
    writes = op == "write"
    whole, part = (Rate(moved, 1024, took, moved / took, 1024 / took) for took in (seconds, max(seconds - 1, 0.1)))
    end = PhaseEnd(
        phase="p",
        bytes=Moved(planned, moved, 0 if writes else moved, moved if writes else 0),
        ops=Operations(1, 1, failed=failed),
        latency={"fsync": Latency(count=fsync)} if fsync else {},
        rates=Rates(total=whole, transfer=part),
        resident=resident,
    )
    return PhaseRecord(PhaseBegin(phase="p", op=op, direct=direct), end)


def run(one: PhaseRecord, file_system: FileSystem | None = None) -> Run:
    record = RecordReader()
    record.machines.append(
        NodeLine(host="n", memory_bytes=16 * GIB, file_system=file_system or FileSystem(type="ext4"))
    )
    record.phases["p"] = one
    return run_of(record)


def told(one: PhaseRecord, interval: str = "total", file_system: FileSystem | None = None) -> tuple[Standing, str]:
    standing, because = standing_of(run(one, file_system), one, interval)
    return standing, plain(because)


@pytest.mark.parametrize(
    ("known", "standing", "words"),
    [
        (phase(), Standing.BURST, "from storage: 0 % of the data was in the page cache; a burst of 3.00 s"),
        (phase(60.0), Standing.STORAGE, "sustained for 1 min 00 s"),
        (phase(0.2), Standing.SHORT, "over in 200 ms: too short to trust"),
        (phase(resident=0.37), Standing.CACHE, "37 % of the data was there"),
        (phase(resident=0.37, direct=True), Standing.BURST, "from storage: direct I/O"),
        (phase(resident=None), Standing.UNKNOWN, "how much of it came from the page cache is not known"),
        (phase(moved=3 * GIB), Standing.CACHE, "read more than once, so partly from page cache"),
        (phase(moved=3 * GIB, direct=True), Standing.BURST, "from storage"),
        (phase(moved=60 * GIB, planned=20 * GIB), Standing.BURST, "from storage"),
        (phase(op="write"), Standing.CACHE, "into page cache, not made durable: not a storage number"),
        # However much it was: the engine warns alike (tests/engine/results/validity.cpp).
        (phase(op="write", moved=60 * GIB, planned=60 * GIB), Standing.CACHE, "into page cache, not made durable"),
        (phase(op="write", fsync=1), Standing.BURST, "to storage: fsync at the end; a burst of 3.00 s"),
        (phase(op="write", direct=True), Standing.BURST, "to storage: direct I/O, not flushed"),
        (phase(failed=3), Standing.FAILED, "3 operations failed"),
    ],
)
def test_what_a_number_counts(known: PhaseRecord, standing: Standing, words: str) -> None:
    assert told(known)[0] is standing
    assert words in told(known)[1]


def test_bytes_without_a_counted_operation_and_operations_without_bytes_are_something() -> None:
    """Only where neither is there nothing was moved."""
    counted, empty = phase(moved=0, direct=True), phase(direct=True)
    assert empty.end is not None
    assert counted.end is not None
    assert told(counted)[1] != "nothing was moved"
    assert told(replace(empty, end=replace(empty.end, ops=Operations(1, 0))))[1] != "nothing was moved"
    nothing = replace(counted, end=replace(counted.end, ops=Operations(1, 0)))
    assert told(nothing) == (Standing.UNKNOWN, "nothing was moved")


def test_each_standing_has_its_heading() -> None:
    assert [one.heading for one in Standing] == [
        "Storage",
        "Storage, for seconds only: bursts that may have ended in caches of devices or servers",
        "Too short to trust",
        "Page cache: not storage numbers",
        "Memory: no storage is involved",
        "Synthetic backend: no storage is involved",
        "Not decided: storage or cache",
        "Not valid",
        "Failed or not finished",
    ]


def test_what_memory_held_twice_over_may_have_been_read_from_memory() -> None:
    """Data larger than all memory cannot have stayed there; data of unknown memory may."""
    one = phase(moved=60 * GIB, planned=20 * GIB)
    known = run(one)
    known.record.machines[0] = replace(known.record.machines[0], memory_bytes=None)
    assert standing_of(known, one)[0] is Standing.CACHE


def test_a_write_counts_as_storage_only_with_its_fsync() -> None:
    one = phase(op="write", fsync=4)
    assert told(one)[0] is Standing.BURST
    assert told(one, "transfer") == (Standing.CACHE, "into page cache: not a storage number")
    assert told(phase(op="write", direct=True), "transfer")[0] is Standing.BURST


def test_numbers_of_a_memory_file_system_are_never_storage() -> None:
    for one in (phase(60.0, direct=True), phase(60.0, op="write", fsync=1), phase(60.0)):
        for kind in (FileSystem(type="tmpfs"), FileSystem(type="odd", memory_backed=True)):
            assert told(one, file_system=kind)[0] is Standing.MEMORY
    assert (
        told(phase(), file_system=FileSystem(type="tmpfs"))[1] == "files on tmpfs live in memory: not a storage number"
    )


def test_residency_after_the_treatment_counts_when_the_phase_does_not_say() -> None:
    one = phase(resident=None)
    one.treatments.append(TreatmentLine(phase="p", kind="fadvise", resident_after=0.0))
    assert told(one)[0] is Standing.BURST


NOISY = Finding(id="noisy_node", severity="warning", phase="p", text="other processes used 2.0 cores")
SUSPECT = Finding(id="cache_suspect", severity="warning", phase="p", text="the data was there before")


def test_a_warning_makes_a_number_doubtful_and_leaves_it_one_of_storage() -> None:
    one = phase()
    assert verdict_of_phase(run(one), one) == "good"
    one.findings += [NOISY, Finding(id="late_start", severity="info", phase="p", text="x")]
    assert told(one)[0] is Standing.BURST
    assert verdict_of_phase(run(one), one) == "doubtful"
    assert doubts_of(run(one), one, Standing.BURST) == (NOISY,)


def test_what_the_standing_says_is_no_further_doubt() -> None:
    one = phase()
    one.findings += [SUSPECT, NOISY]
    assert told(one) == (Standing.CACHE, "may have been served from page cache: not a storage number")
    assert doubts_of(run(one), one, Standing.CACHE) == (NOISY,)
    assert verdict_of_phase(run(one), one) == "doubtful"


def test_a_finding_about_the_whole_run_weighs_on_each_of_its_numbers() -> None:
    one = phase()
    known = run(one)
    known.record.findings.append(Finding(id="clock", severity="invalid", text="clocks differ"))
    assert verdict_of_phase(known, one) == "invalid"
    assert [doubt.id for doubt in doubts_of(known, one, Standing.BURST)] == ["clock"]
