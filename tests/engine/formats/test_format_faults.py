# SPDX-License-Identifier: Apache-2.0
"""The hdf5 and pnetcdf backends on a file system that is full, read-only or closed to the user; and killed runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import start_ranks
from engine_under_test import Engine, Running, list_tree, send_signal_if_alive
from hdf5_plans import make_plan, read_record, read_sentence

pytestmark = pytest.mark.mpi
RunPlan = Callable[..., "subprocess.CompletedProcess[str]"]
LONG_PHASES = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "120s"}}]


@pytest.fixture(params=["hdf5", "pnetcdf"])
def backend(request: pytest.FixtureRequest) -> str:
    request.getfixturevalue(f"{request.param}_engine")
    return str(request.param)


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


def test_file_system_without_room_is_refused(run_plan: RunPlan, small_mount: Path, backend: str) -> None:
    plan = make_plan(small_mount, backend=backend, access={"transfer": 65536, "block": 2 << 20, "segments": 3})
    result = run_plan(2, plan)
    assert result.returncode == 3
    assert "8 MiB free, but the plan needs 12 MiB" in read_sentence(result)
    assert list(small_mount.iterdir()) == []


def run_while_filled(
    run_plan: RunPlan, mount: Path, data: dict[str, Any], variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a plan while another program fills the file system, after the run has checked its free space."""
    access = {"transfer": 65536, "block": 1 << 20, "segments": 2}
    plan = make_plan(mount, access=access, **data)
    plan["target"]["keep"] = False
    plan["phases"] = [{"id": "w", "op": "write", "before": [{"kind": "sleep", "time": "2s"}]}]
    fill = f"until [ -d {mount}/run ]; do sleep 0.05; done; head -c 7900000 /dev/zero >{mount}/filler"
    with subprocess.Popen(["sh", "-c", fill]) as taker:
        try:
            result = run_plan(2, plan, **variables)
            assert taker.wait(timeout=10) == 0
        finally:
            taker.kill()
    assert [path.name for path in mount.iterdir()] == ["filler"]
    return result


@pytest.mark.parametrize("collective", [False, True])
@pytest.mark.parametrize(("backend", "layer"), [("hdf5", "ompio"), ("pnetcdf", "^ompio")])
@pytest.mark.usefixtures("pnetcdf_engine")
def test_file_system_that_fills_up_ends_the_run(
    run_plan: RunPlan, small_mount: Path, backend: str, layer: str, collective: bool
) -> None:
    """Open MPI 4.1 does not pass on the reason."""
    data = {"backend": backend, "io": {"collective": collective}, "verify": "none"}
    result = run_while_filled(run_plan, small_mount, data, {"OMPI_MCA_io": layer})
    assert result.returncode == 1, result.stderr
    sentence = read_sentence(result)
    assert f"write of {small_mount}/run/data" in sentence
    assert "(ENOSPC)" in sentence
    assert "the file system is full" in sentence


@pytest.mark.parametrize("collective", [False, True])
@pytest.mark.usefixtures("pnetcdf_engine")
def test_verification_detects_writes_that_ompio_lost(run_plan: RunPlan, small_mount: Path, collective: bool) -> None:
    """PnetCDF over Open MPI's ompio returns success for a write without room, so only reading back shows it."""
    data = {"backend": "pnetcdf", "io": {"collective": collective}, "verify": "both"}
    result = run_while_filled(run_plan, small_mount, data, {"OMPI_MCA_io": "ompio"})
    assert "No space left on device" in result.stderr
    assert result.returncode == 4, result.stderr
    assert "reading back phase w" in read_sentence(result)


@pytest.mark.parametrize(
    ("layer", "verify", "backend", "is_unknown"),
    [("ompio", "none", "pnetcdf", True), ("ompio", "readback", "pnetcdf", False), ("^ompio", "none", "pnetcdf", False),
     ("ompio", "none", "hdf5", False)],
)  # fmt: skip
@pytest.mark.usefixtures("pnetcdf_engine", "hdf5_engine")
def test_unverified_writes_over_ompio_are_in_doubt(
    run_plan: RunPlan, tmp_path: Path, layer: str, verify: str, backend: str, is_unknown: bool
) -> None:
    plan = make_plan(tmp_path, backend=backend, verify=verify)
    result = run_plan(2, plan, OMPI_MCA_io=layer)
    assert result.returncode == 0, result.stderr
    ids = [line["id"] for line in read_record(tmp_path, "finding")]
    assert ("write_errors_unknown" in ids) == is_unknown


