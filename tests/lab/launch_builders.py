# SPDX-License-Identifier: Apache-2.0
"""Launches of the fake engine, and programs of shell scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sonde.launch.engine import find_engine
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.session import EngineLaunch, EngineSession, LaunchResult

Fake = Callable[..., Path]
PLAN: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "p",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "1MiB", "volume": "64MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}


def make_launch(folder: Path, launcher: Any = None, stages: int = 1, plan: dict[str, Any] = PLAN) -> EngineLaunch:
    folder.mkdir(exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    return EngineLaunch(find_engine(), launcher or LocalLauncher(), folder / "plan.json", folder, "id", stages)


def run_session(
    launch: EngineLaunch, on_phase_begin: Callable[[], None] | None = None
) -> tuple[LaunchResult, list[str]]:
    """Runs a launch; calls `on_phase_begin` once the first phase has begun: no test depends on start-up time."""
    line_types: list[str] = []

    def observe(kind: str, line: object) -> None:
        if kind == "phase_begin" and on_phase_begin and kind not in line_types:
            on_phase_begin()
        line_types.append(kind)

    return EngineSession(launch, observe).run_all_stages(), line_types


def signal_this_process(signal_number: int) -> None:
    """Sends a signal to this process."""
    os.kill(os.getpid(), signal_number)


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
