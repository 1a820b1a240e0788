# SPDX-License-Identifier: Apache-2.0
"""The command as a process: signals and closed pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fake = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("short_report")


def start(arguments: list[str], **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sonde", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_finished_phases(
    fake_engine: Fake, target: Path, archive: Path, signal_number: int
) -> None:
    fake_engine(seconds="600")
    process = start(["run", "quick", "--on", str(target), "--no-report"], SONDE_ARCHIVE=str(archive))
    try:
        until = time.monotonic() + 60
        while not any("progress" in path.read_text() for path in archive.glob(".incoming-*/record.ndjson")):
            assert time.monotonic() < until
            time.sleep(0.05)
        os.killpg(process.pid, signal_number)  # as a terminal does: to everybody in the group
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 5
    assert "Traceback" not in err
    assert err.strip().splitlines()[-1] == "sonde: Stopped by a signal."
    (folder,) = archive.glob("*/2*Z-*")
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    assert "interrupted" in out


def test_closed_pipe_is_no_error(quick_result: Any) -> None:
    with start(["list", "--json"]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == ""