@pytest.mark.parametrize(("backend", "api"), [("hdf5", "HDF5"), ("pnetcdf", "NCMPI"), ("posix", "POSIX")])
@pytest.mark.usefixtures("pnetcdf_engine")
def test_read_only_file_system_is_refused(
    run_engine: RunPlan, run_plan: RunPlan, small_mount: Path, backend: str, api: str
) -> None:
    """The same sentence as for other interfaces, from a plan and from IOR's options."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_mount)], check=True)
    plan = make_plan(small_mount, backend=backend)
    for result in (run_plan(2, plan), run_engine(2, *f"ior -a {api} -w -t 4k -b 16k -o {small_mount}/f".split())):
        assert result.returncode == 3
        assert f"target {small_mount} is on a read-only file system" in read_sentence(result)


POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")


def run_powerless(
    engine: str, launcher: start_ranks.Launcher, folder: Path, plan: dict[str, Any]
) -> subprocess.CompletedProcess[str]:
    """Runs a plan by two tasks to which the permissions of files apply, also where root runs the tests."""
    (folder / "plan.json").write_text(json.dumps(plan))
    prefix = POWERLESS if os.geteuid() == 0 else ()
    return launcher.run(launcher.command(2, *prefix, engine, "run", f"{folder}/plan.json"))


def test_folder_without_write_permission_is_refused(
    hdf5_engine: str, openmpi_launcher: start_ranks.Launcher, tmp_path: Path, backend: str
) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o555)
    result = run_powerless(hdf5_engine, openmpi_launcher, tmp_path, make_plan(target, backend=backend))
    assert result.returncode == 3, result.stderr
    assert f"target {target} is not writable for this user" in read_sentence(result)
    assert list_tree(target) == []


def test_file_without_write_permission_ends_the_run(
    hdf5_engine: str, openmpi_launcher: start_ranks.Launcher, run_plan: RunPlan, tmp_path: Path, backend: str
) -> None:
    """The data of the file stay as they were."""
    plan = make_plan(tmp_path, backend=backend, verify="none")
    plan["phases"] = plan["phases"][:1]
    assert run_plan(2, plan).returncode == 0
    file = tmp_path / "run/data"
    content = file.read_bytes()
    file.chmod(0o444)
    plan["target"]["use_existing"] = True
    plan["phases"] = [{"id": "again", "op": "rewrite"}]
    result = run_powerless(hdf5_engine, openmpi_launcher, tmp_path, plan)
    assert result.returncode == 1, result.stderr
    sentence = read_sentence(result)
    assert str(file) in sentence
    assert "(EACCES)" in sentence
    assert file.read_bytes() == content


def list_engines(running: Running) -> list[int]:
    """Tasks of a run and their monitors, without launcher and daemons."""
    pids = running.processes()
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "sonde-engine"]


@pytest.mark.parametrize("mapping", ["shared", "per_task"])
@pytest.mark.parametrize("victim", ["task", "launcher", "all"])
def test_killed_run_is_cleaned(
    hdf5_engine: str, openmpi_launcher: start_ranks.Launcher, tmp_path: Path, backend: str, mapping: str, victim: str
) -> None:
    """`clean` removes the files that the manifest lists; the next run of the same plan finds an empty directory."""
    target = tmp_path / "target"
    target.mkdir()
    plan = make_plan(target, backend=backend, files={"mapping": mapping}, verify="none")
    plan |= {"phases": LONG_PHASES, "observe": {"progress": "20ms"}}
    engine = Engine(Path(hdf5_engine), tmp_path)
    launcher = [*openmpi_launcher.start, *openmpi_launcher.command(2)]
    with engine.start(plan, launch_prefix=launcher) as running:
        running.wait_for_phase("long")
        tasks = running.children()
        assert len(tasks) == 2
        victims = {"task": tasks[-1:], "launcher": [running.process.pid], "all": running.processes()}[victim]
        for pid in victims:
            send_signal_if_alive(pid, signal.SIGKILL)
        assert running.process.wait(timeout=60) != 0
        until = time.monotonic() + 60
        while list_engines(running):
            assert time.monotonic() < until, "tasks outlive the run"
            time.sleep(0.05)
    assert list_tree(target)
    code, report = engine.clean(target)
    while "is still going on" in report[0].get("not_removed", ""):  # a process loses its environment before its locks
        assert time.monotonic() < until, report
        time.sleep(0.05)
        code, report = engine.clean(target)
    assert (code, report[0]["files"], report[0]["remaining"]) == (0, 1 if mapping == "shared" else 2, [])
    assert list_tree(target) == []
