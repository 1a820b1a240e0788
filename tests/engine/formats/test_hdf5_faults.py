# SPDX-License-Identifier: Apache-2.0
"""The hdf5 backend where something is wrong: library, MPI, file or file system; and what a killed run leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py  # type: ignore[import-untyped]
import numpy as np
import pytest
import start_ranks
from engine_under_test import Engine, Running, tree, with_ignored_absence
from hdf5_plans import make_plan, read_record

pytestmark = pytest.mark.mpi
RunPlan = Callable[..., "subprocess.CompletedProcess[str]"]
LONG = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "120s"}}]


def read_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """The only line of the engine; those of a launcher do not count."""
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("sonde-engine: ")]
    return sentence


def test_missing_library_is_one_sentence(run_plan: RunPlan, tmp_path: Path) -> None:
    result = run_plan(2, make_plan(tmp_path), SONDE_HDF5_LIBRARY="/no/such/library.so")
    assert result.returncode == 3
    sentence = read_sentence(result)
    assert "SONDE_HDF5_LIBRARY" in sentence
    assert "/no/such/library.so" in sentence
    assert not (tmp_path / "run").exists()


def test_library_without_mpi_is_refused(run_plan: RunPlan, tmp_path: Path) -> None:
    result = run_plan(1, make_plan(tmp_path), SONDE_HDF5_LIBRARY="libm.so.6")
    assert result.returncode == 3
    assert "libm.so.6 is built without MPI" in read_sentence(result)


@pytest.mark.parametrize("library", ["", "libhdf5_openmpi.so.103"])
def test_library_of_another_mpi_is_refused(hdf5_engine: str, tmp_path: Path, library: str) -> None:
    """Under MPICH, for which there is no HDF5 here: neither the search nor a forced name mixes two MPIs."""
    launcher = start_ranks.mpich()
    if launcher is None or start_ranks.built(launcher.module) is None:
        pytest.skip("needs the mpiexec of MPICH and a module for it")
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(tmp_path)))
    variables = {"SONDE_HDF5_LIBRARY": library} if library else {}
    result = launcher.run(launcher.command(2, hdf5_engine, "run", f"{tmp_path}/plan.json", variables=variables))
    assert result.returncode == 3
    sentence = read_sentence(result)
    assert "no parallel HDF5 for the MPI here (libmpi_abi.so" in sentence
    assert ("is built for libmpi.so" in sentence) == bool(library)
    assert not (tmp_path / "run").exists()


def break_file(path: Path, how: str) -> None:
    match how:
        case "no hdf5":
            path.write_bytes(b"x" * 4096)
        case "truncated":
            os.truncate(path, path.stat().st_size // 2)
        case "missing":
            path.unlink()
        case "dataset":
            with h5py.File(path, "r+") as file:
                del file["Dataset-0000.0002"]
        case "size":
            with h5py.File(path, "r+") as file:
                del file["Dataset-0000.0000"]
                file["Dataset-0000.0000"] = np.zeros(64, dtype=np.int64)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("no hdf5", "is not an HDF5 file"),
        ("truncated", "truncated file"),
        ("missing", "MPI_ERR_NO_SUCH_FILE"),
        ("dataset", "no dataset Dataset-0000.0002"),
        ("size", "holds 64 elements of 8 B"),
    ],
)
def test_broken_file_is_reported(run_plan: RunPlan, tmp_path: Path, how: str, sentence: str) -> None:
    plan = make_plan(tmp_path, verify="none")
    plan["phases"] = plan["phases"][:1]
    assert run_plan(2, plan).returncode == 0
    break_file(tmp_path / "run/data", how)
    plan["target"]["use_existing"] = True
    plan["phases"] = [{"id": "r", "op": "read"}]
    result = run_plan(2, plan)
    assert result.returncode == 1, result.stderr
    assert sentence in read_sentence(result)
    assert all(str(tmp_path / "run/data") in line["path"] for line in read_record(tmp_path, "error"))
    assert read_record(tmp_path, "error")


@pytest.fixture
def small_mount(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB in memory."""
    if os.geteuid() != 0:
        pytest.skip("mounts a small file system, which takes root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_file_system_without_room_is_refused(run_plan: RunPlan, small_mount: Path) -> None:
    plan = make_plan(small_mount, access={"transfer": 65536, "block": 2 << 20, "segments": 3})
    result = run_plan(2, plan)
    assert result.returncode == 3
    assert "8 MiB free, but the plan needs 12 MiB" in read_sentence(result)
    assert list(small_mount.iterdir()) == []


def test_file_system_that_fills_up_ends_the_run(run_plan: RunPlan, small_mount: Path, tmp_path: Path) -> None:
    """Another program takes the room after the run has looked. Open MPI 4.1 does not pass on the reason."""
    plan = make_plan(small_mount, access={"transfer": 65536, "block": 1 << 20, "segments": 2})
    plan["target"]["keep"] = False
    plan["phases"] = [{"id": "w", "op": "write", "before": [{"kind": "sleep", "time": "2s"}]}]
    taker = subprocess.Popen(
        [
            "sh",
            "-c",
            f"until [ -d {small_mount}/run ]; do sleep 0.05; done; head -c 7900000 /dev/zero >{small_mount}/filler",
        ]
    )
    result = run_plan(2, plan)
    assert taker.wait() == 0
    assert result.returncode == 1
    sentence = read_sentence(result)
    assert f"write of {small_mount}/run/data" in sentence
    assert "(ENOSPC)" in sentence
    assert "the file system is full" in sentence
    assert [path.name for path in small_mount.iterdir()] == ["filler"]


@pytest.mark.parametrize("api", ["HDF5", "POSIX"])
def test_read_only_file_system_is_refused(start: RunPlan, run_plan: RunPlan, small_mount: Path, api: str) -> None:
    """The same sentence as for other interfaces, from a plan and from IOR's options."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_mount)], check=True)
    plan = make_plan(small_mount) if api == "HDF5" else make_plan(small_mount, backend="posix")
    for result in (run_plan(2, plan), start(2, *f"ior -a {api} -w -t 4k -b 16k -o {small_mount}/f".split())):
        assert result.returncode == 3
        assert f"target {small_mount} is on a read-only file system" in read_sentence(result)


def list_engines(running: Running) -> list[int]:
    """Tasks of a run and their monitors, without launcher and daemons."""
    pids = running.processes()
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "sonde-engine"]


@pytest.mark.parametrize("mapping", ["shared", "per_task"])
@pytest.mark.parametrize("victim", ["task", "launcher", "all"])
def test_killed_run_is_cleaned(
    hdf5_engine: str, openmpi_launcher: start_ranks.Launcher, tmp_path: Path, mapping: str, victim: str
) -> None:
    """By the manifest, and the next run of the same plan finds nothing of it."""
    target = tmp_path / "target"
    target.mkdir()
    plan = make_plan(target, files={"mapping": mapping}, verify="none")
    plan |= {"phases": LONG, "observe": {"progress": "20ms"}}
    engine = Engine(Path(hdf5_engine), tmp_path)
    launcher = [*openmpi_launcher.start, *openmpi_launcher.command(2)]
    with engine.start(plan, before=launcher) as running:
        running.wait_for_phase("long")
        tasks = running.children()
        assert len(tasks) == 2
        victims = {"task": tasks[-1:], "launcher": [running.process.pid], "all": running.processes()}[victim]
        for pid in victims:
            with_ignored_absence(pid, signal.SIGKILL)
        assert running.process.wait(timeout=60) != 0
        until = time.monotonic() + 60
        while list_engines(running):
            assert time.monotonic() < until, "tasks outlive the run"
            time.sleep(0.05)
    assert tree(target)
    code, report = engine.clean(target)
    while "is still going on" in report[0].get("not_removed", ""):  # a process loses its environment before its locks
        assert time.monotonic() < until, report
        time.sleep(0.05)
        code, report = engine.clean(target)
    assert (code, report[0]["files"], report[0]["remaining"]) == (0, 1 if mapping == "shared" else 2, [])
    assert tree(target) == []
