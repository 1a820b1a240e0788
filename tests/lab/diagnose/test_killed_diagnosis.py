# SPDX-License-Identifier: Apache-2.0
"""A diagnosis that was killed at random moments and continued has the result of an undisturbed one."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from diagnosis_machine import write_small_system

KILLS = 20
SUSPECTS = ("slow-target", "slow-link", "noisy-neighbor", "mds-saturated")


class CommandFolder:
    """Runs `sonde` with all that it stores in one folder."""

    def __init__(self, folder: Path) -> None:
        (folder / "scratch").mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._environment = {
            **{"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(item for item in sys.path if item)},
            **{"HOME": str(folder), "TMPDIR": str(folder / "scratch"), "SONDE_ARCHIVE": str(folder / "archive")},
        }

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sonde", "diagnose", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, *arguments: str) -> str:
        process = self.begin(*arguments)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return output

    def start(self, system: Path) -> None:
        planted = ("--on-model", "--fault", "slow-target t5 4x", "--seed", "3")
        suspects = [text for name in SUSPECTS for text in ("--suspect", name)]
        self.finish("start", "case.json", "--system", str(system), *planted, *suspects)

    def read_answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.finish("show", "case.json", "--json"))
        return answer

    def list_scratch(self) -> list[str]:
        return sorted(path.name for path in (self._folder / "scratch").iterdir())


@pytest.mark.nightly
def test_diagnosis_killed_at_random_moments_resumes(tmp_path: Path) -> None:
    system = write_small_system(tmp_path)
    unkilled = CommandFolder(tmp_path / "unkilled")
    unkilled.start(system)
    shutil.copytree(tmp_path / "unkilled", tmp_path / "started")
    begin = time.monotonic()
    unkilled.finish("run", "case.json")
    seconds = time.monotonic() - begin
    expected = unkilled.read_answer()
    generator = random.Random(28)
    killed_early = 0
    for number in range(KILLS):
        shutil.copytree(tmp_path / "started", tmp_path / f"killed-{number}")
        killed = CommandFolder(tmp_path / f"killed-{number}")
        process = killed.begin("run", "case.json")
        try:
            process.communicate(timeout=generator.uniform(0.05, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            killed_early += 1
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        time.sleep(1)  # a younger folder may be one that another process is creating
        killed.finish("run", "case.json")
        assert killed.read_answer() == expected
        assert killed.list_scratch() == unkilled.list_scratch() == [], number
    assert killed_early > KILLS // 2
