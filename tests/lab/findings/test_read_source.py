# SPDX-License-Identifier: Apache-2.0
"""Whether a read came from memory or from storage follows from what happened during the phase."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.classification import Classification
from sonde.findings.read_source import find_cache_and_device_contradiction
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.telemetry.file_format import TELEMETRY_FORMAT

MIB = 1 << 20
EPOCH = 1_795_003_200.0  # 2026-11-18T12:00:00Z


def make_run(
    folder: Path,
    device_bytes: float | None,
    residency: float | None = 0.0,
    transfer: int = MIB,
    order: str = "sequential",
    median_ns: float = 1e6,
    direct: bool = False,
    file_system: dict[str, Any] | None = None,
    other_phases: tuple[dict[str, Any], ...] = (),
    last_fraction: float = 0.97,
) -> RecordedRun:
    """A run with one read of 256 MiB from second 10 to 70, in which the device read `device_bytes`; None: unsampled."""
    tested = {"type": "ext4", "mount_point": "/", "block_device": {"name": "sda"}, **(file_system or {})}
    volume = 256 * MIB
    begin = {"op": "read", "order": order, "transfer_bytes": transfer, "direct": direct, "measured": True}
    end = {
        "bytes": {"planned": volume, "transferred": volume, "read": volume, "written": 0},
        "ops": {"planned": volume // transfer, "done": volume // transfer, "read": volume // transfer},
        "rates": {"total": {"bytes": volume, "seconds": 60.0, "bytes_per_s": volume / 60, "ops_per_s": 1.0}},
        "latency": {"read": {"count": volume // transfer, "p50_ns": median_ns, "mean_ns": median_ns}},
        **({"residency": residency} if residency is not None else {}),
    }
    lines: list[dict[str, Any]] = [
        {"type": "run", "t": 0, "schema": "sonde-record/2", "started": "2026-11-18T12:00:00.000000Z", "plan": {}},
        {"type": "node", "t": 0, "node": 0, "host": "n1", "page_bytes": 4096, "file_system": tested},
        *other_phases,
        {"type": "phase_begin", "t": 10, "phase": "p", "backend": "posix", **begin},
        {"type": "phase_end", "t": 70, "phase": "p", "stopped_by": "volume", **end},
        {"type": "end", "t": 70, "status": "done"},
    ]
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if device_bytes is not None:
        is_nfs = tested["type"] == "nfs4"
        source, part = ("nfs", str(tested["mount_point"])) if is_nfs else ("disks", "sda")
        metric = "nfs_read_bytes" if is_nfs else "disk_read_bytes"
        header = {"type": "telemetry", "schema": TELEMETRY_FORMAT, "host": "n1", "sources": {source: [metric]}}
        fractions = {5.0: 0.0, 9.9: 0.0, 10.1: 0.02, 69.9: last_fraction, 70.1: 1.0, 75.0: 1.0}
        values = {second: 1e6 + fraction * device_bytes for second, fraction in fractions.items()}
        samples = [
            {"type": "sample", "time": EPOCH + second, source: {part: [value]}} for second, value in values.items()
        ]
        (folder / "telemetry.ndjson").write_text("".join(json.dumps(line) + "\n" for line in (header, *samples)))
    return read_recorded_run_folder(folder)


def classify_only_phase(run: RecordedRun) -> tuple[Classification, str]:
    assessment = assess_phase_rate(run, next(phase for phase in run.phases if phase.id == "p"))
    return assessment.classification, replace_no_break_spaces(assessment.classification_clause)


@pytest.mark.parametrize(
    ("served", "classification", "clause"),
    [
        (1.0, Classification.STORAGE, "was in the page cache before, and sda read all of it"),
        (0.6, Classification.CACHE, "partly served from page cache (sda read at most 60 % of the bytes)"),
        (0.01, Classification.CACHE, "served from page cache (sda read at most 1.0 % of the bytes)"),
        (0.0002, Classification.CACHE, "served from page cache (sda read less than 0.1 % of the bytes)"),
        (0.0, Classification.CACHE, "served from page cache (sda read none of the bytes)"),
        (None, Classification.STORAGE, "was in the page cache before (device reads were not counted)"),
    ],
)
def test_cold_read_is_storage_when_the_device_served_it(
    tmp_path: Path, served: float | None, classification: Classification, clause: str
) -> None:
    run = make_run(tmp_path, None if served is None else served * 256 * MIB)
    assert classify_only_phase(run)[0] is classification
    assert clause in classify_only_phase(run)[1]


def test_uncertain_device_reads_are_printed_as_a_range(tmp_path: Path) -> None:
    classification, clause = classify_only_phase(make_run(tmp_path, 256 * MIB, last_fraction=0.5))
    assert classification is Classification.STORAGE
    assert "and sda read between 48 % and 100 % of the bytes" in clause


@pytest.mark.parametrize("type_", ["btrfs", "lustre"])
def test_counters_that_do_not_count_the_bytes_do_not_decide(tmp_path: Path, type_: str) -> None:
    run = make_run(tmp_path, 0.0, file_system={"type": type_, "network": type_ == "lustre"})
    assert classify_only_phase(run)[0] is Classification.STORAGE


def test_client_counters_of_an_nfs_mount_decide(tmp_path: Path) -> None:
    mount = {"type": "nfs4", "network": True, "mount_point": "/home", "block_device": {}}
    assert classify_only_phase(make_run(tmp_path, 1e6, file_system=mount))[0] is Classification.CACHE


def test_direct_read_is_storage_whatever_the_device_counted(tmp_path: Path) -> None:
    run = make_run(tmp_path, 0.0, direct=True, median_ns=900.0, order="random_permute")
    assert classify_only_phase(run) == (Classification.STORAGE, "from storage: direct I/O; sustained for 1 min 00 s")


@pytest.mark.parametrize(
    ("median_ns", "file_system", "classification"),
    [
        (2_000.0, {}, Classification.CACHE),
        (40_000.0, {}, Classification.STORAGE),
        (2_000.0, {"source": "/dev/pmem0"}, Classification.STORAGE),
    ],
)
def test_random_read_faster_than_storage_is_cached(
    tmp_path: Path, median_ns: float, file_system: dict[str, Any], classification: Classification
) -> None:
    run = make_run(tmp_path, None, 0.0, 4096, "random_permute", median_ns, file_system=file_system)
    assert classify_only_phase(run)[0] is classification


def test_random_read_faster_than_direct_reads_is_cached(tmp_path: Path) -> None:
    begin = {"op": "read", "order": "random_permute", "transfer_bytes": 4096, "direct": True}
    end = {"latency": {"read": {"count": 9, "p50_ns": 40_000.0}}}
    direct = (
        {"type": "phase_begin", "t": 1, "phase": "direct", **begin},
        {"type": "phase_end", "t": 2, "phase": "direct", **end},
    )
    run = make_run(tmp_path, 256 * MIB, 0.0, 4096, "random_permute", 8_000.0, other_phases=direct)
    assert classify_only_phase(run)[0] is Classification.CACHE
    assert "took 8.00 µs or less, direct reads 40.0 µs" in classify_only_phase(run)[1]


@pytest.mark.parametrize(("transfer", "classification"), [(1, Classification.CACHE), (4096, Classification.STORAGE)])
def test_operations_much_smaller_than_a_page_are_cached(
    tmp_path: Path, transfer: int, classification: Classification
) -> None:
    run = make_run(tmp_path, 256 * MIB, 0.0, transfer, median_ns=381.0)
    assert classify_only_phase(run)[0] is classification


@pytest.mark.parametrize(
    ("last_fraction", "classification", "clause"),
    [
        (0.97, Classification.STORAGE, "from storage: sda read all of it during the phase; sustained for 1 min 00 s"),
        (0.5, Classification.UNKNOWN, "how much of it came from the page cache is not known"),
    ],
)
def test_unknown_residency_is_decided_by_the_device(
    tmp_path: Path, last_fraction: float, classification: Classification, clause: str
) -> None:
    run = make_run(tmp_path, 256 * MIB, None, last_fraction=last_fraction)
    assert classify_only_phase(run) == (classification, clause)


def test_residency_and_counters_that_disagree_are_a_finding(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1e6)
    finding = find_cache_and_device_contradiction(run, run.phases[0])
    assert finding is not None
    assert finding.id == "cache_disagreement"
    assert "0 % of the data was in the page cache before the phase, yet sda read at most 0.4 %" in finding.text
    assert assess_phase_rate(run, run.phases[0]).caveats == (finding,)
    assert assess_phase_rate(run, run.phases[0]).validity == "doubtful"


def test_residency_and_counters_that_agree_give_no_finding(tmp_path: Path) -> None:
    cold = make_run(tmp_path, 256 * MIB)
    assert not assess_phase_rate(cold, cold.phases[0]).caveats
    warm = make_run(tmp_path, 0.0, residency=1.0)
    assert not assess_phase_rate(warm, warm.phases[0]).caveats
