# SPDX-License-Identifier: Apache-2.0
"""The whole chain on real I/O: a setting of the storage is changed, and exactly what it slows is flagged.

A file system of our own lies on a loop device. Its read-ahead becomes one page, which slows buffered sequential reads
and nothing else. Runs before and after alternate, so that what others do on this machine meets both sides alike.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.main import main
from sonde.launch.engine import find_engine
from sonde.model.errors import UserError

MAX_ROUNDS = 3
PAIRS = 10
PLAN = """
schema = "sonde-plan/2"
id = "acceptance"
[tasks]
threads = 1
[data]
backend = "posix"
files = { mapping = "per_task" }
access = { transfer = "64KiB", volume = "48MiB" }
[[phases]]
id = "write"
op = "write"
io = { fsync = "end" }
[[phases]]
id = "read"
op = "read"
access = { transfer = "4KiB", volume = "48MiB" }
before = [{ kind = "sync" }, { kind = "fadvise" }]
[[phases]]
id = "direct-read"
op = "read"
access = { transfer = "1MiB", volume = "48MiB" }
io = { direct = true }
[[phases]]
id = "direct-random-read"
op = "read"
access = { transfer = "64KiB", volume = "48MiB", order = "random_permute" }
io = { direct = true }
"""


def command(*arguments: object, check: bool = True) -> str:
    done = subprocess.run([str(word) for word in arguments], capture_output=True, text=True, check=False)
    if check:
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout.strip()


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """(mount point, file that holds the read-ahead of its device)."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("losetup", "mkfs.ext4", "mount")):
        pytest.skip("needs root, losetup and mkfs.ext4")
    # in memory, where no other user of a disk disturbs
    image = Path("/dev/shm") / f"sonde-{os.getpid()}.img"
    with image.open("wb") as file:
        file.truncate(160 << 20)
    device, point = "", tmp_path / "mounted"
    point.mkdir()
    try:
        command("mkfs.ext4", "-F", "-q", image)
        done = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no loop device here: {done.stderr.strip()}")
        device = done.stdout.strip()
        command("mount", device, point)
        yield point, Path("/sys/block") / Path(device).name / "queue" / "read_ahead_kb"
    finally:
        command("umount", point, check=False)
        if device:
            command("losetup", "--detach", device, check=False)
        image.unlink(missing_ok=True)


def sonde(*arguments: object) -> Any:
    """The command in this process: its start would take longer than the run of the engine."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in arguments])
    assert code == 0, err.getvalue()
    return json.loads(out.getvalue())


@pytest.mark.root
@pytest.mark.slow
def test_exactly_the_reads_without_read_ahead_are_flagged(
    storage: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        find_engine()
    except UserError as reason:
        pytest.skip(f"the engine is not built: {reason}")
    point, read_ahead = storage
    monkeypatch.setenv("SONDE_ARCHIVE", str(tmp_path / "archive"))
    plan = tmp_path / "acceptance.toml"
    plan.write_text(PLAN, encoding="utf-8")
    flagged: dict[str, Any] = {}
    for _ in range(MAX_ROUNDS):  # while others use the machine more runs are needed to see it
        comparison = compare_alternating_settings(plan, point, read_ahead, "1")
        flagged = {
            number["key"]["phase"]: number
            for number in comparison["numbers"]
            if number["verdict"] in ("slower", "faster")
        }
        if "read" in flagged:
            break
    assert "read" in flagged, comparison["numbers"]
    for repetition in ("2", "3"):
        if len(flagged) == 1:
            break
        # one change in twenty may be chance, and says so; chance does not strike the same number again and again
        again = compare_alternating_settings(plan, point, read_ahead, repetition)
        flagged = {
            number["key"]["phase"]: number
            for number in again["numbers"]
            if number["verdict"] in ("slower", "faster") and number["key"]["phase"] in flagged
        }
    assert list(flagged) == ["read"], comparison["numbers"]
    assert flagged["read"]["verdict"] == "slower"
    assert flagged["read"]["ratio"]["high"] < 0.9
    assert {number["key"]["phase"] for number in comparison["numbers"]} == {
        "write",
        "read",
        "direct-read",
        "direct-random-read",
    }
    different = {
        difference["name"]: (difference["before"], difference["after"]) for difference in comparison["environment"]
    }
    assert different == {"file system block device read ahead bytes": (str(4096 << 10), "4096")}

    half = sonde("compare", "tag:before-1", "tag:before-1", "--json")
    assert not [number for number in half["numbers"] if number["verdict"] in ("slower", "faster")]


def compare_alternating_settings(plan: Path, point: Path, read_ahead: Path, number: str) -> Any:
    """Runs with both settings in the order A B B A, so that a drift meets both sides alike; their comparison."""
    for pair in range(PAIRS):
        for setting in ("before", "after") if pair % 2 == 0 else ("after", "before"):
            read_ahead.write_text("4096" if setting == "before" else "4", encoding="ascii")
            sonde("run", plan, "--on", point, "--no-report", "--json", "--tag", f"{setting}-{number}")
    return sonde("compare", f"tag:before-{number}", f"tag:after-{number}", "--json")
