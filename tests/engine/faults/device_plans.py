# SPDX-License-Identifier: Apache-2.0
"""Plans on a block device, and runs of them that must not change it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from engine_under_test import BAD_PLAN, Engine, Plan, Result
from file_systems import run_command

MIB = 1 << 20
SIZE = 64 * MIB
WRITE: Plan = {"id": "write", "op": "write"}
READ: Plan = {"id": "read", "op": "read"}


def make_plan(device: str, *phases: Plan, **members: object) -> Plan:
    """Two tasks on one device, 8 MiB each, in turn."""
    data: Plan = {
        "files": {"mapping": "shared"},
        "access": {"transfer": "64KiB", "block": "1MiB", "segments": 8},
        **members,
    }
    return {
        "schema": "sonde-plan/2",
        "id": "device",
        "target": {"path": device, "device": True},
        "tasks": {"threads": 2},
        "data": data,
        "phases": list(phases) or [WRITE],
    }


def run(engine: Engine, plan: Plan, *options: str) -> Result:
    return engine.run(plan, *options)


def allow_device(device: str) -> tuple[str, str]:
    return "--allow-device", device


def hash_of(device_image: Path) -> str:
    os.sync()
    with device_image.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_rejected_plan(
    engine: Engine, device_image: Path, plan: Plan, *options: str, expected_exit_code: int = BAD_PLAN
) -> str:
    """The sentence of a run that must end before it writes a byte."""
    before = hash_of(device_image)
    result = run(engine, plan, *options)
    assert result.code == expected_exit_code, result.err
    assert hash_of(device_image) == before
    return result.only_sentence


def make_file_system(device: str) -> None:
    maker = shutil.which("mkfs.ext4")
    if maker is None:
        pytest.skip("mkfs.ext4 is not installed")
    assert run_command(maker, "-q", "-F", device).returncode == 0
