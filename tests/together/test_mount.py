# SPDX-License-Identifier: Apache-2.0
"""Described machines as mounted file systems: what is stored is there, operations take the machine's time, layouts are
those of Lustre, and faults and counters are at hand. Times are those of a machine slowed down so far that this computer
keeps up whatever else it does."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sonde.model.bundled_files import find_system_file
from sonde.model.record import read_record
from sonde.model.system import read_system

MIB = 1 << 20
LOV = struct.Struct("<IIQQIHH")  # struct lov_user_md_v1 of lustre_user.h, without its objects
V1, V3 = 0x0BD10BD0, 0x0BD30BD0
Mount = Callable[..., Path]


@pytest.fixture
def untimed_mount(mount_model: Mount) -> Path:
    """A mount without simulated time, for tests of bytes and names only."""
    return mount_model("--no-cost")


def process_of(directory: Path) -> int:
    return int(json.loads((directory / ".sonde" / "mount.json").read_text(encoding="utf-8"))["process"])


def test_bytes_names_and_attributes_behave_as_on_a_file_system(untimed_mount: Path, tmp_path: Path) -> None:
    first = untimed_mount / "first"
    content = os.urandom(3 * MIB + 17)
    first.write_bytes(content)
    with first.open("r+b") as file:
        file.seek(5 * MIB)
        file.write(b"behind a hole")
    expected = content + bytes(2 * MIB - 17) + b"behind a hole"
    assert first.read_bytes() == expected == (tmp_path / "store" / "first").read_bytes()
    with first.open("ab") as file:
        file.write(b" appended")
    assert first.stat().st_size == len(expected) + 9
    os.truncate(first, 10)
    assert first.read_bytes() == content[:10]
    (untimed_mount / "folder").mkdir(mode=0o750)
    second = first.rename(untimed_mount / "folder" / "second")
    os.link(second, untimed_mount / "hard")
    (untimed_mount / "soft").symlink_to("folder/second")
    assert (untimed_mount / "soft").read_bytes() == (untimed_mount / "hard").read_bytes() == content[:10]
    assert second.stat().st_nlink == 2
    assert (untimed_mount / "folder").stat().st_mode & 0o777 == 0o750
    os.utime(second, (1, 2))
    second.chmod(0o600)
    assert (second.stat().st_mtime, second.stat().st_mode & 0o777) == (2, 0o600)
    os.setxattr(second, "user.color", b"blue")
    assert os.getxattr(second, "user.color") == b"blue"
    assert sorted(os.listdir(untimed_mount)) == ["folder", "hard", "soft"]
    with pytest.raises(OSError, match="not empty"):
        (untimed_mount / "folder").rmdir()
    with second.open("rb") as open_file:
        second.unlink()
        (untimed_mount / "hard").unlink()
        assert open_file.read() == content[:10]  # as long as it is open
    shutil.rmtree(untimed_mount / "folder")
    assert os.listdir(untimed_mount) == ["soft"]


def test_size_is_that_of_the_described_targets(mount_program: Path, tmp_path: Path) -> None:
    system = tmp_path / "system.json"
    system.write_text(read_system(find_system_file("laptop-md")).to_json(), encoding="utf-8")
    directory = tmp_path / "machine"
    directory.mkdir()
    answer = subprocess.run(
        [str(mount_program), "mount", str(directory), "--system", str(system), "--no-cost"],
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if answer.returncode == 3:
        pytest.skip(answer.stderr)
    try:
        size = os.statvfs(directory)
        assert size.f_blocks * size.f_frsize == pytest.approx(3e12, rel=1e-6)  # three data drives of 1 TB
        assert 0 < size.f_bavail <= size.f_bfree
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(directory)], capture_output=True, check=False)


def test_many_names_appear_once_each_in_a_listing(untimed_mount: Path) -> None:
    names = {f"file-{i:036}" for i in range(400)}
    for name in names:
        (untimed_mount / name).touch()
    names_listed = os.listdir(untimed_mount)
    assert len(names_listed) == len(names)
    assert set(names_listed) == names


def test_spinning_mount_loses_no_calls(mount_model: Mount) -> None:
    directory = mount_model("--no-cost", "--spin", "0.0002")

    def write(number: int) -> bytes:
        text = bytes([number]) * 4096 * (number + 1)
        path = directory / f"f{number}"
        with path.open("wb") as file:
            for begin in range(0, len(text), 4096):
                file.write(text[begin : begin + 4096])
                file.flush()
        return path.read_bytes()

    with ThreadPoolExecutor(4) as threads:
        for number, read in enumerate(threads.map(write, range(16))):
            assert read == bytes([number]) * 4096 * (number + 1)


def test_fsynced_data_survives_the_sudden_end_of_the_mount(mount_model: Mount, tmp_path: Path) -> None:
    directory = mount_model("--no-cost")
    content = os.urandom(2 * MIB)
    file = os.open(directory / "kept", os.O_WRONLY | os.O_CREAT)
    assert os.write(file, content) == len(content)
    os.fsync(file)
    os.setxattr(directory / "kept", "user.mark", b"here")
    os.kill(process_of(directory), signal.SIGKILL)
    with contextlib.suppress(OSError):
        while True:  # the kernel notices when the last thread has ended
            os.write(file, b"x")
    with contextlib.suppress(OSError):
        os.close(file)
    assert (tmp_path / "store" / "kept").read_bytes().startswith(content)
    subprocess.run(["fusermount3", "-u", "-z", str(directory)], check=True)
    again = mount_model("--no-cost")
    assert (again / "kept").read_bytes().startswith(content)
    assert os.getxattr(again / "kept", "user.mark") == b"here"


@pytest.mark.usefixtures("mount_program")
@pytest.mark.parametrize(
    ("signal_number", "message"),
    [(signal.SIGKILL, "without a message"), (signal.SIGSEGV, "with the message: ended by signal 11")],
)
def test_machine_that_died_is_reported_in_one_sentence(
    signal_number: int, message: str, sonde: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = tmp_path / "machine"
    directory.mkdir()
    mount = ("mount", "--system", "edison", "--mount", "fs2", "--no-cost", "machine")
    started = sonde(*mount)
    if started.returncode == 3:
        pytest.skip(started.stderr)
    process = process_of(directory)
    os.kill(process, signal_number)
    while Path(f"/proc/{process}").exists():
        time.sleep(0.01)
    try:
        for arguments in (mount, ("fault", "machine", "--list")):
            answer = sonde(*arguments)
            assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
            assert f", as its program ended {message}; `sonde unmount machine` removes" in answer.stderr
    finally:
        assert sonde("unmount", "machine").returncode == 0
    assert not list((tmp_path / "state" / "sonde").iterdir()), "the log is removed with the mount"


def test_layout_is_read_and_set_by_lustre_attributes(mount_model: Mount) -> None:
    directory = mount_model("--no-cost")
    file = directory / "file"
    file.touch()
    magic, pattern, _, _, size, count, _ = LOV.unpack(os.getxattr(file, "lustre.lov")[: LOV.size])
    assert (magic, pattern, size, count) == (V1, 1, MIB, 1)
    os.setxattr(file, "lustre.lov", LOV.pack(V3, 1, 0, 0, 4 * MIB, 2, 1) + b"pool".ljust(16, b"\0"))
    assert os.getxattr(file, "sonde.layout") == b"stripe_count: 2 stripe_size: 4194304 stripe_offset: 1 targets: 1,0"
    lov = os.getxattr(file, "lustre.lov")
    assert len(lov) == LOV.size + 2 * 24
    assert [struct.unpack_from("<QQII", lov, LOV.size + 24 * i)[3] for i in range(2)] == [1, 0]
    os.setxattr(file, "sonde.layout", b"stripe_count: 1 stripe_offset: 0")
    assert os.getxattr(file, "sonde.layout").endswith(b"stripe_offset: 0 targets: 0")
    file.write_bytes(b"x")
    with pytest.raises(FileExistsError):
        os.setxattr(file, "sonde.layout", b"stripe_count: 2")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lustre.lov", b"short"),
        ("lustre.lov", LOV.pack(0x0BD60BD0, 1, 0, 0, MIB, 1, 0)),
        ("lustre.lov", LOV.pack(V1, 1, 0, 0, 5000, 1, 0)),
        ("lustre.lov", LOV.pack(V1, 1, 0, 0, MIB, 1, 9)),
        ("lustre.lov", LOV.pack(V3, 1, 0, 0, MIB, 1, 0)),
        ("sonde.layout", b"stripe_count: many"),
        ("sonde.layout", b"stripes: 4"),
        ("sonde.layout", b""),
    ],
)
def test_a_wrong_layout_is_refused(untimed_mount: Path, name: str, value: bytes) -> None:
    file = untimed_mount / "file"
    file.touch()
    before = os.getxattr(file, "sonde.layout")
    with pytest.raises(OSError, match="Invalid argument"):
        os.setxattr(file, name, value)
    assert os.getxattr(file, "sonde.layout") == before


def test_directory_layout_is_inherited_and_survives_a_remount(mount_model: Mount) -> None:
    directory = mount_model("--no-cost")
    (directory / "wide").mkdir()
    os.setxattr(directory / "wide", "sonde.layout", b"stripe_count: -1 stripe_size: 65536")
    (directory / "wide" / "inner").mkdir()
    (directory / "wide" / "inner" / "file").touch()
    (directory / "other").touch()
    layouts = {name: os.getxattr(directory / name, "sonde.layout") for name in ("wide/inner/file", "other")}
    assert b"stripe_count: 2 stripe_size: 65536" in layouts["wide/inner/file"]
    assert b"stripe_count: 1" in layouts["other"]
    try:
        os.setxattr(directory.parent / "store" / "other", "user.try", b"")
    except OSError:
        pytest.skip("the file system of the test has no attributes of users")
    subprocess.run(["fusermount3", "-u", str(directory)], check=True)
    again = mount_model("--no-cost")
    assert {name: os.getxattr(again / name, "sonde.layout") for name in layouts} == layouts


def test_directory_with_foreign_files_is_rejected(mount_program: Path, small_system: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    command = [str(mount_program), "mount", str(tmp_path), "--system", str(small_system)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "has files that no mount of this kind has stored" in answer.stderr
    assert sorted(os.listdir(tmp_path)) == ["mine"]


@pytest.mark.usefixtures("mount_program")
def test_the_verbs_mount_switch_faults_and_unmount(sonde: Any, tmp_path: Path) -> None:
    directory = tmp_path / "machine"
    directory.mkdir()
    started = sonde("mount", "--system", "edison", "--mount", "fs2", "--no-cost", "machine")
    try:
        if started.returncode == 3:
            pytest.skip(started.stderr)
        assert started.returncode == 0, started.stderr
        (directory / "file").write_bytes(bytes(MIB))
        assert sonde("fault", "machine", "slow-target", "3", "10x").returncode == 0
        assert sonde("fault", "machine", "mds-saturated", "90%").returncode == 0
        twice = sonde("mount", "--system", "edison", "--mount", "fs2", "--no-cost", "machine")
        assert twice.returncode == 2
        assert "machine already; `sonde unmount" in twice.stderr
        assert sonde("fault", "machine", "slow-target", "3", "4x").returncode == 0  # in place of the other
        assert sonde("fault", "machine", "--list").stdout == "mds-saturated 0.9\nslow-target 3 4\n"
        assert sonde("fault", "machine", "--end", "slow-target", "3").returncode == 0
        assert sonde("fault", "machine", "--list").stdout == "mds-saturated 0.9\n"
        assert sonde("fault", "machine", "--clear").returncode == 0
        assert sonde("fault", "machine", "--list").stdout == ""
        for arguments, message in (
            (("slow-target", "999"), 'has no target "999"'),
            (("slow",), "there is none of that name"),
            (("--end", "slow-target", "3"), "is not switched on"),
            ((), "Say one of"),
        ):
            wrong = sonde("fault", "machine", *arguments)
            assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
            assert message in wrong.stderr
        log = (directory / ".sonde" / "messages").read_text(encoding="utf-8")
        assert "not able to keep up" in log
    finally:
        ended = sonde("unmount", "machine")
    assert ended.returncode == 0, ended.stderr
    assert (directory / "file").stat().st_size == MIB  # below the mount, where it was stored
    assert sonde("unmount", "machine").returncode == 2
    assert sonde("fault", "machine", "--list").returncode == 2


# --- the machine's time --------------------------------------------------------------------------------------------

# A fifth of the machine's speed: a MiB on one target takes 52 ms. Calls may come 40 ms late without harm; the whole of
# 40 of them may be too long by as much at its end, which is 2 %.
SPEED, LEAD = 0.2, 0.04


def plan_of(path: str, tasks: int, **io: Any) -> dict[str, Any]:
    return {
        "schema": "sonde-plan/2",
        "id": "t",
        "title": "t",
        "target": {"path": path},
        "tasks": {"processes": tasks},
        "data": {"access": {"transfer": "1MiB", "block": "40MiB", "segments": 1}, "io": io},
        "phases": [{"id": "write", "op": "write"}],
    }


def rate(record: Path) -> float:
    end = read_record(record).phases["write"].end
    assert end is not None
    return (end.rates.total.bytes_per_s if end.rates.total else 0.0) or 0.0


def test_both_drivers_agree_on_rates(
    mount_model: Mount, small_system: Path, engine: Path, simulator: Path, tmp_path: Path
) -> None:
    directory = mount_model("--speed", str(SPEED), "--lead", str(LEAD))
    plan, record = tmp_path / "plan.json", tmp_path / "record.ndjson"
    plan.write_text(json.dumps(plan_of("/fs", 2, direct=True)), encoding="utf-8")
    command = [str(simulator), "run", str(plan), "--system", str(small_system), "--nodes", "1"]
    subprocess.run([*command, "--record", str(record)], check=True, capture_output=True)
    simulated = rate(record)
    assert simulated == pytest.approx(200e6, rel=0.1)  # the truth: two targets of 100 MB/s
    plan.write_text(json.dumps(plan_of(str(directory), 2, direct=True)), encoding="utf-8")
    rates: list[float] = []
    while len(rates) < 3 and not (
        rates and max(rates) > 0.95 * simulated
    ):  # a computer that stalls makes it slower only
        subprocess.run([str(engine), "run", str(plan), "--record", str(record)], check=True, capture_output=True)
        rates.append(rate(record) / SPEED)
    assert max(rates) == pytest.approx(simulated, rel=0.05)


def test_counters_count_transfers_and_a_fault_slows_transfers(mount_model: Mount) -> None:
    directory = mount_model("--speed", "0.5")
    file = directory / "file"
    file.touch()
    os.setxattr(file, "sonde.layout", b"stripe_count: 1 stripe_offset: 1")
    buffer = mmap.mmap(-1, MIB)  # whole pages: the kernel passes them on in one piece
    descriptor = os.open(file, os.O_WRONLY | os.O_SYNC)

    def took() -> float:
        begin = time.monotonic()
        for i in range(2):
            os.pwrite(descriptor, buffer, i * MIB)
        return time.monotonic() - begin

    took()
    (directory / ".sonde" / "faults").write_text("slow-target 1 20x\n", encoding="utf-8")
    # Twenty times the machine's time of two requests, at half its speed; less what is made up for at most.
    assert took() > 20 * 2 * MIB / 100e6 / 0.5 - 0.11
    os.close(descriptor)
    folder = directory / ".sonde" / "proc" / "fs" / "lustre" / "obdfilter" / "fs-OST0001"
    lines = {line.split()[0]: line.split() for line in (folder / "stats").read_text(encoding="utf-8").splitlines()}
    assert lines["write_bytes"] == [
        "write_bytes",
        "4",
        "samples",
        "[bytes]",
        *map(str, (MIB, MIB, 4 * MIB, 4 * MIB**2)),
    ]
    assert "read_bytes" not in lines
    assert (folder.parent / "fs-OST0000" / "stats").read_text(encoding="utf-8").count("\n") == 1


def test_an_operation_on_names_never_ends_before_the_machine(mount_model: Mount) -> None:
    """Twenty files made and removed: a millisecond each on one thread of the server, at a fifth of its speed."""
    directory = mount_model("--speed", "0.2")
    begin = time.monotonic()
    for i in range(20):
        os.close(os.open(directory / f"f{i}", os.O_CREAT | os.O_WRONLY))
        os.unlink(directory / f"f{i}")
    took = time.monotonic() - begin
    assert took > 20 * 3 * 0.001 / 0.2 - 0.001  # create, close, remove
