# SPDX-License-Identifier: Apache-2.0
"""A server that dies, one that says nothing any more, storage that is full: one sentence each, no wait without end."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from ceph_cluster import Ceph
from real_systems import Storage
from user import User, in_tree

pytestmark = [pytest.mark.storage, pytest.mark.root, pytest.mark.serial]


def start_run_to_interrupt(
    storage: Storage, user: User, folder: Path, seconds: int = 40, limit: int = 60
) -> subprocess.Popen[str]:
    """A run whose first phase has ended and whose second phase runs for at most so many seconds."""
    plan = user.plan(
        "dying",
        target={"path": str(folder)},
        tasks={"threads": 16},
        data={"access": {"transfer": "64KiB", "block": "1MiB"}, "io": storage.to_servers},
        phases=[
            {"id": "write", "op": "write"},
            {"id": "again", "op": "rewrite", "stop": {"time": f"{seconds}s"}},
        ],
        limits={"time": f"{limit}s"},
    )
    going = user.begin("run", plan, "--no-report", "-q")
    storage.room.until(
        lambda: any('"phase":"again"' in path.read_text() for path in user.incoming()), "no phase `again`"
    )
    return going


def kept_what_was_finished(user: User) -> None:
    (record,) = user.records()
    assert record.phases["write"].end is not None
    assert record.phases["write"].end.stopped_by == "volume"


def left_after_clean(storage: Storage, user: User) -> str:
    """The output of `sonde clean` if files remain or it failed; else empty."""
    done = user.sonde("clean", str(storage.mount_path))
    leftovers = in_tree(storage.room, storage.mount_path, "sonde-*")
    return f"{leftovers}: {done}" if leftovers or done.code else ""


@pytest.mark.parametrize("fault", ["killed", "hung"])
def test_lost_server_is_one_sentence_and_keeps_finished_phases(storage: Storage, user: User, fault: str) -> None:
    going = start_run_to_interrupt(storage, user, storage.bounded)
    storage.kill(1) if fault == "killed" else storage.hang(1)
    began = time.monotonic()
    try:
        out, err = going.communicate(timeout=200)
    finally:
        storage.start(1) if fault == "killed" else storage.wake(1)
    storage.settled()
    print(f"{storage.name}, {fault}: exit code {going.returncode} after {time.monotonic() - began:.0f} s: {err}")
    assert going.returncode in (1, 3, 5), (out, err)
    assert err.count("\n") == 1, err
    kept_what_was_finished(user)
    assert left_after_clean(storage, user) == ""


def test_client_continues_when_a_killed_server_returns(storage: Storage, user: User) -> None:
    """The client has no timeout, so the run waits for the server and then completes."""
    if not isinstance(storage, Ceph):
        pytest.skip("clients of CephFS wait however long")
    going = start_run_to_interrupt(storage, user, storage.mount_path, 20)
    storage.kill(1)
    time.sleep(8)
    assert going.poll() is None
    storage.start(1)
    out, err = going.communicate(timeout=200)
    assert (going.returncode, err) == (0, ""), (out, err)
    assert in_tree(storage.room, storage.mount_path, "sonde-*") == []


def test_time_limit_ends_a_run_while_the_client_waits(storage: Storage, user: User) -> None:
    """Its calls do not return, and not even SIGKILL ends who made them."""
    if not isinstance(storage, Ceph):
        pytest.skip("clients of CephFS wait however long")
    user.environment["SONDE_STORAGE_PATIENCE"] = "3"
    going = start_run_to_interrupt(storage, user, storage.mount_path, 40, 10)
    storage.kill(1)
    try:
        out, err = going.communicate(timeout=60)
    finally:
        storage.start(1)
    storage.settled()
    assert going.returncode == 5, (out, err)
    assert err.startswith("sonde: Phase again waited for storage that did not answer, and was ended"), err
    assert err.count("\n") == 1
    kept_what_was_finished(user)
    storage.room.until(lambda: not left_after_clean(storage, user), "the engine did not end")


def test_full_storage_is_one_sentence_and_keeps_finished_phases(storage: Storage, user: User) -> None:
    plan = user.plan(
        "filling",
        target={"path": str(storage.mount_path)},
        tasks={"threads": 8},
        data={"access": {"transfer": "64KiB", "block": "1MiB"}, "io": storage.to_servers},
        phases=[
            {"id": "write", "op": "write"},
            {
                "id": "more",
                "op": "write",
                "before": [{"kind": "command", "need": "required", "command": storage.to_fill(24)}],
                "access": {"block": "8MiB"},
            },
        ],
    )
    done = user.sonde("run", plan, "--no-report", "-q")
    storage.emptied()
    print(f"{storage.name}, full: exit code {done.code}: {done.err}")
    assert done.code == 1, done
    assert done.err.count("\n") == 1, done
    assert any(message in done.err for message in ("No space left on device", "Disk quota exceeded")), done
    kept_what_was_finished(user)
    assert left_after_clean(storage, user) == ""
