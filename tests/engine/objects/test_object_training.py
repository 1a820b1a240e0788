# SPDX-License-Identifier: Apache-2.0
"""Training input from an object store: a sample is an object, or a range of a large one."""

from __future__ import annotations

import pytest
from engine_under_test import DONE, FAILED, Engine, Plan
from object_server import BUCKET, Fault, ObjectServer

KIB = 1024
MIB = 1024 * KIB
TRAINING = {"batch_size": 3, "compute_time": "1ms", "prefetch": 2}


def make_training_plan(data: Plan, epoch: Plan, epochs: int = 2) -> Plan:
    """Two accelerators; `epoch`: members of its phases."""
    phases = [{"id": f"epoch{n}", "op": "train", "training": TRAINING, **epoch} for n in range(epochs)]
    return {
        "schema": "sonde-plan/2",
        "id": "training",
        "target": {"path": f"s3://{BUCKET}/samples"},
        "tasks": {"threads": 2},
        "data": {"backend": "s3", **data},
        "phases": [{"id": "generate", "op": "write"}, *phases],
    }


SMALL_OBJECTS = {"files": {"mapping": "many", "count": 12}, "access": {"transfer": "64KiB"}}
LARGE = {"files": {"mapping": "many", "count": 1}, "access": {"transfer": "5MiB", "segments": 3}}
RANGES = {"access": {"transfer": "64KiB", "block": "256KiB", "segments": 60}}


@pytest.mark.parametrize("depth", [1, 4])
def test_every_epoch_gets_each_object_once(engine: Engine, object_server: ObjectServer, depth: int) -> None:
    result = engine.run(make_training_plan({**SMALL_OBJECTS, "io": {"queue_depth": depth}}, {}))
    assert result.code == DONE, result.err
    for name in ("epoch0", "epoch1"):
        end = result.finished(name)
        assert end["bytes"]["read"] == 24 * 64 * KIB
        assert (end["training"]["samples"], end["training"]["accelerators"]) == (24, 2)
        assert 0 < end["training"]["utilization"] <= 1
    assert object_server.requests["GET"] == 2 * 24 + 1  # the manifest is looked for
    assert object_server.keys() == []


@pytest.mark.parametrize("depth", [1, 4])
def test_sample_of_a_large_object_is_read_by_ranges(engine: Engine, object_server: ObjectServer, depth: int) -> None:
    result = engine.run(make_training_plan({**LARGE, "io": {"queue_depth": depth}}, RANGES, epochs=1))
    assert result.code == DONE, result.err
    end = result.finished("epoch0")
    assert end["bytes"]["read"] == 2 * 15 * MIB
    assert end["ops"]["read"] == 2 * 240
    assert end["training"]["samples"] == 2 * 60
    assert object_server.requests["GET"] == 2 * 240 + 1


def test_storage_share_of_objects_is_unknown(engine: Engine, object_server: ObjectServer) -> None:
    """A node has no page cache of objects; what the server had in memory is not known."""
    training = engine.run(make_training_plan(SMALL_OBJECTS, {}, epochs=1)).finished("epoch0")["training"]
    assert not {"storage_bytes", "cached_bytes"} & training.keys()


def test_repeated_requests_of_an_epoch_are_counted(engine: Engine, object_server: ObjectServer) -> None:
    object_server.faults.append(Fault(method="GET", url="/data", times=2))
    result = engine.run(make_training_plan(SMALL_OBJECTS, {}, epochs=1))
    assert result.code == DONE, result.err
    end = result.finished("epoch0")
    assert (end["training"]["samples"], end["ops"]["retries"]) == (24, 2)
    (finding,) = [line for line in result.of("finding") if line["id"] == "retries"]
    assert finding["phase"] == "epoch0"


@pytest.mark.parametrize("depth", [1, 4])
def test_refused_sample_ends_the_run_with_its_object(engine: Engine, object_server: ObjectServer, depth: int) -> None:
    object_server.faults.append(Fault("403 Forbidden", "AccessDenied", "No more", method="GET", url="/data", after=5))
    result = engine.run(make_training_plan({**SMALL_OBJECTS, "io": {"queue_depth": depth}}, {}))
    assert result.code == FAILED
    error = result.of("error")[0]
    assert error["name"] == "EACCES"
    assert "403 AccessDenied: No more" in error["text"]
    assert f"s3://{BUCKET}/samples/" in error["text"]
    assert object_server.keys() == []
