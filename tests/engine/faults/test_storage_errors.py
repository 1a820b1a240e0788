# SPDX-License-Identifier: Apache-2.0
"""When the storage fails: one sentence that names task, host, path, offset and error, exit code 1, finished phases are
kept, everything is removed.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from engine_under_test import ENVIRONMENT, FAILED, Engine, Plan, Result, list_tree, write_plan
from file_systems import file_system, fill_command, tmpfs

MIB = 1 << 20
HOST = socket.gethostname()


def make_plan_that_fills_storage(mount_point: Path, **second: object) -> Plan:
    """A small phase that succeeds, then one that finds the file system full."""
    fill: Plan = {"kind": "command", "command": fill_command(mount_point, 12 * MIB), "need": "required"}
    return write_plan(
        mount_point,
        {"id": "small", "op": "write"},
        {"id": "full", "op": "write", "before": [fill], "access": {"transfer": "64KiB", "segments": 160}, **second},
        tasks={"threads": 2},
    )


def assert_error_is_named(result: Result, phase: str, failed_call: str, error_number: int) -> None:
    """The sentence and the record say the same: which task, where, what, which error."""
    assert result.code == FAILED
    name = errno.errorcode[error_number]
    first = result.of("error")[0]
    assert (first["phase"], first["host"], first["operation"], first["errno"], first["name"]) == (
        phase,
        HOST,
        failed_call,
        error_number,
        name,
    )
    offset_pattern = "" if failed_call == "open" else r" at offset \d+"
    pattern = (
        rf"phase {phase}: task \d+ on {re.escape(HOST)}: {failed_call} of (\S+){offset_pattern} failed: .*\({name}\)"
    )
    match = re.match(pattern, result.sentence)
    assert match, result.sentence
    assert match[1] == first["path"]
    assert result.end["status"] == "failed"
    assert result.end["exit_code"] == FAILED
    assert result.end["text"].startswith(match[0])
    ended = [line for line in result.of("phase_end") if line["phase"] == phase]
    assert [line["stopped_by"] for line in ended] == ["error"]
    assert ended[0]["ops"]["failed"] >= 1
    # What failed is not counted as done.
    assert ended[0]["bytes"]["transferred"] <= ended[0]["bytes"].get("planned", 1 << 62)


WAYS: list[tuple[str, Plan, str]] = [
    ("buffered", {}, "write"),
    ("direct", {"io": {"direct": True}}, "write"),
    ("queued", {"backend": "io_uring", "io": {"direct": True, "queue_depth": 8}}, "write"),
    ("queued-buffered", {"backend": "io_uring", "io": {"queue_depth": 8}}, "write"),
    ("mapped", {"backend": "mmap"}, "write"),
    ("reserved", {"io": {"preallocate": "fallocate"}}, "open"),
]


@pytest.mark.root
@pytest.mark.parametrize("file_system_type", ["ext4", "xfs"])
@pytest.mark.parametrize(("members", "call"), [case[1:] for case in WAYS], ids=[case[0] for case in WAYS])
def test_no_space_left_on_device_is_reported(
    engine: Engine, tmp_path: Path, file_system_type: str, members: Plan, call: str
) -> None:
    with file_system(file_system_type, tmp_path) as point:
        result = engine.run(make_plan_that_fills_storage(point, **members))
        if result.code == ENVIRONMENT and "cannot run here" in result.err:
            pytest.skip(result.sentence)
        if members.get("backend") == "mmap":
            call = result.of("error")[0]["operation"]  # where a mapping notices it is the kernel's choice
        assert_error_is_named(result, "full", call, errno.ENOSPC)
        assert result.finished("small")["stopped_by"] == "volume"
        # What the test itself put there stays.
        assert [name for name in list_tree(point) if name != "lost+found"] == ["ballast"]
        assert result.end["files_left"] == []


@pytest.mark.root
def test_forked_tasks_of_a_full_file_system_speak_once(engine: Engine, tmp_path: Path) -> None:
    with file_system("ext4", tmp_path) as point:
        plan = make_plan_that_fills_storage(point)
        plan["tasks"] = {"processes": 4}
        result = engine.run(plan)
        assert_error_is_named(result, "full", "write", errno.ENOSPC)
        assert result.err.count("\n") == 1
        assert [name for name in list_tree(point) if name != "lost+found"] == ["ballast"]


@pytest.mark.root
def test_a_volume_that_cannot_fit_is_refused_before_the_first_byte(engine: Engine, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", 4) as point:
        plan = write_plan(point, data={"access": {"transfer": "1MiB", "block": "1MiB", "segments": 8}})
        result = engine.run(plan)
        assert result.code == ENVIRONMENT
        assert re.search(r"has 4 MiB free, but the plan needs 8 MiB .* make the volume smaller", result.only_sentence)


@pytest.mark.root
def test_volume_of_a_stonewalled_phase_is_only_an_upper_limit(engine: Engine, tmp_path: Path) -> None:
    """Unless it is preallocated, and then all of it is needed."""
    with tmpfs(tmp_path / "small", 64) as point:
        data: Plan = {"access": {"transfer": "4KiB", "block": "4KiB", "volume": "1GiB"}, "io": {"pause": "1ms"}}
        plan = write_plan(point, data=data)
        plan["target"]["min_free"] = 0
        plan["phases"][0]["stop"] = {"stonewall": "50ms"}
        assert engine.run(plan).code == 0
        plan["data"]["io"]["preallocate"] = "fallocate"
        assert engine.run(plan).code == ENVIRONMENT
        assert list_tree(point) == []


@pytest.mark.root
def test_too_few_inodes_are_noticed_before_the_first_file(engine: Engine, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "few", 8) as point:
        os.system(f"mount -o remount,nr_inodes=20 {point}")
        plan = write_plan(point, data={"files": {"mapping": "many", "count": 50}, "access": {"transfer": "4KiB"}})
        result = engine.run(plan)
        assert result.code == ENVIRONMENT
        assert "free inodes, but the plan makes 50 files" in result.only_sentence
        assert list_tree(point) == []


@pytest.mark.root
def test_a_broken_device_gives_an_input_output_error(engine: Engine, tmp_path: Path) -> None:
    # The image lies on a tmpfs that is too small for it: writing back fails as a broken disk does.
    with tmpfs(tmp_path / "store", 24) as store, file_system("ext4", tmp_path, store) as point:
        io: Plan = {"direct": True}
        data: Plan = {"access": {"transfer": "1MiB", "block": "1MiB", "segments": 40}, "io": io}
        result = engine.run(write_plan(point, data=data))
        assert result.code == FAILED
        first = result.of("error")[0]
        assert first["name"] in ("EIO", "ENOSPC")
        assert f"write of {point}" in result.sentence
        assert result.end["status"] == "failed"


@pytest.mark.root
def test_a_read_only_mount_is_no_target(engine: Engine, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "ro", 4) as point:
        os.system(f"mount -o remount,ro {point}")
        result = engine.run(write_plan(point))
        assert result.code == ENVIRONMENT
        assert f"target {point} is on a read-only file system" in result.only_sentence


CALLS = [
    ("open", "open", {}),
    ("write", "write", {}),
    ("fsync", "fsync", {"io": {"fsync": "end"}}),
    ("close", "close", {}),
]


@pytest.mark.parametrize(("call", "operation", "data"), CALLS, ids=[case[0] for case in CALLS])
def test_an_error_of_any_call_ends_the_phase(
    engine: Engine, target: Path, failing_calls: Callable[..., dict[str, str]], call: str, operation: str, data: Plan
) -> None:
    plan = write_plan(target, {"id": "fails", "op": "write"}, data=data)
    result = engine.run(plan, env=failing_calls(call, errno.EIO))
    assert_error_is_named(result, "fails", operation, errno.EIO)
    assert "dmesg" in result.sentence
    assert list_tree(target) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_the_error_is_counted_where_it_happened(
    engine: Engine, target: Path, failing_calls: Callable[..., dict[str, str]], threads: int
) -> None:
    plan = write_plan(target, {"id": "good", "op": "write"}, {"id": "bad", "op": "read"}, tasks={"threads": threads})
    result = engine.run(plan, env=failing_calls("read", errno.EREMOTEIO, after=5))
    assert_error_is_named(result, "bad", "read", errno.EREMOTEIO)
    assert result.finished("good")["ops"]["done"] == 16 * threads
    bad = result.finished("bad")
    assert bad["ops"]["done"] == 5
    assert bad["bytes"]["transferred"] == 5 * 65536
    if threads == 1:
        assert result.of("error")[0]["offset"] == 5 * 65536
    assert list_tree(target) == []


def test_short_transfers_are_continued_and_counted(
    engine: Engine, target: Path, failing_calls: Callable[..., dict[str, str]]
) -> None:
    plan = write_plan(target, data={"verify": "readback"})
    result = engine.run(plan, env=failing_calls("write", "SHORT", after=3))
    assert result.code == 0, result.err
    end = result.finished("write")
    assert end["ops"]["short"] > 0
    assert end["bytes"]["transferred"] == 16 * 65536


def test_a_file_that_ends_too_early_is_an_error(
    engine: Engine, target: Path, failing_calls: Callable[..., dict[str, str]]
) -> None:
    cut: Plan = {"kind": "command", "command": f"truncate -s 100000 {target}/r/data.t00000000", "need": "required"}
    plan = write_plan(
        target, {"id": "w", "op": "write"}, {"id": "r", "op": "read", "before": [cut]}, target={"directory": "r"}
    )
    result = engine.run(plan)
    assert result.code == FAILED
    assert "the file ends before the data that was expected" in result.only_sentence
    assert result.of("error")[0]["offset"] == 65536
    assert list_tree(target) == []


def test_paced_operations_that_fail_are_not_counted_as_done(engine: Engine, target: Path) -> None:
    paced: Plan = {"rate": "100MB/s", "fail_after": 7, "fail_errno": errno.EIO}
    plan = write_plan(target, data={"backend": "paced", "paced": paced}, tasks={"threads": 2})
    result = engine.run(plan)
    assert_error_is_named(result, "write", "write", errno.EIO)
    end = result.finished("write")
    assert end["ops"]["done"] <= 14
    assert end["ops"]["done"] == end["bytes"]["transferred"] / 65536
    # Time is virtual: up to the failed operation it is known exactly.
    assert end["rates"]["total"]["bytes"] == end["bytes"]["transferred"]
    assert end["latency"]["write"]["mean_ns"] == pytest.approx(65536 / 0.1, rel=0.01)


def test_a_file_size_limit_is_an_error_and_no_signal(engine: Engine, target: Path) -> None:
    plan = write_plan(target, data={"access": {"transfer": "1MiB", "block": "1MiB", "segments": 100}})
    # In units of 1024 bytes: above what shared memory needs, below what the plan writes.
    result = engine.run(plan, launch_prefix=["bash", "-c", 'ulimit -f 71680; exec "$@"', "limited"])
    assert_error_is_named(result, "write", "write", errno.EFBIG)
    assert "ulimit -f" in result.sentence
    assert list_tree(target) == []


@pytest.mark.root
def test_directory_of_another_user_is_rejected_as_target(engine_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root (to become nobody)")
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with TemporaryDirectory() as folder:  # where nobody may look, other than in pytest's
        Path(folder).chmod(0o755)
        engine, target, record = Engine(engine_path, Path(folder)), Path(folder) / "target", Path(folder) / "nobody/r"
        for directory, mode in ((target, 0o755), (record.parent, 0o777)):
            directory.mkdir()
            directory.chmod(mode)
        result = engine.run(write_plan(target), launch_prefix=become, record=record)
        assert result.code == ENVIRONMENT
        assert f"target {target} is not writable for this user" in result.only_sentence
        assert list_tree(target) == []
        target.chmod(0o777)
        assert engine.run(write_plan(target), launch_prefix=become, record=record).code == 0


@pytest.mark.root
def test_names_are_cold_only_where_caches_were_dropped(engine_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root (to drop caches, and to become nobody)")
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    drop: Plan = {"kind": "drop_page_cache", "need": "best_effort"}
    phases: list[Plan] = [{"id": name, "op": name} for name in ("mktree", "create", "stat")]
    phases[-1]["before"] = [drop]
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        engine, target = Engine(engine_path, Path(folder)), Path(folder) / "target"
        target.mkdir()
        target.chmod(0o777)
        plan: Plan = {
            "schema": "sonde-plan/2",
            "id": "names",
            "target": {"path": str(target), "min_free": 0},
            "meta": {"tree": {"items_per_task": 50}},
            "phases": phases,
        }
        for before, record, cold in ((become, Path(folder) / "nobody", False), ([], Path(folder) / "root", True)):
            result = engine.run(plan, launch_prefix=before, record=record)
            assert result.code == 0, result.err
            (treated,) = result.of("treatment")
            assert treated.get("metadata_cache_dropped", False) is cold, treated
            findings = [finding for finding in result.of("finding") if finding["id"] == "names_cached"]
            assert [finding["phase"] for finding in findings] == ([] if cold else ["stat"])
            assert cold or "the treatment before did not empty" in findings[0]["text"]


@pytest.mark.root
def test_target_unmounted_during_the_run_is_an_open_error(engine: Engine, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "vanishing", 16) as point:
        unmount: Plan = {"kind": "command", "command": f"umount -l {point}", "need": "required"}
        plan = write_plan(point, {"id": "w", "op": "write"}, {"id": "r", "op": "read", "before": [unmount]})
        result = engine.run(plan)
        assert_error_is_named(result, "r", "open", errno.ENOENT)
        assert result.finished("w")["stopped_by"] == "volume"
        assert "is not there any more" in result.sentence
        assert len(result.end["files_left"]) == 1


def test_run_directory_removed_during_the_run_is_an_open_error(engine: Engine, target: Path) -> None:
    plan = write_plan(
        target,
        {"id": "first", "op": "write"},
        {"id": "last", "op": "rewrite", "before": [{"kind": "command", "command": f"rm -rf {target}/gone"}]},
        target={"directory": "gone"},
    )
    result = engine.run(plan)
    assert_error_is_named(result, "last", "open", errno.ENOENT)
    assert list_tree(target) == []
