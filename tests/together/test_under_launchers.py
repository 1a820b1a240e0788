# SPDX-License-Identifier: Apache-2.0
"""`mpiexec -n 2 sonde ior …`: a launcher starts the lab itself, several times over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = {
    "mpich": [str(Path(sys.prefix) / "bin" / "mpiexec")],
    "openmpi": ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe"],
}


@pytest.fixture(params=sorted(LAUNCHERS))
def launcher(request: pytest.FixtureRequest) -> list[str]:
    command = LAUNCHERS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    return command


def start(launcher: list[str], engine: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*launcher, "-n", "2", sys.executable, "-m", "sonde", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")},
    )


@pytest.mark.parametrize("command_line", ["ior -t 4k -b 64k -o f", "mdtest -n 4 -d m"])
def test_launcher_ranks_archive_a_single_run(
    launcher: list[str], command_line: str, engine: Path, tmp_path: Path
) -> None:
    result = start(launcher, engine, tmp_path, *command_line.split())
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("\ntasks               : 2\n") + result.stdout.count(" with 2 total task(s)") == 1
    (summary_file,) = tmp_path.glob("sonde-archive/*/*/run.json")
    assert json.loads(summary_file.read_text())["status"] == "done"
    assert result.stderr.count("sonde: stored in ") == 1
    assert "ended without" not in result.stderr


def test_failed_run_sets_exit_code_and_message(launcher: list[str], engine: Path, tmp_path: Path) -> None:
    result = start(launcher, engine, tmp_path, "ior", "-r", "-o", "missing")
    assert result.returncode != 0
    assert "missing" in result.stderr
    assert "No such file or directory" in result.stderr
