# SPDX-License-Identifier: Apache-2.0
"""Training input on a storage with a known schedule: utilization, time to the first batch and bytes are the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, Engine, Plan

MIB = 1024 * 1024
RATE = 100e6
EXACT_TOLERANCE = 1e-3


def make_training_plan(target: Path, training: Plan, tasks: int = 2, epochs: int = 1, **data: Any) -> Plan:
    """Files of four samples of 2 MiB, three of each task, on the backend `paced` unless told otherwise."""
    train = [{"id": f"epoch{n}", "op": "train", "training": training} for n in range(epochs)]
    return {
        "schema": "sonde-plan/2",
        "id": "training",
        "target": {"path": str(target), "min_free": 0},
        "tasks": {"threads": tasks},
        "data": {
            "backend": "paced",
            "paced": {"rate": RATE},
            "files": {"mapping": "many", "count": 3},
            "access": {"transfer": "1MiB", "block": "2MiB", "segments": 4},
            **data,
        },
        "phases": [{"id": "write", "op": "write"}, *train],
        "observe": {"progress": 0},
    }


def follow_queue(batches: int, read_s: float, compute_s: float, prefetch: int) -> tuple[float, float, float]:
    """Utilization, time of the first batch, and end of the epoch, by simulation of the queue batch by batch."""
    reader = 0.0
    begun: list[float] = []
    done: list[float] = []
    for number in range(batches):
        begin = max(reader, begun[number - prefetch] if number >= prefetch else 0.0)
        reader = begin + read_s
        begun.append(max(reader, done[-1] if done else 0.0))
        done.append(begun[-1] + compute_s)
    return (batches - 1) * compute_s / (done[-1] - done[0]), begun[0], done[-1]


@pytest.mark.parametrize("prefetch", [1, 2, 8])
@pytest.mark.parametrize("compute_ms", [10, 42, 60, 200])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_utilization_follows_from_the_queue(
    engine: Engine, target: Path, prefetch: int, compute_ms: int, batch_size: int
) -> None:
    training = {"batch_size": batch_size, "compute_time": f"{compute_ms}ms", "prefetch": prefetch}
    result = engine.run(make_training_plan(target, training))
    assert result.code == DONE, result.err
    end = result.finished("epoch0")
    truth = follow_queue(12 // batch_size, batch_size * 2 * MIB / RATE, compute_ms / 1e3, prefetch)
    utilization, first, elapsed = truth
    assert end["training"]["utilization"] == pytest.approx(utilization, rel=EXACT_TOLERANCE)
    assert end["training"]["lowest_utilization"] == pytest.approx(utilization, rel=EXACT_TOLERANCE)
    assert end["training"]["first_batch_s"] == pytest.approx(first, rel=EXACT_TOLERANCE)
    assert end["training"]["accelerators"] == 2
    assert end["training"]["samples"] == 2 * 12
    assert end["training"]["batches"] == 2 * 12 // batch_size
    rated = (12 - batch_size) / ((12 / batch_size - 1) * compute_ms / 1e3 / utilization)
    assert end["training"]["samples_per_s"] == pytest.approx(2 * rated, rel=EXACT_TOLERANCE)
    assert max(row["end_s"] for row in list_task_rows(result)) <= elapsed * (1 + EXACT_TOLERANCE)
    assert end["bytes"]["read"] == 2 * 12 * 2 * MIB
    assert end["ops"]["read"] == 2 * 12 * 2


def list_task_rows(result: Any) -> list[dict[str, float]]:
    lines = [line for line in result.of("tasks") if line["phase"] == "epoch0"]
    return [dict(zip(line["columns"], row, strict=True)) for line in lines for row in line["rows"]]


@pytest.mark.parametrize(
    "backend", [{"backend": "posix"}, {"backend": "mmap"}, {"backend": "io_uring", "io": {"queue_depth": 4}}]
)
@pytest.mark.parametrize("mapping", [{"mapping": "many", "count": 3}, {"mapping": "per_task"}, {"mapping": "shared"}])
@pytest.mark.parametrize("shuffle", ["samples", "files", "none"])
def test_every_epoch_reads_all_samples_of_real_files(
    engine: Engine, target: Path, backend: Plan, mapping: Plan, shuffle: str
) -> None:
    training = {"batch_size": 2, "compute_time": "1ms", "shuffle": shuffle}
    plan = make_training_plan(target, training, epochs=2, files=mapping, **backend)
    plan["data"]["access"] = {"transfer": "4KiB", "block": "32KiB", "segments": 4}
    result = engine.run(plan)
    assert result.code == DONE, result.err
    volume = result.finished("write")["bytes"]["written"]
    for name in ("epoch0", "epoch1"):
        end = result.finished(name)
        assert end["bytes"]["read"] == volume
        assert end["training"]["samples"] == volume // 32768
        assert 0 < end["training"]["utilization"] <= 1


def test_time_limit_ends_an_epoch_while_the_accelerator_computes(engine: Engine, target: Path) -> None:
    plan = make_training_plan(target, {"batch_size": 12, "compute_time": "10s"})
    plan["phases"][1]["stop"] = {"time": "2s"}
    end = engine.run(plan).finished("epoch0")
    assert end["training"]["batches"] == 2
    assert "utilization" not in end["training"]


@pytest.mark.parametrize(
    ("member", "member_value", "expected_sentence"),
    [
        ("training", None, "training is missing"),
        ("op", "read", "training is only used with op"),
        ("verify", "on_read", ".verify does not go with op"),
        ("shift", {"by": "tasks"}, ".shift does not go with op"),
        ("access", {"order": "random_permute"}, ".access.order does not go with op"),
        ("training", {"batch_size": 0, "compute_time": "1s"}, "batch_size"),
        ("training", {"batch_size": 1, "compute_time": "0s"}, "compute_time"),
        ("training", {"batch_size": 1}, "compute_time"),
    ],
)
def test_wrong_training_phase_is_refused(
    engine: Engine, target: Path, member: str, member_value: Any, expected_sentence: str
) -> None:
    plan = make_training_plan(target, {"batch_size": 1, "compute_time": "1s"}, backend="posix")
    plan["data"].pop("paced")
    plan["phases"][1][member] = member_value
    if member_value is None:
        del plan["phases"][1][member]
    result = engine.run(plan)
    assert result.code == BAD_PLAN
    assert expected_sentence in result.only_sentence
