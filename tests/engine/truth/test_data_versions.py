# SPDX-License-Identifier: Apache-2.0
"""Later phases know what earlier ones left: how much of each file, in which version, written by whom.

Verification decides. It expects one version of every block, so a wrong idea of what was written shows as damage
that is not there; and a read beyond what was written finds the end of the file or a hole.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, MISMATCH, Engine, Line, Plan, Result

KIB = 1024
SMALL: Plan = {"transfer": "4KiB", "block": "64KiB", "segments": 2}
OTHER: Plan = {"transfer": "16KiB", "block": "32KiB", "segments": 4}  # the same bytes in other operations
MANY: Plan = {"mapping": "many", "count": 3}


def plan_of(target: Path, *phases: Plan, threads: int = 2, **data: Any) -> Plan:
    return {
        "schema": "sonde-plan/2",
        "id": "versions",
        "target": {"path": str(target), "min_free": 0, "directory": "run"},
        "tasks": {"threads": threads},
        "data": {"access": SMALL, **data},
        "phases": list(phases),
    }


def make_write_phase(phase_id: str = "write", **more: Any) -> Plan:
    return {"id": phase_id, "op": "write", **more}


def make_rewrite_phase(phase_id: str = "rewrite", **more: Any) -> Plan:
    return {"id": phase_id, "op": "rewrite", **more}


def make_read_phase(**more: Any) -> Plan:
    return {"id": "read", "op": "read", "verify": "on_read", **more}


def assert_clean(result: Result, expected_bytes: int, expected_checked_bytes: int | None = None) -> Line:
    """`expected_bytes` bytes were read, and so many compared without a difference; all when not said otherwise."""
    assert result.code == DONE, result.err
    end = result.finished("read")
    assert end["bytes"]["read"] == expected_bytes
    expected_checked_bytes = expected_bytes if expected_checked_bytes is None else expected_checked_bytes
    assert end.get("verify", {"checked_bytes": 0})["checked_bytes"] == expected_checked_bytes
    findings = [finding for finding in result.of("finding") if finding["id"] == "not_verified"]
    assert len(findings) == (expected_checked_bytes < expected_bytes)
    return end


@pytest.mark.parametrize("mapping", ["shared", "per_task"])
@pytest.mark.parametrize(
    ("order", "scope"),
    [("sequential", "task"), ("reverse", "task"), ("random_permute", "task"), ("random_permute", "file")],
)
def test_a_rewrite_that_was_stopped_leaves_two_versions(
    engine: Engine, target: Path, mapping: str, order: str, scope: str
) -> None:
    """Wherever it stopped: each operation is expected in its own version."""
    access = {"transfer": "4KiB", "block": "8MiB", "segments": 1, "order": order, "scope": scope}
    stopped = make_rewrite_phase(stop={"stonewall": "1ms"})
    plan = plan_of(
        target, make_write_phase(), stopped, make_read_phase(data_of="write"), files={"mapping": mapping}, access=access
    )
    result = engine.run(plan)
    assert_clean(result, 2 * 8192 * KIB)
    done = result.finished("rewrite")["bytes"]["transferred"]
    assert 0 < done <= 2 * 8192 * KIB


@pytest.mark.parametrize("access", [SMALL, OTHER])
@pytest.mark.parametrize("file_numbers", [[0], [2, 0], [1, 2]])
def test_rewritten_files_have_a_newer_version(
    engine: Engine, target: Path, access: Plan, file_numbers: list[int]
) -> None:
    for later in (
        make_rewrite_phase(files=file_numbers),
        make_write_phase("again", files=file_numbers, open="overwrite"),
        make_write_phase("fresh", files=file_numbers),
    ):
        plan = plan_of(target, make_write_phase(), later, make_read_phase(access=access), files=MANY)
        assert_clean(engine.run(plan), 2 * 3 * 128 * KIB)


@pytest.mark.parametrize("shift", [{}, {"by": "tasks", "n": 1}])
def test_another_geometry_reads_complete_data_of_any_order(engine: Engine, target: Path, shift: Plan) -> None:
    orders = ("sequential", "reverse", "random_permute")
    for mapping, order in itertools.product(("shared", "per_task"), orders):
        first = make_write_phase(access={**SMALL, "order": order, "scope": "file" if mapping == "shared" else "task"})
        second = make_read_phase(access={**OTHER, "order": "random_permute", "seed": 5}, shift=shift)
        assert_clean(engine.run(plan_of(target, first, second, files={"mapping": mapping})), 2 * 128 * KIB)


def test_data_at_an_offset_is_verified(engine: Engine, target: Path) -> None:
    first = make_write_phase(access={**SMALL, "offset": "1MiB"})
    plan = plan_of(target, first, make_read_phase(access={**OTHER, "offset": "1MiB", "order": "random_permute"}))
    assert_clean(engine.run(plan), 2 * 128 * KIB)


@pytest.mark.parametrize(
    "holes",
    [
        {"gap": "4KiB"},
        {"offset": "4KiB"},
        {"order": "stride", "stride": "8KiB"},
        {"order": "random_replace"},
    ],
)
def test_holes_are_not_read_as_data(engine: Engine, target: Path, holes: Plan) -> None:
    """Zeros that nobody wrote are very fast."""
    plan = plan_of(target, make_write_phase(access={**SMALL, **holes}), make_read_phase(access=OTHER, verify="none"))
    result = engine.run(plan)
    assert result.code == BAD_PLAN
    assert result.only_sentence.startswith('plan: phase "read" reads with another geometry than phase "write" wrote')


def test_data_not_hit_by_a_random_rewrite_remains_readable(engine: Engine, target: Path) -> None:
    anywhere = make_rewrite_phase(access={**SMALL, "order": "random_replace"})
    result = engine.run(plan_of(target, make_write_phase(), anywhere, make_read_phase(access=OTHER, verify="none")))
    assert result.code == DONE, result.err
    assert result.finished("read")["bytes"]["read"] == 2 * 128 * KIB


def test_mixed_phase_makes_only_its_files_unverifiable(engine: Engine, target: Path) -> None:
    mixed = {"id": "mixed", "op": "mixed", "files": [1], "access": {"read_ratio": 0.5}}
    plan = plan_of(target, make_write_phase(), mixed, make_read_phase(), files=MANY)
    assert_clean(engine.run(plan), 2 * 3 * 128 * KIB, expected_checked_bytes=2 * 2 * 128 * KIB)


@pytest.mark.parametrize("mapping", ["shared", "per_task"])
def test_partial_write_is_read_up_to_its_end(engine: Engine, target: Path, mapping: str) -> None:
    """The write stops early; a read of other operations stays inside what every task has written."""
    access = {"transfer": "4KiB", "block": "4KiB", "segments": 65536}
    stopped = make_write_phase(stop={"stonewall": "40ms"})
    second = make_read_phase(access={"transfer": "8KiB", "block": "8KiB", "segments": 32768})
    plan = plan_of(target, stopped, second, files={"mapping": mapping}, access=access)
    for attempt in range(10):
        result = engine.run(plan, record=engine.folder / f"{attempt}.ndjson")
        if result.code != BAD_PLAN:  # a task had no time at all: nothing that can be read, and said so
            break
        assert "less than one segment of it is certainly written" in result.only_sentence
    written = result.finished("write")["bytes"]["transferred"]
    end = result.finished("read")
    assert result.code == DONE, result.err
    assert 0 < end["bytes"]["read"] <= written < 2 * 65536 * 4 * KIB
    assert end["verify"] == {"checked_bytes": end["bytes"]["read"], "mismatches": 0}


def test_separate_process_restores_data_versions_from_the_manifest(engine: Engine, target: Path) -> None:
    """The manifest carries the versions from stage to stage."""
    separate = make_read_phase(access=OTHER, process="separate")
    plan = plan_of(target, make_write_phase(), make_rewrite_phase(files=[1], process="separate"), separate, files=MANY)
    result = engine.run(plan)
    assert result.code == DONE, result.err
    assert result.finished("read")["verify"] == {"checked_bytes": 2 * 3 * 128 * KIB, "mismatches": 0}


def test_duplex_writes_are_a_version_too(engine: Engine, target: Path) -> None:
    streams = [{"id": "out", "op": "write", "file": 0}, {"id": "in", "op": "read", "file": 1}]
    duplex = {"id": "duplex", "op": "duplex", "streams": streams}
    plan = plan_of(target, make_write_phase(), duplex, make_read_phase(), files=MANY)
    assert_clean(engine.run(plan), 2 * 3 * 128 * KIB)


def test_writer_of_a_shared_file_is_determined_by_the_offset(engine: Engine, target: Path) -> None:
    """One reader of another geometry meets the blocks of all writers."""
    spoil = (
        f"printf x | dd of={target}/run/data bs=1 seek=70000 conv=notrunc status=none;"
        f" printf x | dd of={target}/run/data bs=1 seek=140000 conv=notrunc status=none"
    )
    damage = [{"kind": "command", "command": spoil, "need": "required"}]
    result = engine.run(
        plan_of(target, make_write_phase(), make_read_phase(access=OTHER, before=damage), files={"mapping": "shared"})
    )
    assert result.code == MISMATCH
    writers = {error["offset"]: re.search(r"written by task (\d+)", error["text"]) for error in result.of("error")}
    # Blocks of 64 KiB in turn: 70000 lies in the one of task 1, 140000 again in one of task 0.
    assert {offset: match and match[1] for offset, match in writers.items()} == {70000: "1", 140000: "0"}


@pytest.mark.parametrize("depth", [2, 8])
def test_short_queued_operations_are_completed(engine: Engine, target: Path, depth: int) -> None:
    """Short operations continue through the queue between completions of others: none is lost or mixed up."""
    backends = {line["name"]: line for line in json.loads(engine.ask("backends", "--json").out)}
    if not backends["io_uring"]["usable"]:
        pytest.skip(backends["io_uring"]["why"])
    cut = [{"kind": "command", "command": f"truncate -s 100001 {target}/run/data.t00000000", "need": "required"}]
    second = make_read_phase(before=cut, backend="io_uring", io={"queue_depth": depth})
    result = engine.run(plan_of(target, make_write_phase(), second, threads=1))
    assert result.code == MISMATCH
    end = result.finished("read")
    assert end["verify"] == {"checked_bytes": 128 * KIB, "mismatches": 8}
    assert end["ops"]["short"] == 1
    ends = sorted(error["offset"] for error in result.of("error"))
    assert ends == [100001] + [block * 4096 for block in range(25, 32)]
    assert all("the end of the file" in error["text"] for error in result.of("error"))


MIXED_ACCESS: Plan = {
    "transfer": "8KiB", "block": "256KiB", "segments": 4, "order": "random_replace", "read_ratio": 0.5,
}  # fmt: skip


def make_mixed_phase(**more: Any) -> Plan:
    """Reads and writes at random places, each read compared."""
    access = {**MIXED_ACCESS, **more.pop("access", {})}
    return {"id": "read", "op": "mixed", "verify": "on_read", "access": access, "stop": {"min_time": "100ms"}, **more}


MIXED_CASES: list[tuple[str, str, Plan]] = [
    ("per_task", "posix", {}),
    ("per_task", "mmap", {"distribution": {"kind": "zipf"}, "scope": "file"}),
    ("shared", "posix", {"distribution": {"kind": "pareto"}}),
    ("shared", "io_uring", {"sizes": [{"size": "4KiB", "percent": 70}, {"size": "8KiB", "percent": 30}]}),
]


@pytest.mark.parametrize(("mapping", "backend", "access"), MIXED_CASES)
def test_mixed_phase_reads_old_data_or_data_of_the_same_task(
    engine: Engine, target: Path, mapping: str, backend: str, access: Plan
) -> None:
    filled = {"transfer": "64KiB", "block": "256KiB", "segments": 4}
    plan = plan_of(
        target,
        make_write_phase(),
        make_mixed_phase(access=access),
        files={"mapping": mapping},
        access=filled,
        backend=backend,
    )
    result = engine.run(plan)
    assert result.code == DONE, result.err
    end = result.finished("read")
    assert end["bytes"]["written"] > 0
    assert end["verify"] == {"checked_bytes": end["bytes"]["read"], "mismatches": 0}
    assert not [finding for finding in result.of("finding") if finding["id"] == "not_verified"]


def test_mixed_reads_find_damage(engine: Engine, target: Path) -> None:
    spoil = "for f in $(find . -name 'data*'); do printf x | dd of=$f bs=1 seek=5000 conv=notrunc status=none; done"
    before = [{"kind": "command", "command": f"cd {target} && {spoil}"}]
    filled = {"transfer": "64KiB", "block": "256KiB", "segments": 4}
    result = engine.run(
        plan_of(target, make_write_phase(), make_mixed_phase(before=before, access={"read_ratio": 0.99}), access=filled)
    )
    assert result.code == MISMATCH, result.err
    assert result.finished("read")["verify"]["mismatches"] > 0


def test_mixed_result_has_directions_and_latency_of_all(engine: Engine, target: Path) -> None:
    filled = {"transfer": "64KiB", "block": "256KiB", "segments": 4}
    result = engine.run(
        plan_of(target, make_write_phase(), make_mixed_phase(access={"read_ratio": 0.7}), access=filled)
    )
    end = result.finished("read")
    read_rate, write_rate, latency = end["directions"]["read"], end["directions"]["write"], end["latency"]
    assert (read_rate["bytes"], read_rate["ops"]) == (end["bytes"]["read"], end["ops"]["read"])
    assert (write_rate["bytes"], write_rate["ops"]) == (end["bytes"]["written"], end["ops"]["written"])
    transfer = end["rates"]["transfer"]
    assert read_rate["bytes_per_s"] + write_rate["bytes_per_s"] == pytest.approx(transfer["bytes_per_s"])
    assert latency["all"]["count"] == end["ops"]["done"]
    assert latency["all"]["min_ns"] == min(latency["read"]["min_ns"], latency["write"]["min_ns"])
    assert latency["all"]["max_ns"] == max(latency["read"]["max_ns"], latency["write"]["max_ns"])
    both = sum(latency[kind]["mean_ns"] * latency[kind]["count"] for kind in ("read", "write"))
    assert latency["all"]["mean_ns"] == pytest.approx(both / end["ops"]["done"])
    assert "directions" not in result.finished("write")
    assert "all" not in result.finished("write")["latency"]


@pytest.mark.parametrize(
    ("phase", "file_mapping", "expected_sentence"),
    [
        (make_mixed_phase(access={"transfer": "1KiB"}), "per_task", "multiples of 4 KiB"),
        (make_mixed_phase(backend="io_uring", io={"queue_depth": 4}), "per_task", "needs queue_depth = 1"),
        (make_mixed_phase(access={"scope": "file"}), "shared", "needs files of one task"),
        (make_mixed_phase(access={"within": "64KiB"}), "shared", "needs files of one task"),
    ],
)
def test_mixed_verification_that_could_err_is_refused(
    engine: Engine, target: Path, phase: Plan, file_mapping: str, expected_sentence: str
) -> None:
    result = engine.run(plan_of(target, make_write_phase(), phase, files={"mapping": file_mapping}))
    assert result.code == BAD_PLAN
    assert expected_sentence in result.only_sentence
