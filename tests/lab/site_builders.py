# SPDX-License-Identifier: Apache-2.0
"""An archive whose site is known: three file systems, two tests, a drop on one of them, events, an incident."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from archive_builders import store_run
from record_scene import Scene
from run_builders import KEY, add_run, age_archive, build_phase

from sonde.store.events import add_archive_events
from sonde.watch.watch_state import Incident, StateStore, WatchState

FIRST_START = datetime(2026, 1, 1, 3, tzinfo=UTC)
NIGHTS = 60
DROP_NIGHT, DROP = 45, 0.6  # of fs2, to this fraction


def add_night(root: Path, night: int, file_systems: int = 3, tests: tuple[str, ...] = ("daily", "small")) -> None:
    """Adds one run for each file system and test."""
    for number in range(1, file_systems + 1):
        for position, test in enumerate(tests):
            started = FIRST_START + timedelta(days=night, minutes=10 * number + 3 * position)
            run = f"{started:%Y%m%dT%H%M%SZ}-{test}-fs{number}"
            noise = random.Random(run)
            factor = DROP if number == 2 and night >= DROP_NIGHT else 1.0
            phases = [
                build_phase(op, rate * factor * noise.lognormvariate(0, 0.03))
                for op, rate in (("write", 2e9), ("read", 3e9))
            ]
            members: dict[str, Any] = {
                "plan": {"id": test, "title": test},
                "target": f"/fs{number}/probe",
                "history": {**KEY, "system": "edison", "file_system": f"lustre:/fs{number} probe", "plan_hash": test},
            }
            add_run(root, run, phases, **members)


def make_site_archive(root: Path, nights: int = NIGHTS) -> Path:
    """The archive, old enough for its index to be trusted."""
    for night in range(nights):
        add_night(root, night)
    store_run(root, "20260301T204501Z-known", Scene(started="2026-03-01T20:45:01Z", path="/fs1"))
    day = f"{FIRST_START + timedelta(days=DROP_NIGHT):%Y-%m-%d}"
    events = [
        {"id": "upgrade", "when": f"{day}T01:00Z", "kind": "upgrade", "title": "Upgraded <b>fs2</b>", "parts": ["fs2"]},
        {
            "id": "disk",
            "when": "2026-01-20T12:00Z",
            "kind": "failure",
            "title": "A drive failed",
            "tags": ["log", "error"],
        },
    ]
    add_archive_events(root, [{"schema": "sonde-event/1", **event} for event in events])
    opened = (FIRST_START + timedelta(days=DROP_NIGHT)).timestamp()
    state = WatchState(rounds=1)
    state.incidents.append(Incident("slower-1", opened, {}, "write of daily on /fs2 fell by 40 %.", opened))
    StateStore(root / "watch").save_state(state)
    age_archive(root)
    return root


def read_manifest(out: Path) -> dict[str, str]:
    """The pages of a site and their keys."""
    pages: dict[str, str] = json.loads((out / "sonde-site.json").read_text())["pages"]
    return pages
