# SPDX-License-Identifier: Apache-2.0
"""Plans on block devices: what they write, whom they refuse, and that a refused device keeps every byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from device_plans import (
    MIB,
    READ,
    SIZE,
    WRITE,
    allow_device,
    make_file_system,
    make_plan,
    run,
    run_rejected_plan,
)
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, MISMATCH, Engine, Plan, find_schema_errors
from file_systems import loop_device, run_command, skip_without_root


@pytest.mark.parametrize("backend", ["posix", "io_uring", "mmap"])
def test_blocks_are_written_and_verified(engine: Engine, device_image: Path, device: str, backend: str) -> None:
    reread: Plan = {"id": "read", "op": "read", "before": [{"kind": "drop_page_cache"}]}
    result = run(engine, make_plan(device, WRITE, reread, backend=backend, verify="both"), *allow_device(device))
    assert result.code == DONE, result.err
    assert not [text for line in result.lines for text in find_schema_errors(line)]
    assert result.finished("read")["verify"] == {"checked_bytes": 16 * MIB, "mismatches": 0}
    assert result.of("verification")[0]["checked_bytes"] == 16 * MIB
    os.sync()
    content = device_image.read_bytes()
    assert all(any(content[offset : offset + 4096]) for offset in range(0, 16 * MIB, 4096))
    assert not any(content[16 * MIB :])
    assert Path(device).is_block_device()
    assert result.end["files_removed"] == 0


def test_regions_of_tasks_are_disjoint(engine: Engine, device_image: Path, device: str) -> None:
    plan = make_plan(
        device, WRITE, READ, verify="on_read", access={"transfer": "64KiB", "block": "4MiB", "segments": 1}
    )
    result = run(engine, plan, *allow_device(device))
    assert result.code == DONE, result.err
    assert result.finished("read")["verify"]["checked_bytes"] == 8 * MIB


def test_changed_block_is_a_mismatch(engine: Engine, device_image: Path, device: str) -> None:
    spoil = f"dd if=/dev/urandom of={device} bs=4096 seek=1 count=1 conv=notrunc,fsync status=none"
    read: Plan = {"id": "read", "op": "read", "before": [{"kind": "command", "command": spoil}]}
    result = run(engine, make_plan(device, WRITE, read, verify="on_read"), *allow_device(device))
    assert result.code == MISMATCH, result.err


def test_record_describes_the_device(engine: Engine, device: str) -> None:
    result = run(engine, make_plan(device, READ), *allow_device(device))
    facts = result.of("node")[0]["file_system"]
    assert (facts["type"], facts["source"]) == ("block", device)
    block = facts["block_device"]
    assert block["name"] == Path(device).name
    assert block["size_bytes"] == SIZE
    assert block["logical_block_bytes"] == 512
    assert {"physical_block_bytes", "rotational", "scheduler"} <= block.keys()


def test_unwritten_blocks_can_be_read(engine: Engine, device: str) -> None:
    wide: Plan = {"id": "read", "op": "read", "access": {"transfer": "1MiB", "block": "16MiB", "segments": 2}}
    result = run(engine, make_plan(device, WRITE, wide), *allow_device(device))
    assert result.code == DONE, result.err
    assert result.finished("read")["bytes"]["read"] == 64 * MIB


def test_cached_region_counts_not_the_device(engine: Engine, device: str) -> None:
    result = run(engine, make_plan(device, WRITE, READ), *allow_device(device))
    assert [line["cache"] for line in result.of("phase_begin")] == ["unknown", "warm"]


def test_direct_io_in_logical_blocks(engine: Engine, device: str) -> None:
    result = run(engine, make_plan(device, WRITE, READ, io={"direct": True}, verify="on_read"), *allow_device(device))
    assert result.code == DONE, result.err


def test_device_without_permission_option_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    assert f"add --allow-device {device}" in run_rejected_plan(engine, device_image, make_plan(device))


def test_plan_that_only_reads_needs_no_permission(engine: Engine, device_image: Path, device: str) -> None:
    content = device_image.read_bytes()
    result = run(engine, make_plan(device, READ))
    assert result.code == DONE, result.err
    assert result.finished("read")["bytes"]["transferred"] > 0
    assert device_image.read_bytes() == content
    assert "is not the plan's target" in run_rejected_plan(
        engine, device_image, make_plan(device, READ), *allow_device("/dev/absent")
    )


def test_name_not_typed_in_full_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    sentence = run_rejected_plan(engine, device_image, make_plan(device), *allow_device(Path(device).name))
    assert "type the same path in full" in sentence


def test_other_allowed_device_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    assert "is not the plan's target" in run_rejected_plan(
        engine, device_image, make_plan(device), *allow_device("/dev/absent")
    )


def test_relative_path_of_device_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    assert "named in full" in run_rejected_plan(
        engine, device_image, make_plan(Path(device).name), *allow_device(Path(device).name)
    )


def test_allow_device_without_device_is_refused(engine: Engine, target: Path) -> None:
    plan = make_plan(str(target))
    plan["target"] = {"path": str(target), "min_free": 0}
    result = run(engine, plan, *allow_device("/dev/absent"))
    assert result.code == BAD_PLAN
    assert "leave the option out" in result.only_sentence


def test_device_as_a_directory_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    plan = make_plan(device)
    plan["target"] = {"path": device}
    assert "sets target.device" in run_rejected_plan(engine, device_image, plan)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_character_device_is_refused(engine: Engine, path: str) -> None:
    result = run(engine, make_plan(path), *allow_device(path))
    assert result.code == BAD_PLAN
    assert "is a character device" in result.only_sentence
    assert Path(path).is_char_device()


def test_regular_file_is_refused(engine: Engine, device_image: Path) -> None:
    assert "is a regular file" in run_rejected_plan(
        engine, device_image, make_plan(str(device_image)), *allow_device(str(device_image))
    )


def test_directory_as_device_is_refused(engine: Engine, target: Path) -> None:
    result = run(engine, make_plan(str(target)), *allow_device(str(target)))
    assert result.code == BAD_PLAN
    assert "is a directory" in result.only_sentence
    assert list(target.iterdir()) == []


def test_absent_device_is_rejected_and_not_created(engine: Engine, tmp_path: Path) -> None:
    path = str(tmp_path / "absent")
    result = run(engine, make_plan(path), *allow_device(path))
    assert result.code == BAD_PLAN
    assert "No such file" in result.only_sentence
    assert not Path(path).exists()


def test_plan_beyond_the_device_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    plan = make_plan(device, access={"transfer": "1MiB", "block": "1MiB", "segments": 33})
    assert f"has {SIZE} B" in run_rejected_plan(engine, device_image, plan, *allow_device(device))


def test_random_range_beyond_device_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    access = {"transfer": "64KiB", "segments": 1, "order": "random_replace", "within": "65MiB"}
    plan = make_plan(device, {"id": "mixed", "op": "mixed", "access": {"read_ratio": 0.5}}, access=access)
    assert "reaches to byte" in run_rejected_plan(engine, device_image, plan, *allow_device(device))


def test_unaligned_direct_io_is_refused(engine: Engine, device_image: Path) -> None:
    skip_without_root()
    done = run_command("losetup", "--find", "--show", "--sector-size", "4096", str(device_image))
    if done.returncode != 0:
        pytest.skip(f"no loop device with blocks of 4 KiB here: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        plan = make_plan(device, io={"direct": True}, access={"transfer": 512, "block": 512, "segments": 4})
        assert "logical blocks of 4096 B" in run_rejected_plan(engine, device_image, plan, *allow_device(device))
    finally:
        run_command("losetup", "--detach", device)


def test_read_only_device_is_refused_for_writing(engine: Engine, device_image: Path, device: str) -> None:
    assert run_command("blockdev", "--setro", device).returncode == 0
    try:
        assert "is read-only" in run_rejected_plan(
            engine, device_image, make_plan(device), *allow_device(device), expected_exit_code=ENVIRONMENT
        )
        assert run(engine, make_plan(device, READ), *allow_device(device)).code == DONE
    finally:
        run_command("blockdev", "--setrw", device)  # it outlasts losetup --detach


@pytest.mark.serial  # another test would take the loop device as soon as it is free
def test_device_without_medium_is_refused(engine: Engine, device_image: Path) -> None:
    with loop_device(device_image) as device:
        pass
    sentence = run_rejected_plan(
        engine, device_image, make_plan(device), *allow_device(device), expected_exit_code=ENVIRONMENT
    )
    assert "was removed or has no medium" in sentence


def test_user_without_permission_is_refused(engine: Engine, device_image: Path, device: str) -> None:
    powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    mode = os.stat(device).st_mode & 0o777
    os.chmod(device, 0)
    try:
        result = engine.run(make_plan(device), *allow_device(device), launch_prefix=powerless)
    finally:
        os.chmod(device, mode)
    assert result.code == ENVIRONMENT, result.err
    assert "run as root" in result.only_sentence


def test_link_to_a_device_resolves_to_the_device(
    engine: Engine, device_image: Path, device: str, tmp_path: Path
) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(device)
    make_file_system(device)
    assert f"device {link} ({device}) holds" in run_rejected_plan(
        engine, device_image, make_plan(str(link)), *allow_device(str(link))
    )
    assert run(engine, make_plan(str(link)), *allow_device(str(link)), "--destroy").code == DONE
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("change", "expected_sentence"),
    [
        ({"data": {"files": {"mapping": "per_task"}}}, "data.files.mapping"),
        ({"data": {"backend": "null"}}, "accesses no block devices"),
        ({"data": {"io": {"preallocate": "fallocate"}}}, "io.preallocate"),
        ({"target": {"keep": True}}, "target.keep"),
        ({"target": {"use_existing": True}}, "target.use_existing"),
        ({"target": {"directory": "d"}}, "target.directory"),
        ({"target": {"striping": {"count": 1}}}, "target.striping"),
        ({"phases": [{"id": "w", "op": "write", "open": "exclusive"}]}, "phases[0].open"),
        ({"phases": [WRITE, {"id": "s", "op": "stat"}]}, "needs files"),
        ({"phases": [WRITE, {"id": "d", "op": "remove"}]}, "needs files"),
        ({"phases": [{"id": "w", "op": "write", "before": [{"kind": "remount"}]}]}, "has a remount"),
        ({"phases": [WRITE, {"id": "r", "op": "read", "process": "separate"}]}, "needs a run directory"),
    ],
)
def test_members_of_files_are_refused(
    engine: Engine, device_image: Path, device: str, change: Plan, expected_sentence: str
) -> None:
    plan = make_plan(device)
    for table, members in change.items():
        if isinstance(members, dict):
            plan[table] = {**plan[table], **members}
        else:
            plan[table] = members
    assert expected_sentence in run_rejected_plan(engine, device_image, plan, *allow_device(device))
