# SPDX-License-Identifier: Apache-2.0
"""The check: plans that fit the machine, figures that say what they count."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.conduct.run import RunSetup
from sonde.experiments.check.check import CheckObserver, CheckResult, FileSystemCheck, describe_zero_size
from sonde.experiments.check.figures import CheckFigure, compute_figures, list_possible_figures, make_headline
from sonde.experiments.check.plans import (
    GIB,
    MIB,
    CalibratedSpeed,
    CheckedMachine,
    build_calibration_plan,
    build_file_calibration_plan,
    estimate_check_seconds,
    plan_check_parts,
)
from sonde.findings.best_numbers import WorkKind
from sonde.findings.classification import Classification
from sonde.launch.engine import find_engine
from sonde.model.errors import MachineError
from sonde.model.line_members import ByteCounts, LatencySummary, OperationCounts
from sonde.model.lines import Finding, PhaseBeginLine, PhaseEndLine
from sonde.model.plan import Plan
from sonde.model.plan_hash import compute_plan_hash
from sonde.model.record import PhaseRecord
from sonde.model.required_space import compute_required_space
from sonde.model.volume import compute_phase_volumes
from sonde.store.archive import Archive

Fake = Callable[..., Path]

ORDINARY = CheckedMachine(
    4, 16 * GIB, 500 * GIB, "ext4", memory_backed=False, direct=True, io_uring=True, evict="fadvise"
)
FAST = CalibratedSpeed(2e9, 3e9, 20_000)

machines = st.builds(
    CheckedMachine,
    cpus=st.integers(1, 256),
    memory=st.integers(GIB // 2, 4096 * GIB),
    available=st.integers(64 * MIB, 10**6 * GIB),
    file_system=st.just("ext4"),
    memory_backed=st.booleans(),
    direct=st.booleans(),
    io_uring=st.booleans(),
    evict=st.sampled_from([None, "fadvise", "drop_page_cache"]),
    discard=st.booleans(),
)
speeds = st.builds(
    CalibratedSpeed,
    write_bytes_per_s=st.floats(1e6, 1e11),
    read_bytes_per_s=st.floats(1e6, 1e11),
    files_per_s=st.floats(1, 1e6),
    removal_bytes_per_s=st.floats(1e7, 1e13),
    removal_files_per_s=st.floats(10, 1e7),
)


@given(machines, speeds, st.booleans())
def test_every_plan_of_a_check_is_valid_and_fits(machine: CheckedMachine, speed: CalibratedSpeed, full: bool) -> None:
    for part in plan_check_parts("/scratch", machine, speed, full):
        plan = Plan.from_document(part.document, "check")
        assert plan.threads == part.tasks
        space = compute_required_space(plan, part.tasks).most_bytes
        # what is smaller than the smallest useful volume is the engine's to refuse, with its own sentence
        smallest = max(16 * MIB, 8 * MIB * part.tasks)
        assert space <= max(0.8 * machine.available, smallest)
        if not full and not part.key.startswith("small"):
            assert space <= max(0.25 * machine.memory, smallest), "a quick check must fit into memory"
        for phase in plan.phases:
            if not machine.direct or machine.memory_backed:
                assert not phase.get("io", {}).get("direct") or (machine.direct and part.key == "random")
            for treatment in phase.get("before", ()):
                assert treatment["kind"] in ("sync", machine.evict)


@settings(max_examples=20, deadline=None)
@given(speeds, speeds, st.booleans())
def test_checks_of_one_machine_share_one_history(
    calibrated: CalibratedSpeed, other: CalibratedSpeed, full: bool
) -> None:
    def hashes(speed: CalibratedSpeed) -> dict[str, str]:
        return {
            part.key: compute_plan_hash(part.document, 1, part.tasks, 1)
            for part in plan_check_parts("/scratch", ORDINARY, speed, full)
        }

    assert hashes(calibrated) == hashes(other)
    assert len(set(hashes(calibrated).values())) == len(hashes(calibrated)), "each part is work of its own"


def test_quick_full_and_fixed_volume_differ_in_history() -> None:
    quick, full_check = (plan_check_parts("/scratch", ORDINARY, FAST, full)[0].document for full in (False, True))
    custom = {name: value for name, value in quick.items() if name != "calibrated"}
    assert len({compute_plan_hash(document, 1, 1, 1) for document in (quick, full_check, custom)}) == 3
    larger = {**custom, "data": {**custom["data"], "access": {"transfer": "1MiB", "volume": "999MiB"}}}
    assert compute_plan_hash(larger, 1, 1, 1) != compute_plan_hash(custom, 1, 1, 1)


def test_a_quick_check_of_an_ordinary_machine_takes_about_a_minute() -> None:
    for speed in (FAST, CalibratedSpeed(1e8, 1.5e8, 500), CalibratedSpeed(2e10, 2e10, 1e5)):
        assert estimate_check_seconds(ORDINARY, speed, is_full_check=False) < 75


def test_a_full_check_moves_more_than_memory_or_is_direct() -> None:
    parts = plan_check_parts("/scratch", ORDINARY, FAST, is_full_check=True)
    sequential = [part for part in parts if part.key.startswith("sequential")]
    assert len(sequential) == 2
    for part in sequential:
        plan = Plan.from_document(part.document, "check")
        volumes = {volume.id: volume for volume in compute_phase_volumes(plan, part.tasks)}
        assert volumes["read-storage"].bytes >= 1.49 * ORDINARY.memory
        assert volumes["write-direct"].time_limit_s == 60.0


def test_a_machine_with_one_core_is_measured_once() -> None:
    keys = [part.key for part in plan_check_parts("/x", replace(ORDINARY, cpus=1), FAST)]
    assert keys.count("sequential-1") == 1
    assert "sequential-all" not in keys


def test_queue_depth_becomes_tasks_without_io_uring() -> None:
    for machine in (replace(ORDINARY, io_uring=False), replace(ORDINARY, direct=False)):
        part = next(part for part in plan_check_parts("/x", machine, FAST) if part.key == "random")
        assert part.tasks == 32
        assert all("backend" not in phase for phase in part.document["phases"])


def test_cached_random_access_has_no_time_limit_but_a_stonewall() -> None:
    part = next(part for part in plan_check_parts("/x", replace(ORDINARY, direct=False), FAST) if part.key == "random")
    for phase in part.document["phases"][1:]:
        assert "time" not in phase["stop"]
        assert "stonewall" in phase["stop"]


def test_calibration_plans_match_the_plan_schema() -> None:
    for document in (build_calibration_plan("/x", 16 * MIB, "fadvise", True), build_file_calibration_plan("/x", 100)):
        Plan.from_document(document, "check")


def make_phase(
    seconds: float = 3.0,
    op: str = "read",
    direct: bool = False,
    residency: float | None = 0.0,
    fsync: int = 0,
    planned_bytes: int = GIB,
    moved_bytes: int = GIB,
    failed: int = 0,
) -> PhaseRecord:
    writes = op == "write"
    latency = {"fsync": LatencySummary(count=fsync)} if fsync else {}
    end = PhaseEndLine(
        phase="p",
        bytes=ByteCounts(planned_bytes, moved_bytes, 0 if writes else moved_bytes, moved_bytes if writes else 0),
        ops=OperationCounts(1, 1, failed=failed),
        latency=latency,
        residency=residency,
    )
    return PhaseRecord(PhaseBeginLine(phase="p", op=op, direct=direct), end)


def test_figure_limited_by_one_task_is_marked() -> None:
    result = {key: (f"run-{key}", _record(key, rate)) for key, rate in (("sequential-1", 1e9), ("sequential-all", 3e9))}
    figures = compute_figures(result, ORDINARY, is_queued=True)
    verdicts = {figure.key: figure.classification_clause for figure in figures}
    assert "limited by one task" in verdicts["read-direct-1"]
    assert "limited by one task" not in verdicts["read-direct-all"]
    assert "limited by one task" not in verdicts["write-cached-1"], "the page cache is not the storage"


def _record(key: str, rate: float) -> Any:
    from sonde.model.line_members import PhaseRates, Rate
    from sonde.model.record import RecordReader

    reader = RecordReader()
    for name, op, direct in (("write", "write", False), ("read-direct", "read", True)):
        record = make_phase(op=op, direct=direct, fsync=int(op == "write"))
        assert record.end is not None
        total = Rate(GIB, 1024, 3.0, rate, rate / MIB)
        reader.phases[name] = replace_end(record, PhaseRates(total=total, transfer=total))
    return reader


def replace_end(record: PhaseRecord, rates: Any) -> PhaseRecord:
    assert record.end is not None
    record.end = replace(record.end, rates=rates)
    return record


def test_keys_of_figures_are_unique() -> None:
    keys = [row.key for row in list_possible_figures(8, True)]
    assert len(keys) == len(set(keys))


def test_headline_uses_only_storage_numbers() -> None:
    cached = CheckFigure(
        "read-cached-1", "s", "l", "bytes_per_s", Classification.CACHE, "v", value=9e10, kind=WorkKind("reads")
    )
    real = CheckFigure(
        "read-direct-1", "s", "l", "bytes_per_s", Classification.BURST, "v", value=1e9, kind=WorkKind("reads")
    )
    assert make_headline([cached, real], ORDINARY) == "Best from storage, in bursts of seconds: reads 1.00 GB/s."
    assert make_headline([cached], ORDINARY).startswith("No number")
    assert "tmpfs" in make_headline([real], replace(ORDINARY, memory_backed=True, file_system="tmpfs"))
    assert "sustained" in make_headline([replace(real, classification=Classification.STORAGE)], ORDINARY)


def test_doubtful_headline_begins_with_its_caveat() -> None:
    noisy = Finding(id="noisy_node", severity="warning", text="other processes used 2.0 cores of this node")
    calm = CheckFigure(
        "read-direct-1", "s", "l", "bytes_per_s", Classification.BURST, "w", value=1e9, kind=WorkKind("reads")
    )
    loud = replace(calm, key="write-storage-1", value=2e9, caveats=(noisy,), kind=WorkKind("writes"))
    unquoted = replace(loud, key="create", unit="files_per_s", kind=None)
    best = "Best from storage, in bursts of seconds: writes 2.00 GB/s, reads 1.00 GB/s."
    assert make_headline([loud, calm], ORDINARY) == f"Doubtful: {noisy.text} (1 of 2 numbers). {best}"
    assert make_headline([loud, replace(calm, caveats=(noisy,))], ORDINARY) == f"Doubtful: {noisy.text}. {best}"
    assert make_headline([replace(loud, caveats=()), calm, unquoted], ORDINARY) == best


def check(target: Path, archive: Path, full: bool = False) -> CheckResult:
    return FileSystemCheck(target, RunSetup(find_engine(), Archive(archive)), full, CheckObserver()).measure_all_parts()


def test_check_runs_all_parts(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine()
    result = check(target, archive)
    assert result.exit_code == 0
    keys = [figure.key for figure in result.figures]
    for key in ("write-cached-1", "write-storage-1", "read-storage-1", "random-read-32", "create", "open-read"):
        assert key in keys
    by_key = {figure.key: figure for figure in result.figures}
    assert by_key["write-storage-1"].value == pytest.approx(5e8), "fsync counts"
    assert by_key["write-cached-1"].value == pytest.approx(1e9), "fsync does not count"
    runs, _ = Archive(archive).read_all_summaries()
    assert {run.group for run in runs} == {result.group}
    assert {run.role for run in runs} == {"check", "calibration"}


def test_a_file_system_without_direct_io_is_measured_without(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine("no-direct")
    result = check(target, archive)
    assert result.exit_code == 0
    assert not result.machine.direct
    assert not any("direct" in figure.key for figure in result.figures)
    assert any("O_DIRECT" in note for note in result.notes)


def test_unflushable_cache_gives_no_cold_reads(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine(residency="0.9")
    result = check(target, archive)
    assert result.machine.evict is None
    assert not any(figure.key.startswith("read-storage") for figure in result.figures)
    assert any("could not be emptied" in note for note in result.notes)


def test_memory_file_system_has_no_storage_figures(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine(type="tmpfs")
    result = check(target, archive)
    assert {figure.classification for figure in result.figures} == {Classification.MEMORY}


def test_failed_part_does_not_stop_the_check(
    fake_engine: Fake, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine()
    original = FileSystemCheck._conduct_run_of_part

    def conduct(self: FileSystemCheck, plan: Plan, name: str, role: str, part: str) -> Any:
        fake_engine("enospc" if part == "sequential-all" else "environment" if part == "random" else "ok")
        return original(self, plan, name, role, part)

    monkeypatch.setattr(FileSystemCheck, "_conduct_run_of_part", conduct)
    result = check(target, archive)
    assert result.exit_code == 1
    assert len(result.notes) == 2
    keys = [figure.key for figure in result.figures]
    assert "create" in keys
    assert not any(key.startswith("random") for key in keys)


def test_part_at_time_limit_does_not_end_check(
    fake_engine: Fake, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine()
    original = FileSystemCheck._conduct_run_of_part

    def conduct(self: FileSystemCheck, plan: Plan, name: str, role: str, part: str) -> Any:
        fake_engine("limit" if part == "sequential-1" else "ok")
        return original(self, plan, name, role, part)

    monkeypatch.setattr(FileSystemCheck, "_conduct_run_of_part", conduct)
    result = check(target, archive)
    assert result.exit_code == 1
    assert any("time limit" in note for note in result.notes)
    assert "create" in [figure.key for figure in result.figures]


def test_interrupted_check_preserves_measured_parts(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine(seconds="0.2")
    messages: list[str] = []

    parts_begun: list[int] = []

    def part(title: str, number: int, count: int, plan: Plan) -> None:
        parts_begun.append(number)

    def line(kind: str, line: object) -> None:
        if parts_begun[-1] == 2 and kind == "phase_begin" and not messages:
            os.kill(os.getpid(), signal.SIGINT)

    setup = RunSetup(find_engine(), Archive(archive), on_stop=lambda: messages.append("stopping"))
    result = FileSystemCheck(target, setup, False, CheckObserver(on_part=part, on_line=line)).measure_all_parts()
    assert result.exit_code == 5
    assert messages == ["stopping"]
    assert len(result.runs) == 2
    assert "write-storage-1" in [figure.key for figure in result.figures]


@pytest.mark.parametrize(
    ("system", "expected_text"),
    [
        ({"type": "proc"}, "proc, which is no file system for data: name another directory"),
        ({}, "a kind of its own, which is no file system for data: name another directory"),
        ({"type": "fuse.ceph-fuse", "network": True}, "its servers have not told theirs yet, so try again in a minute"),
        ({"type": "fuse"}, "which says that it has a size of 0 bytes"),
        ({"type": "nfs", "network": True}, "which says that it has a size of 0 bytes"),
    ],
)
def test_zero_size_message_names_likely_cause(system: dict[str, Any], expected_text: str) -> None:
    assert expected_text in describe_zero_size(system)


@pytest.mark.parametrize(
    ("settings", "expected_text"), [({"type": "iso9660"}, "read-only"), ({"available": 10 * MIB}, "MiB free")]
)
def test_impossible_check_prints_one_sentence(
    fake_engine: Fake, target: Path, archive: Path, settings: dict[str, Any], expected_text: str
) -> None:
    fake_engine(**settings)
    with pytest.raises(MachineError, match=expected_text):
        check(target, archive)


def test_findings_are_stored_in_the_summary(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine(residency="0.5")
    check(target, archive)
    runs, _ = Archive(archive).read_all_summaries()
    findings = [finding for run in runs for finding in run.document["findings"]]
    assert any(finding["id"] == "cache_suspect" for finding in findings)
    assert Finding(id="x").severity == "info"
