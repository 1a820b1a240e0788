# SPDX-License-Identifier: Apache-2.0
"""Which server holds which byte, against the system's own words, and the slow server by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from ceph_cluster import Ceph
from daemon_namespace import no_throttle
from gluster_cluster import Gluster
from moosefs_cluster import MooseFS
from real_systems import Storage
from user import MIB, User, in_tree

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.target_operations import find_slow_targets_by_latency
from sonde.findings.targets import SlowTarget, collect_target_rates, find_slow_targets
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun

pytestmark = [pytest.mark.storage, pytest.mark.root, pytest.mark.serial]


def layout_rows(phase: PhaseRecord) -> list[dict[str, Any]]:
    assert phase.layout is not None, f"the file system's layout was not read: {phase.findings}"
    return [dict(zip(phase.layout.columns, row, strict=True)) for row in phase.layout.rows]


def last_run(user: User) -> RecordedRun:
    return user.runs()[-1]


def kept_files(folder: Path, user: User, files: int, volume: str, **data: Any) -> tuple[RecordedRun, dict[int, Path]]:
    """A run whose files stay in `place`/kept, and these by the number of their task."""
    plan = user.plan(
        "kept",
        target={"path": str(folder), "directory": "kept", "keep": True},
        tasks={"threads": files},
        data={"access": {"transfer": "1MiB", "block": volume}, "io": {"fsync": "end"}, **data},
        phases=[{"id": "write", "op": "write"}],
    )
    done = user.sonde("run", plan, "--no-report", "-q")
    assert done.code == 0, done
    names = in_tree(user.room, folder / "kept", "data*")
    return last_run(user), {int(re.findall(r"\d+", Path(name).name)[-1]): Path(name) for name in names}


def test_recorded_target_of_each_file_matches_the_file_system(storage: Storage, user: User) -> None:
    run, files = kept_files(storage.mount_path, user, 16, "4MiB")
    rows = layout_rows(run.phases[0])
    assert len(rows) == len(files) == 16
    for row in rows:
        assert dict(row["targets"]).keys() == storage.targets_of(files[row["task"]]), row
        assert [held for _, held in row["targets"]] == [4 * MIB]
    storage.room.run("rm", "-r", str(storage.mount_path / "kept"))
    assert len({target for row in rows for target, _ in row["targets"]}) > 1, "all on one target tell little"


def test_sharded_files_report_only_the_first_shard(storage: Storage, user: User) -> None:
    if not isinstance(storage, Gluster):
        pytest.skip("Gluster has shards")
    run, files = kept_files(storage.places["shard"], user, 6, "10MiB")
    rows = layout_rows(run.phases[0])
    assert len(rows) == len(files) == 6
    for row in rows:
        # what lies on the disks of the bricks under the file's own name is its first shard
        (brick, first), *more = storage.held("shard", files[row["task"]].name).items()
        assert more == []
        assert first == storage.shard_bytes
        bytes_by_target = dict(row["targets"])
        assert bytes_by_target.pop("?") == 10 * MIB - storage.shard_bytes
        assert {name.partition(":")[2]: held for name, held in bytes_by_target.items()} == {brick: storage.shard_bytes}
    storage.room.run("rm", "-r", str(storage.places["shard"] / "kept"))


def test_unknown_layout_of_dispersed_files_is_reported(storage: Storage, user: User) -> None:
    if not isinstance(storage, Gluster):
        pytest.skip("Gluster disperses")
    run, files = kept_files(storage.places["disperse"], user, 4, "3MiB")
    # a third on each of four bricks: one target could not stand for them
    assert storage.held("disperse", files[0].name).keys() == {f"{brick}/disperse" for brick in storage.bricks}
    assert run.phases[0].layout is None
    sentence = assess_phase_rate(run, run.phases[0]).slow_targets
    assert sentence.startswith("Which target holds which byte is not known: the attribute `trusted.glusterfs.pathinfo`")
    storage.room.run("rm", "-r", str(storage.places["disperse"] / "kept"))


def test_silent_monitors_report_the_pool_instead_of_osds(storage: Storage, user: User, tmp_path: Path) -> None:
    if not isinstance(storage, Ceph):
        pytest.skip("Ceph has monitors")
    (tmp_path / "slow").mkdir()
    slow = tmp_path / "slow" / "ceph"
    slow.write_text("#!/bin/sh\nexec sleep 100\n")
    slow.chmod(0o755)
    user.first_in_path(slow.parent)
    run, _ = kept_files(storage.mount_path, user, 2, "1MiB")
    assert {name for row in layout_rows(run.phases[0]) for name, _ in row["targets"]} == {"pool bytes"}
    assert assess_phase_rate(run, run.phases[0]).slow_targets == (
        "Which OSD holds which byte is not known, so the pool stands for all of them:"
        " `ceph osd pool ls detail`: no answer within 10 s, so it was ended."
    )
    storage.room.run("rm", "-r", str(storage.mount_path / "kept"))


def slow_ones(phase: PhaseRecord) -> list[SlowTarget]:
    """Slow targets by operation latency and by rates of complete files."""
    rates = collect_target_rates(phase, counts_operations=False)
    print(
        *(f"{target.name}: {len(target.rates)} files of {median(target.rates) / 1e6:.1f} MB/s" for target in rates),
        sep=", ",
    )
    by_files = find_slow_targets(rates)
    print(
        *(f"{target.name}: {target.factor:.2f} ({target.low:.2f} to {target.high:.2f})" for target in by_files),
        "by files",
    )
    by_answers = find_slow_targets_by_latency(phase)
    print(
        *(f"{target.name}: {target.factor:.2f} ({target.low:.2f} to {target.high:.2f})" for target in by_answers),
        "by answers",
    )
    return [*by_files, *by_answers]


def used_again(storage: Storage, user: User) -> tuple[PhaseRecord, str]:
    """Tasks that read or rewrite a file each, and what is said of them.

    The files are there before any server is slow: who chooses servers by their load would give a slow one few.
    """
    data = {"access": {"transfer": "128KiB", "block": "2MiB"}, "files": {"mapping": "per_task"}}
    directory = {"directory": "slow", "keep": True}
    if not in_tree(storage.room, storage.mount_path, "slow"):
        plan = user.plan(
            "made", target={"path": str(storage.mount_path), **directory}, tasks={"threads": 40},
            data={**data, "io": {"fsync": "end"}}, phases=[{"id": "write", "op": "write"}],
        )  # fmt: skip
        done = user.sonde("run", plan, "--no-report", "-q")
        assert done.code == 0, done
    if isinstance(storage, MooseFS):
        storage.forget()
    read = storage.tells == "read"
    mount_point, io = (storage.second, {"direct": True}) if read else (storage.mount_path, storage.to_servers)
    plan = user.plan(
        "slow", target={"path": str(mount_point), **directory, "use_existing": True}, tasks={"threads": 40},
        data={**data, "io": io}, phases=[{"id": storage.tells, "op": storage.tells}],
    )  # fmt: skip
    done = user.sonde("run", plan, "--no-report")
    assert done.code == 0, done
    return last_run(user).phases[0], done.out


def only_one_is_named(storage: Storage, user: User, slower: Callable[[int], AbstractContextManager[None]]) -> None:
    """Nobody while all are alike, then the server that is slow and no other: the one with most files, as fewer than
    some five say nothing."""
    try:
        phase, message = used_again(storage, user)
        assert slow_ones(phase) == [], message
        number = storage.targets.index(
            max(collect_target_rates(phase, counts_operations=False), key=lambda target: len(target.rates)).name
        )
        with slower(number):
            phase, message = used_again(storage, user)
        assert {target.name for target in slow_ones(phase)} == {storage.targets[number]}, message
        assert storage.targets[number] in message
    finally:
        storage.room.run("rm", "-rf", str(storage.mount_path / "slow"))


def test_repeatedly_stopped_server_is_the_only_slow_server(storage: Storage, user: User) -> None:
    only_one_is_named(storage, user, lambda number: storage.room.slowed(storage.pid(number), storage.stops_ms))


def test_server_with_a_slow_disk_is_the_only_slow_server(storage: Storage, user: User) -> None:
    if reason := no_throttle():
        pytest.skip(reason)
    room = storage.room
    only_one_is_named(storage, user, lambda number: room.throttled(storage.pid(number), storage.disk(number), 4 * MIB))
