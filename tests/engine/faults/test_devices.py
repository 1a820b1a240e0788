# SPDX-License-Identifier: Apache-2.0
"""Plans on block devices: what they write, whom they refuse, and that a refused device keeps every byte."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, MISMATCH, Engine, Plan, Result, complaints
from file_systems import command, loop_device, mounted, need_root

MIB = 1 << 20
SIZE = 64 * MIB
WRITE: Plan = {"id": "write", "op": "write"}
READ: Plan = {"id": "read", "op": "read"}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A sparse file of 64 MiB below a loop device."""
    path = tmp_path / "device.img"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


@pytest.fixture
def device(image: Path) -> Iterator[str]:
    """A loop device without content. Devices of this machine are never named here."""
    with loop_device(image) as path:
        yield path


def make_plan(device: str, *phases: Plan, **members: object) -> Plan:
    """Two tasks on one device, 8 MiB each, in turn."""
    data: Plan = {
        "files": {"mapping": "shared"},
        "access": {"transfer": "64KiB", "block": "1MiB", "segments": 8},
        **members,
    }
    return {
        "schema": "sonde-plan/2",
        "id": "device",
        "target": {"path": device, "device": True},
        "tasks": {"threads": 2},
        "data": data,
        "phases": list(phases) or [WRITE],
    }


def run(engine: Engine, plan: Plan, *options: str) -> Result:
    return engine.run(plan, *options)


def allow(device: str) -> tuple[str, str]:
    return "--allow-device", device


def hash_of(image: Path) -> str:
    os.sync()
    with image.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse(engine: Engine, image: Path, plan: Plan, *options: str, code: int = BAD_PLAN) -> str:
    """The sentence of a run that must end before it writes a byte."""
    before = hash_of(image)
    result = run(engine, plan, *options)
    assert result.code == code, result.err
    assert hash_of(image) == before
    return result.only_sentence


@pytest.mark.parametrize("backend", ["posix", "io_uring", "mmap"])
def test_blocks_are_written_and_verified(engine: Engine, image: Path, device: str, backend: str) -> None:
    reread: Plan = {"id": "read", "op": "read", "before": [{"kind": "drop_page_cache"}]}
    result = run(engine, make_plan(device, WRITE, reread, backend=backend, verify="both"), *allow(device))
    assert result.code == DONE, result.err
    assert not [text for line in result.lines for text in complaints(line)]
    assert result.finished("read")["verify"] == {"checked_bytes": 16 * MIB, "mismatches": 0}
    assert result.of("verification")[0]["checked_bytes"] == 16 * MIB
    os.sync()
    content = image.read_bytes()
    assert all(any(content[offset : offset + 4096]) for offset in range(0, 16 * MIB, 4096))
    assert not any(content[16 * MIB :])
    assert Path(device).is_block_device()
    assert result.end["files_removed"] == 0


def test_regions_of_tasks_are_disjoint(engine: Engine, image: Path, device: str) -> None:
    plan = make_plan(
        device, WRITE, READ, verify="on_read", access={"transfer": "64KiB", "block": "4MiB", "segments": 1}
    )
    result = run(engine, plan, *allow(device))
    assert result.code == DONE, result.err
    assert result.finished("read")["verify"]["checked_bytes"] == 8 * MIB


def test_changed_block_is_a_mismatch(engine: Engine, image: Path, device: str) -> None:
    spoil = f"dd if=/dev/urandom of={device} bs=4096 seek=1 count=1 conv=notrunc,fsync status=none"
    read: Plan = {"id": "read", "op": "read", "before": [{"kind": "command", "command": spoil}]}
    result = run(engine, make_plan(device, WRITE, read, verify="on_read"), *allow(device))
    assert result.code == MISMATCH, result.err


