# SPDX-License-Identifier: Apache-2.0
"""A full file system, a quota and a failing device: the same call fails with the same error as without the library,
and the file has the same bytes. Where storage says nothing of its limit, and only the user's word lets the library
buffer, the error comes with a later call, but it comes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from preload_under_test import Outcome, Preload

Program = Callable[[str], Path]
NewStorage = Callable[[], AbstractContextManager[Path]]
HERE = Path(__file__).resolve().parent
pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")]

SETTINGS = {"no setting": "", "auto": "*:auto", "named": "*", "small": "*:size=16k:count=4", "alone": "*:alone"}
LIMIT = 1_234_567  # bytes of a file; no record of 1,000 and no page ends there
MUCH = 100 << 30


@contextlib.contextmanager
def mounted(folder: Path, *arguments: str | Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    if subprocess.run(["mount", *arguments, folder], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@contextlib.contextmanager
def new_file_system(folder: Path, file_system_type: str, size: str, options: str = "") -> Iterator[Path]:
    if file_system_type == "tmpfs":
        with mounted(folder / "mounted", "-t", "tmpfs", "-o", f"size={size}", "none") as root:
            yield root
        return
    make = {"ext4": ["mkfs.ext4", "-q", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}[
        file_system_type
    ]  # -m: none kept for root
    if shutil.which(make[0]) is None:
        pytest.skip(f"{make[0]} is not installed")
    image = folder / "image"
    image.unlink(missing_ok=True)
    subprocess.run(["truncate", "-s", size, image], check=True)
    subprocess.run([*make, image], check=True)
    with mounted(folder / "mounted", "-o", f"loop,{options}" if options else "loop", image) as root:
        yield root


@pytest.fixture(scope="session")
def failing_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of programs/failing_storage.c, which needs the headers of FUSE 3."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
    if flags.returncode != 0 or shutil.which("fusermount3") is None:
        pytest.skip("FUSE 3 is not installed")
    compiled = tmp_path_factory.mktemp("storage") / "failing_storage"
    source = HERE / "programs" / "failing_storage.c"
    subprocess.run(["cc", "-O1", "-w", "-o", compiled, source, *flags.stdout.split()], check=True)
    return compiled


@contextlib.contextmanager
def new_failing_storage(
    server: Path,
    folder: Path,
    error_number: int,
    free_bytes: int,
    folder_free_bytes: int = MUCH,
    limit_bytes: int = LIMIT,
) -> Iterator[Path]:
    """Storage that refuses what lies behind `limit_bytes` bytes of a file, and states so many free bytes."""
    behind, root = folder / "behind", folder / "mounted"
    shutil.rmtree(behind, ignore_errors=True)
    behind.mkdir()
    root.mkdir(exist_ok=True)
    arguments = [str(value) for value in (limit_bytes, error_number, free_bytes, folder_free_bytes)]
    process = subprocess.Popen([server, behind, *arguments, root], stderr=subprocess.DEVNULL)
    try:
        limit_s = time.monotonic() + 20
        while not root.is_mount() and process.poll() is None and time.monotonic() < limit_s:
            time.sleep(0.02)
        if not root.is_mount():
            pytest.skip("FUSE does not mount here")
        yield root
    finally:
        subprocess.run(["fusermount3", "-u", root], check=False)
        process.wait(timeout=20)


def run_once(preload: Preload, new_storage: NewStorage, command: list[str | Path], iobuf_params: str | None) -> Outcome:
    """One run on fresh storage; None: without the library."""
    with new_storage() as root:
        variables = {} if iobuf_params is None else {"SONDE_NOTHING": "1", "IOBUF_PARAMS": iobuf_params}
        outcome = preload.outcome(command, root / "run", **variables)
        return Outcome(outcome.code, outcome.out, {"data": outcome.files["data"]})


def require_same(
    preload: Preload, new_storage: NewStorage, command: list[str | Path], params_by_name: dict[str, str]
) -> Outcome:
    """Each setting fails at the calls at which the bare program does. Returns the outcome of the bare program."""
    bare = run_once(preload, new_storage, command, None)
    assert bare.code == 1, bare.out
    for name, params in params_by_name.items():
        under = run_once(preload, new_storage, command, params)
        assert (name, under.code, under.out) == (name, bare.code, bare.out)
        assert under.files == bare.files, name
    return bare


@pytest.mark.parametrize("write_method", ["write", "pwrite", "writev", "append", "gaps"])
@pytest.mark.parametrize(("file_system_type", "size", "record_bytes"), [("tmpfs", "6m", 1000), ("ext4", "12m", 1003)])
def test_full_file_system_fails_at_the_same_calls(
    preload: Preload,
    compile_program: Program,
    tmp_path: Path,
    file_system_type: str,
    size: str,
    record_bytes: int,
    write_method: str,
) -> None:
    """With delayed allocation ext4 reserves blocks by counters of each processor: the last record of a file with gaps
    that fits then depends on the processors on which the program ran, without the library too.
    """
    options = "nodelalloc" if file_system_type == "ext4" and write_method == "gaps" else ""
    command: list[str | Path] = [compile_program("refused_writes"), write_method, str(record_bytes), "20000", "700"]
    bare = require_same(preload, lambda: new_file_system(tmp_path, file_system_type, size, options), command, SETTINGS)
    assert "No space left" in bare.out


def test_full_xfs_fails_at_the_same_calls(preload: Preload, compile_program: Program, tmp_path: Path) -> None:
    """Only with gaps: what else fits in the last blocks differs on XFS from run to run without the library too."""
    command: list[str | Path] = [compile_program("refused_writes"), "gaps", "1003", "20000", "700", "6000000"]
    bare = require_same(preload, lambda: new_file_system(tmp_path, "xfs", "320m"), command, SETTINGS)
    assert "No space left" in bare.out


@pytest.mark.parametrize("free_bytes", ["100000", "1000000"])
def test_space_allocated_by_the_program_is_missed_at_once(
    preload: Preload, compile_program: Program, tmp_path: Path, free_bytes: str
) -> None:
    """When the first records are written there are 8 GiB, and the library holds them back."""
    command: list[str | Path] = [compile_program("refused_writes"), "write", "1000", "3000", "700", free_bytes]
    bare = require_same(preload, lambda: new_file_system(tmp_path, "ext4", "8g"), command, SETTINGS)
    assert "No space left" in bare.out


@pytest.mark.parametrize("write_method", ["write", "append"])
def test_full_storage_without_leases_fails_at_the_same_calls(
    preload: Preload, compile_program: Program, failing_storage: Path, tmp_path: Path, write_method: str
) -> None:
    """It counts its free space in blocks of another size than the one that it calls best."""
    command: list[str | Path] = [compile_program("refused_writes"), write_method, "1000", "3000", "700"]
    require_same(
        preload,
        lambda: new_failing_storage(failing_storage, tmp_path, errno.ENOSPC, 100 << 20),
        command,
        SETTINGS,
    )


@pytest.mark.parametrize("quota_kind", [0, 1, 2, 3], ids=["user", "group", "project", "project_of_folder"])
def test_quota_stated_by_the_kernel_fails_at_the_same_calls(
    preload: Preload, compile_program: Program, failing_storage: Path, tmp_path: Path, quota_kind: int
) -> None:
    """The quota of a project may be seen by root only; its folder states less free space then."""
    quota, refused = compile_program("stated_quota"), compile_program("refused_writes")
    if subprocess.run([quota, "0", "1", "true"], check=False).returncode != 0:
        pytest.skip("seccomp lets no process supervise another one here")
    command: list[str | Path] = ["env", "-u", "LD_PRELOAD", quota, str(quota_kind), str(LIMIT // 1024), "env"]
    folder_free = MUCH if quota_kind < 3 else LIMIT

    def new_storage() -> AbstractContextManager[Path]:
        return new_failing_storage(failing_storage, tmp_path, errno.EDQUOT, MUCH, folder_free)

    calls: list[str | Path] = [refused, "write", "1000", "3000", "700"]
    bare = run_once(preload, new_storage, [*command, *calls], None)
    assert "Disk quota exceeded" in bare.out
    for params in SETTINGS.values():
        under = run_once(preload, new_storage, [*command, f"LD_PRELOAD={preload.library}", *calls], params)
        assert under == bare, params


@pytest.mark.parametrize("error_number", [errno.EIO, errno.EDQUOT], ids=["EIO", "hidden_quota"])
@pytest.mark.parametrize("write_method", ["write", "writev", "gaps"])
def test_hidden_limit_fails_a_later_call_on_a_reported_file(
    preload: Preload,
    compile_program: Program,
    failing_storage: Path,
    tmp_path: Path,
    error_number: int,
    write_method: str,
) -> None:
    command: list[str | Path] = [compile_program("refused_writes"), write_method, "1000", "3000", "700"]

    def new_storage() -> AbstractContextManager[Path]:
        return new_failing_storage(failing_storage, tmp_path, error_number, MUCH)

    bare = require_same(preload, new_storage, command, {name: SETTINGS[name] for name in ("no setting", "auto")})
    for name in ("named", "small", "alone"):
        under = run_once(preload, new_storage, command, SETTINGS[name])
        assert under.code == bare.code == 1
        errors = set(re.findall(r"-1 (.+)", under.out))
        assert errors == set(re.findall(r"-1 (.+)", bare.out)) == {os.strerror(error_number)}


@pytest.mark.parametrize("params", SETTINGS.values(), ids=SETTINGS.keys())
def test_device_below_a_file_system_fails_the_same_sync(
    preload: Preload, compile_program: Program, failing_storage: Path, tmp_path: Path, params: str
) -> None:
    """ext4 on a device that refuses its second half: the kernel holds data back too, and fsync() reports it."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    size = 64 << 20
    command: list[str | Path] = [compile_program("refused_writes"), "write", "100000", "400", "50"]

    @contextlib.contextmanager
    def new_storage() -> Iterator[Path]:
        with new_failing_storage(failing_storage, tmp_path, errno.EIO, MUCH, limit_bytes=size // 2) as folder:
            with (tmp_path / "behind/image").open("wb") as image:
                image.truncate(size)
            subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", tmp_path / "behind/image"], check=True)
            with mounted(tmp_path / "device", "-o", "loop", folder / "image") as root:
                yield root

    # The kernel may write back between two calls of fsync(), and the file system then chooses other blocks, so that
    # another fsync() is the first to fail. It also drops refused pages: bytes behind the last good fsync() depend on
    # its memory.
    for _ in range(3):
        bare = run_once(preload, new_storage, command, None)
        assert "fsync" in bare.out
        assert "Input/output error" in bare.out
        under = run_once(preload, new_storage, command, params)
        results = [(run.code, run.out, len(run.files["data"])) for run in (under, bare)]
        if results[0] == results[1]:
            break
    assert results[0] == results[1]
