# SPDX-License-Identifier: Apache-2.0
"""Block devices with a file system, swap, partitions or a user: refused, or destroyed on request."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from device_plans import READ, WRITE, allow_device, make_file_system, make_plan, run, run_rejected_plan
from engine_under_test import DONE, ENVIRONMENT, Engine, Plan
from file_systems import loop_device, mounted, run_command, skip_without_root


def test_mounted_device_is_refused_but_read(engine: Engine, device_image: Path, device: str, tmp_path: Path) -> None:
    make_file_system(device)
    with mounted((device,), tmp_path / "mounted"):
        for options in (allow_device(device), (*allow_device(device), "--destroy")):
            result = run(engine, make_plan(device), *options)
            assert result.code == ENVIRONMENT
            assert f"is mounted on {tmp_path / 'mounted'}" in result.only_sentence
        assert run(engine, make_plan(device, READ), *allow_device(device)).code == DONE
    assert run_command("fsck.ext4", "-n", "-f", device).returncode == 0


def test_file_system_needs_destroy(engine: Engine, device_image: Path, device: str) -> None:
    make_file_system(device)
    assert "holds a file system (ext4)" in run_rejected_plan(
        engine, device_image, make_plan(device), *allow_device(device)
    )
    assert run(engine, make_plan(device), *allow_device(device), "--destroy").code == DONE


def test_destroy_of_a_reading_plan_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    assert "only reads" in run_rejected_plan(
        engine, device_image, make_plan(device, READ), *allow_device(device), "--destroy"
    )


def test_swap_signature_needs_destroy(engine: Engine, device_image: Path, device: str) -> None:
    assert run_command("mkswap", device).returncode == 0
    assert "(swap)" in run_rejected_plan(engine, device_image, make_plan(device), *allow_device(device))


def test_swap_in_use_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    assert run_command("mkswap", device).returncode == 0
    if run_command("swapon", device).returncode != 0:
        pytest.skip("swapon is not allowed here")
    try:
        result = run(engine, make_plan(device), *allow_device(device), "--destroy")
        assert result.code == ENVIRONMENT
        assert "holds swap space that is in use" in result.only_sentence
    finally:
        assert run_command("swapoff", device).returncode == 0


@contextmanager
def partitioned(device_image: Path) -> Iterator[tuple[str, str]]:
    """A loop device with one partition: both paths."""
    skip_without_root()
    # One entry of a table of DOS partitions: Linux (0x83), sectors 2048 to 67583.
    entry = struct.pack("<B3sB3sII", 0, b"", 0x83, b"", 2048, 65536)
    with device_image.open("r+b") as file:
        file.seek(446)
        file.write(entry.ljust(64, b"\0") + b"\x55\xaa")
    done = run_command("losetup", "--find", "--show", "--partscan", str(device_image))
    if done.returncode != 0:
        pytest.skip(f"no loop device here: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        # Not every kernel reads tables of partitions.
        if not Path(f"{device}p1").exists() and run_command("addpart", device, "1", "2048", "65536").returncode != 0:
            pytest.skip("the kernel makes no partitions of loop devices here")
        yield device, f"{device}p1"
    finally:
        run_command("delpart", device, "1")
        run_command("losetup", "--detach", device)


def test_partition_table_needs_destroy(engine: Engine, device_image: Path) -> None:
    with partitioned(device_image) as (device, _):
        assert "a partition table (dos)" in run_rejected_plan(
            engine, device_image, make_plan(device), *allow_device(device)
        )


def test_mounted_partition_protects_the_disk(engine: Engine, device_image: Path, tmp_path: Path) -> None:
    with partitioned(device_image) as (device, partition):
        make_file_system(partition)
        with mounted((partition,), tmp_path / "mounted"):
            result = run(engine, make_plan(device), *allow_device(device), "--destroy")
        assert result.code == ENVIRONMENT
        assert f"has the partition {Path(partition).name}, which is mounted on" in result.only_sentence


def test_device_below_a_loop_device_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    with loop_device(Path(device)) as upper:
        sentence = run_rejected_plan(
            engine, device_image, make_plan(device), *allow_device(device), expected_exit_code=ENVIRONMENT
        )
    assert f"is below the loop device {Path(upper).name}" in sentence


def test_device_claimed_by_a_program_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    claim = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        sentence = run_rejected_plan(
            engine, device_image, make_plan(device), *allow_device(device), expected_exit_code=ENVIRONMENT
        )
    finally:
        os.close(claim)
    assert "is in use by the kernel or another program" in sentence


def test_device_is_claimed_during_the_run(engine: Engine, device: str) -> None:
    try_claim = f"flock --version >/dev/null; python3 -c 'import os; os.open(\"{device}\", os.O_RDONLY | os.O_EXCL)'"
    claimed: Plan = {**WRITE, "before": [{"kind": "command", "command": try_claim, "need": "required"}]}
    result = run(engine, make_plan(device, claimed), *allow_device(device))
    assert result.code == ENVIRONMENT
    os.close(os.open(device, os.O_RDONLY | os.O_EXCL))  # released afterwards
