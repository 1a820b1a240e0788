# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed, and their manifests."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from engine_under_test import Engine, Plan, write_plan

MANIFEST = ".sonde-manifest.json"
Manifest = dict[str, Any]


def kill_a_run(engine: Engine, target: Path, directory_name: str = "left", **data: object) -> Path:
    """Remains of a run that was killed in its second phase."""
    phases: list[Plan] = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "60s"}}]
    plan = write_plan(
        target,
        *phases,
        target={"directory": directory_name},
        tasks={"threads": 2},
        observe={"progress": "20ms"},
        data=data,
    )
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        running.process.kill()
        assert running.result().code == -signal.SIGKILL
    return target / directory_name


def read_manifest(folder: Path) -> Manifest:
    manifest: Manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def write_manifest(folder: Path, manifest: Manifest | str) -> None:
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (folder / MANIFEST).write_text(text, encoding="utf-8")
