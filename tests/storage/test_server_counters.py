# SPDX-License-Identifier: Apache-2.0
"""Counters of real servers, saved and imported as docs/tasks/telemetry.md says: they have the bytes that the run moved,
within 2 %."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from real_systems import Storage
from user import MIB, User

from sonde.telemetry.data import TelemetryData
from sonde.telemetry.file_format import read_telemetry_files

pytestmark = [pytest.mark.storage, pytest.mark.root, pytest.mark.serial]

TASKS, BLOCK_MIB = 2, 64
MAX_DIFFERENCE = 0.02
# Before the first output, and each output; the disk of names of Ceph is not among those of data.
COMMANDS = {
    "gluster": ("gluster volume profile distribute start", "gluster volume profile distribute info"),
    "ceph": ("true", "for i in 0 1 2 3; do echo osd.$i; ceph tell osd.$i perf dump; done"),
}


def save_counters(user: User, path: Path, command: str) -> None:
    """Appends the time and the counters of all servers. Times are whole seconds."""
    time.sleep(1.1)
    user.room.run("/bin/sh", "-c", f'(date +%s; {command}) >>"$0"', str(path))


def count_bytes(user: User, options: Sequence[str], command: str, metric: str) -> tuple[float, int]:
    """Counters of the servers during one IOR run, from the samples stored with the run, and the bytes of the run."""
    saved = user.folder / f"{metric}.txt"
    save_counters(user, saved, command)
    done = user.sonde("ior", "--tasks", str(TASKS), "--no-report", *options)
    assert done.code == 0, done
    save_counters(user, saved, command)
    imported = user.sonde("telemetry", "import", str(saved), "--run", "last")
    assert imported.code == 0, imported
    run = user.runs()[-1]
    data = TelemetryData([file for file in read_telemetry_files(run.folder) if file.origin != "sampler"])
    servers = [data.find_series(metric, key.part) for key in data.list_series_keys(metric)]
    assert len(servers) == 4, data.list_series_keys(metric)
    counted = sum(float(series.values[-1] - series.values[0]) for series in servers if series is not None)
    moved = sum(phase.end.bytes.transferred for phase in run.record.phases.values() if phase.end is not None)
    return counted, moved


def test_counters_of_servers_have_the_bytes_of_the_run(storage: Storage, user: User) -> None:
    """Each phase is a separate run; another client reads, so that the bytes come from the servers."""
    if storage.name not in COMMANDS:
        pytest.skip(f"{storage.name} has no counters that Sonde reads")
    first, command = COMMANDS[storage.name]
    user.room.run("/bin/sh", "-c", first)
    sizes = ("-t", "1m", "-b", f"{BLOCK_MIB}m", "-k", "-F")
    files = [str(mount / "counted") for mount in (storage.mount_path, storage.second)]
    for options, metric in (
        (("-w", "-e", *sizes, "-o", files[0]), "target_written_bytes"),
        (("-r", *sizes, "-o", files[1]), "target_read_bytes"),
    ):
        counted, moved = count_bytes(user, options, command, metric)
        print(f"{storage.name}: {metric} {counted:,.0f}, the run moved {moved:,}: {counted / moved - 1:+.2%}")
        assert moved == TASKS * BLOCK_MIB * MIB
        assert counted == pytest.approx(moved, rel=MAX_DIFFERENCE)
    user.room.run("/bin/sh", "-c", 'rm -f "$0".*', files[0])