def test_record_describes_the_device(engine: Engine, device: str) -> None:
    result = run(engine, make_plan(device, READ), *allow(device))
    facts = result.of("node")[0]["file_system"]
    assert (facts["type"], facts["source"]) == ("block", device)
    block = facts["block_device"]
    assert block["name"] == Path(device).name
    assert block["size_bytes"] == SIZE
    assert block["logical_block_bytes"] == 512
    assert {"physical_block_bytes", "rotational", "scheduler"} <= block.keys()


def test_blocks_nobody_wrote_can_be_read(engine: Engine, device: str) -> None:
    wide: Plan = {"id": "read", "op": "read", "access": {"transfer": "1MiB", "block": "16MiB", "segments": 2}}
    result = run(engine, make_plan(device, WRITE, wide), *allow(device))
    assert result.code == DONE, result.err
    assert result.finished("read")["bytes"]["read"] == 64 * MIB


def test_cached_region_counts_not_the_device(engine: Engine, device: str) -> None:
    result = run(engine, make_plan(device, WRITE, READ), *allow(device))
    assert [line["cache"] for line in result.of("phase_begin")] == ["unknown", "warm"]


def test_direct_io_in_logical_blocks(engine: Engine, device: str) -> None:
    result = run(engine, make_plan(device, WRITE, READ, io={"direct": True}, verify="on_read"), *allow(device))
    assert result.code == DONE, result.err


def test_device_without_permission_option_is_refused(engine: Engine, image: Path, device: str) -> None:
    assert f"add --allow-device {device}" in refuse(engine, image, make_plan(device))


def test_name_not_typed_in_full_is_refused(engine: Engine, image: Path, device: str) -> None:
    sentence = refuse(engine, image, make_plan(device), *allow(Path(device).name))
    assert "type the same path in full" in sentence


def test_other_allowed_device_is_refused(engine: Engine, image: Path, device: str) -> None:
    assert "is not the plan's target" in refuse(engine, image, make_plan(device), *allow("/dev/absent"))


def test_relative_path_of_device_is_refused(engine: Engine, image: Path, device: str) -> None:
    assert "named in full" in refuse(engine, image, make_plan(Path(device).name), *allow(Path(device).name))


def test_allow_device_without_device_is_refused(engine: Engine, target: Path) -> None:
    plan = make_plan(str(target))
    plan["target"] = {"path": str(target), "min_free": 0}
    result = run(engine, plan, *allow("/dev/absent"))
    assert result.code == BAD_PLAN
    assert "leave the option out" in result.only_sentence


def test_device_as_a_directory_is_refused(engine: Engine, image: Path, device: str) -> None:
    plan = make_plan(device)
    plan["target"] = {"path": device}
    assert "sets target.device" in refuse(engine, image, plan)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_character_device_is_refused(engine: Engine, path: str) -> None:
    result = run(engine, make_plan(path), *allow(path))
    assert result.code == BAD_PLAN
    assert "is a character device" in result.only_sentence
    assert Path(path).is_char_device()


def test_regular_file_is_refused(engine: Engine, image: Path) -> None:
    assert "is a regular file" in refuse(engine, image, make_plan(str(image)), *allow(str(image)))


def test_directory_as_device_is_refused(engine: Engine, target: Path) -> None:
    result = run(engine, make_plan(str(target)), *allow(str(target)))
    assert result.code == BAD_PLAN
    assert "is a directory" in result.only_sentence
    assert list(target.iterdir()) == []


def test_absent_device_is_refused_and_not_made(engine: Engine, tmp_path: Path) -> None:
    path = str(tmp_path / "absent")
    result = run(engine, make_plan(path), *allow(path))
    assert result.code == BAD_PLAN
    assert "No such file" in result.only_sentence
    assert not Path(path).exists()


def test_plan_beyond_the_device_is_refused(engine: Engine, image: Path, device: str) -> None:
    plan = make_plan(device, access={"transfer": "1MiB", "block": "1MiB", "segments": 33})
    assert f"has {SIZE} B" in refuse(engine, image, plan, *allow(device))


