# SPDX-License-Identifier: Apache-2.0
"""Real faults in a file system on a loop device, diagnosed by real runs; nothing of them remains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from free_space import scatter_free_space  # noqa: E402
from real_faults import find_missing_need, open_loop_file_system  # noqa: E402

TOOL = ROOT / "tools" / "diagnosis_real_faults.py"


def list_leftovers() -> list[str]:
    mounts = [line for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if "real-faults" in line]
    loops = subprocess.run(["losetup", "--all"], capture_output=True, text=True, check=True).stdout.splitlines()
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob("*/sonde-real-faults")]
    return [*mounts, *(line for line in loops if "real-faults" in line), *groups]


def test_tool_needs_no_modules_of_storage_servers() -> None:
    """Its folder and the lab are all that the interpreter finds."""
    command = [sys.executable, "-E", str(TOOL), "--help"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert "--rounds" in outcome.stdout


def test_scattered_free_space_splits_new_files(tmp_path: Path) -> None:
    if missing := find_missing_need():
        pytest.skip(missing)
    with open_loop_file_system(tmp_path, image_bytes=64 << 20) as system:
        with scatter_free_space(system.directory, piece_bytes=16 << 10, free_percent=10):
            space = os.statvfs(system.directory)
            assert 0.08 < space.f_bavail / space.f_blocks < 0.12
            file = system.directory / "new"
            file.write_bytes(bytes(4 << 20))
            os.sync()
            listing = subprocess.run(["filefrag", str(file)], capture_output=True, text=True, check=True).stdout
            assert int(listing.rpartition(": ")[2].split()[0]) >= 128, "most of 256 pieces"
            file.unlink()
        assert list(system.directory.iterdir()) == [system.directory / "lost+found"]
    assert list_leftovers() == []


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["no read-ahead", "bytes of the device", "page cache limited", "free space"])
def test_real_fault_is_diagnosed_and_removed(tmp_path: Path, fault: str) -> None:
    if missing := find_missing_need():
        pytest.skip(missing)
    out = tmp_path / "trials.jsonl"
    command = [sys.executable, str(TOOL), "--rounds", "1", "--only", fault]
    outcome = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, timeout=900, check=False)
    assert outcome.returncode == 0, outcome.stderr
    (trial,) = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert trial["is_right"], trial
    assert list_leftovers() == []
