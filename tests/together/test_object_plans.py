# SPDX-License-Identifier: Apache-2.0
"""Plans on a bucket: `--on s3://BUCKET/PREFIX` is their target, and the shipped training inputs run there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "engine" / "objects"))

pytest.importorskip("moto")
from object_server import BUCKET, KEY, SECRET, ObjectServer, run_object_server

TARGET = f"s3://{BUCKET}/samples"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    with run_object_server() as started:
        started.reset()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_ENDPOINT_URL", started.url)
        yield started


# Plan -> samples of a batch, what else makes it small, and the requests of an epoch of two accelerators.
TRAINING: dict[str, tuple[int, dict[str, Any], int]] = {
    "training-cosmoflow-objects": (1, {"data.files.count": 4}, 8),
    "training-unet3d-objects": (1, {"data.files.count": 3, "data.access.block": "20MiB"}, 12),
    "training-resnet50-objects": (
        40,
        {
            "data.files.count": 1,
            "data.access.segments": 1,
            "phases.epoch-1.access.segments": 139,
            "phases.epoch-2.access.segments": 139,
        },
        278,
    ),
}


@pytest.mark.parametrize("plan", TRAINING)
def test_shipped_training_plan_requests_every_sample(sonde: Any, runs: Any, service: ObjectServer, plan: str) -> None:
    batch, settings, transfers = TRAINING[plan]
    settings = {**settings, **{f"phases.epoch-{n}.training.batch_size": batch for n in (1, 2)}}
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    result = sonde("run", plan, "--on", TARGET, "--no-report", *options)
    assert result.returncode == 0, result.stderr
    (run,) = runs()
    assert run["target"] == TARGET
    assert [phase["ops"] for phase in run["phases"][1:]] == [transfers, transfers]
    assert all(0 < phase["utilization"] <= 1 for phase in run["phases"][1:])
    assert all(phase["backend"] == "s3" for phase in run["phases"])
    assert service.keys() == []


PLAN = """
schema = "sonde-plan/2"
id = "small"
[data]
files = { mapping = "many", count = 3 }
access = { transfer = "64KiB" }
[[phases]]
id = "write"
op = "write"
"""


def test_plan_for_directories_is_run_on_a_bucket(sonde: Any, runs: Any, service: ObjectServer, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(PLAN, encoding="utf-8")
    assert sonde("run", "small.toml", "--on", TARGET, "--no-report").returncode == 0
    (run,) = runs()
    assert run["phases"][0]["backend"] == "s3"
    assert service.requests["PUT"] == 3 + 1  # the manifest


def test_other_backend_is_not_replaced_on_a_bucket(sonde: Any, service: ObjectServer, tmp_path: Path) -> None:
    stated = PLAN.replace("[data]", '[data]\nbackend = "io_uring"')
    (tmp_path / "small.toml").write_text(stated, encoding="utf-8")
    result = sonde("run", "small.toml", "--on", TARGET, "--no-report")
    assert result.returncode == 2
    assert "io_uring" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("verb", [("run", "edison-mpiio-1m1"), ("check",)])
def test_bucket_is_refused_where_files_are_needed(sonde: Any, verb: tuple[str, ...]) -> None:
    where = ("--on", TARGET) if verb[0] == "run" else (TARGET,)
    result = sonde(*verb, *where)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "bucket" in result.stderr