def test_random_range_beyond_device_is_refused(engine: Engine, image: Path, device: str) -> None:
    access = {"transfer": "64KiB", "segments": 1, "order": "random_replace", "within": "65MiB"}
    plan = make_plan(device, {"id": "mixed", "op": "mixed", "access": {"read_ratio": 0.5}}, access=access)
    assert "reaches to byte" in refuse(engine, image, plan, *allow(device))


def test_unaligned_direct_io_is_refused(engine: Engine, image: Path) -> None:
    need_root()
    done = command("losetup", "--find", "--show", "--sector-size", "4096", str(image))
    if done.returncode != 0:
        pytest.skip(f"no loop device with blocks of 4 KiB here: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        plan = make_plan(device, io={"direct": True}, access={"transfer": 512, "block": 512, "segments": 4})
        assert "logical blocks of 4096 B" in refuse(engine, image, plan, *allow(device))
    finally:
        command("losetup", "--detach", device)


def test_read_only_device_is_refused_for_writing(engine: Engine, image: Path, device: str) -> None:
    assert command("blockdev", "--setro", device).returncode == 0
    try:
        assert "is read-only" in refuse(engine, image, make_plan(device), *allow(device), code=ENVIRONMENT)
        assert run(engine, make_plan(device, READ), *allow(device)).code == DONE
    finally:
        command("blockdev", "--setrw", device)  # it outlasts losetup --detach


def test_device_without_medium_is_refused(engine: Engine, image: Path) -> None:
    with loop_device(image) as device:
        pass
    if command("losetup", device).returncode == 0:
        pytest.skip(f"somebody else uses {device} by now")
    sentence = refuse(engine, image, make_plan(device), *allow(device), code=ENVIRONMENT)
    assert "was removed or has no medium" in sentence


def test_user_without_permission_is_refused(engine: Engine, image: Path, device: str) -> None:
    powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    mode = os.stat(device).st_mode & 0o777
    os.chmod(device, 0)
    try:
        result = engine.run(make_plan(device), *allow(device), before=powerless)
    finally:
        os.chmod(device, mode)
    assert result.code == ENVIRONMENT, result.err
    assert "run as root" in result.only_sentence


def make_file_system(device: str) -> None:
    maker = shutil.which("mkfs.ext4")
    if maker is None:
        pytest.skip("mkfs.ext4 is not installed")
    assert command(maker, "-q", "-F", device).returncode == 0


def test_mounted_device_is_refused_but_read(engine: Engine, image: Path, device: str, tmp_path: Path) -> None:
    make_file_system(device)
    with mounted((device,), tmp_path / "mounted"):
        for options in (allow(device), (*allow(device), "--destroy")):
            result = run(engine, make_plan(device), *options)
            assert result.code == ENVIRONMENT
            assert f"is mounted on {tmp_path / 'mounted'}" in result.only_sentence
        assert run(engine, make_plan(device, READ), *allow(device)).code == DONE
    assert command("fsck.ext4", "-n", "-f", device).returncode == 0


def test_file_system_needs_destroy(engine: Engine, image: Path, device: str) -> None:
    make_file_system(device)
    assert "holds a file system (ext4)" in refuse(engine, image, make_plan(device), *allow(device))
    assert run(engine, make_plan(device), *allow(device), "--destroy").code == DONE


def test_destroy_of_a_reading_plan_is_refused(engine: Engine, image: Path, device: str) -> None:
    assert "only reads" in refuse(engine, image, make_plan(device, READ), *allow(device), "--destroy")


def test_swap_signature_needs_destroy(engine: Engine, image: Path, device: str) -> None:
    assert command("mkswap", device).returncode == 0
    assert "(swap)" in refuse(engine, image, make_plan(device), *allow(device))


def test_swap_in_use_is_refused(engine: Engine, image: Path, device: str) -> None:
    assert command("mkswap", device).returncode == 0
    if command("swapon", device).returncode != 0:
        pytest.skip("swapon is not allowed here")
    try:
        result = run(engine, make_plan(device), *allow(device), "--destroy")
        assert result.code == ENVIRONMENT
        assert "holds swap space that is in use" in result.only_sentence
    finally:
        assert command("swapoff", device).returncode == 0


@contextmanager
def partitioned(image: Path) -> Iterator[tuple[str, str]]:
    """A loop device with one partition: both paths."""
    need_root()
    # One entry of a table of DOS partitions: Linux (0x83), sectors 2048 to 67583.
    entry = struct.pack("<B3sB3sII", 0, b"", 0x83, b"", 2048, 65536)
    with image.open("r+b") as file:
        file.seek(446)
        file.write(entry.ljust(64, b"\0") + b"\x55\xaa")
    done = command("losetup", "--find", "--show", "--partscan", str(image))
    if done.returncode != 0:
        pytest.skip(f"no loop device here: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        # Not every kernel reads tables of partitions.
        if not Path(f"{device}p1").exists() and command("addpart", device, "1", "2048", "65536").returncode != 0:
            pytest.skip("the kernel makes no partitions of loop devices here")
        yield device, f"{device}p1"
    finally:
        command("delpart", device, "1")
        command("losetup", "--detach", device)


def test_partition_table_needs_destroy(engine: Engine, image: Path) -> None:
    with partitioned(image) as (device, _):
        assert "a partition table (dos)" in refuse(engine, image, make_plan(device), *allow(device))


def test_mounted_partition_protects_the_disk(engine: Engine, image: Path, tmp_path: Path) -> None:
    with partitioned(image) as (device, partition):
        make_file_system(partition)
        with mounted((partition,), tmp_path / "mounted"):
            result = run(engine, make_plan(device), *allow(device), "--destroy")
        assert result.code == ENVIRONMENT
        assert f"has the partition {Path(partition).name}, which is mounted on" in result.only_sentence


def test_device_below_a_loop_device_is_refused(engine: Engine, image: Path, device: str) -> None:
    with loop_device(Path(device)) as upper:
        sentence = refuse(engine, image, make_plan(device), *allow(device), code=ENVIRONMENT)
    assert f"is below the loop device {Path(upper).name}" in sentence


def test_device_claimed_by_a_program_is_refused(engine: Engine, image: Path, device: str) -> None:
    claim = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        sentence = refuse(engine, image, make_plan(device), *allow(device), code=ENVIRONMENT)
    finally:
        os.close(claim)
    assert "is in use by the kernel or another program" in sentence


def test_device_is_claimed_during_the_run(engine: Engine, device: str) -> None:
    try_claim = f"flock --version >/dev/null; python3 -c 'import os; os.open(\"{device}\", os.O_RDONLY | os.O_EXCL)'"
    claimed: Plan = {**WRITE, "before": [{"kind": "command", "command": try_claim, "need": "required"}]}
    result = run(engine, make_plan(device, claimed), *allow(device))
    assert result.code == ENVIRONMENT
    os.close(os.open(device, os.O_RDONLY | os.O_EXCL))  # released afterwards


def test_link_names_the_device_it_leads_to(engine: Engine, image: Path, device: str, tmp_path: Path) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(device)
    make_file_system(device)
    assert f"device {link} ({device}) holds" in refuse(engine, image, make_plan(str(link)), *allow(str(link)))
    assert run(engine, make_plan(str(link)), *allow(str(link)), "--destroy").code == DONE
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("change", "sentence"),
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
def test_members_of_files_are_refused(engine: Engine, image: Path, device: str, change: Plan, sentence: str) -> None:
    plan = make_plan(device)
    for table, members in change.items():
        if isinstance(members, dict):
            plan[table] = {**plan[table], **members}
        else:
            plan[table] = members
    assert sentence in refuse(engine, image, plan, *allow(device))
