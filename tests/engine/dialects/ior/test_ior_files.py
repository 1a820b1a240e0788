# SPDX-License-Identifier: Apache-2.0
"""`sonde-engine ior` leaves the files that IOR 4.1 leaves: names, sizes and every byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import ior_cases
import pytest
from engine_under_test import parse_record
from ior_cases import CASES, Case, Files, digest_files, prepare_case, run


def run_sonde_ior(case: Case, engine: Path, folder: Path) -> Files:
    """Files that our engine leaves. It forks its processes; where MPI is needed, the launcher starts them."""
    prepare_case(case, folder)
    start: list[str] = []
    options = [f"--sonde-processes={case.tasks}"]
    if case.mpi:
        launcher = ior_cases.make_launcher_command(case.tasks)
        module = engine.parent / "sonde-mpi-site.so"
        if launcher is None or not module.exists():
            pytest.skip("MPI-IO needs a launcher and the MPI module of this site")
        start, options = launcher, [f"--sonde-mpi-module={module}"]
    for command_line in case.commands:
        result = run([*start, str(engine), "ior", *command_line, *options], folder)
        assert result.returncode == 0, result.stderr
    return digest_files(folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_equal_the_recorded_files_of_ior(case: Case, engine_path: Path, tmp_path: Path) -> None:
    assert run_sonde_ior(case, engine_path, tmp_path / "ours") == ior_cases.read_recorded_files()[case.name]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recording_equals_files_of_the_installed_ior(case: Case, tmp_path: Path) -> None:
    if shutil.which("ior") is None:
        pytest.skip("there is no ior on PATH to compare with")
    real = ior_cases.run_real(case, tmp_path / "real")
    if real is None:
        pytest.skip("the ior on PATH does not run this here")
    assert real == ior_cases.read_recorded_files()[case.name]


def test_asynchronous_transfers_leave_the_same_files(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-w -k -G 5 -o f -a AIO -t 4k -b 64k -F --aio.max-pending=8 --aio.granularity=4"
    files = run_sonde_ior(Case(command_line, 2), engine_path, tmp_path / "ours")
    assert files == ior_cases.read_recorded_files()["-w -k -G 5 -o f -a POSIX -t 4k -b 64k -F by 2"]


def test_a_shared_file_in_random_order_is_as_large_and_verifies(engine_path: Path, tmp_path: Path) -> None:
    """The engine assigns transfers to tasks evenly, unlike IOR, so the content differs in the task numbers."""
    command_line = "-w -r -R -k -G 5 -o f -z -t 4k -b 64k -s 2 --random-offset-seed=3 --sonde-record=r"
    files = run_sonde_ior(Case(command_line, 2), engine_path, tmp_path / "ours")
    assert files["f"][0] == 2 * 2 * 65536
    ends = [line for line in parse_record((tmp_path / "ours" / "r").read_text()) if line["type"] == "phase_end"]
    assert [end["ops"]["done"] for end in ends] == [64, 64]
    assert ends[1]["verify"] == {"checked_bytes": 262144, "mismatches": 0}


@pytest.mark.parametrize("tasks", [2, 16])
def test_a_launcher_needs_no_python(tasks: int, engine_path: Path, tmp_path: Path) -> None:
    """The same command under mpiexec: ranks are tasks."""
    launcher = ior_cases.make_launcher_command(tasks)
    if not launcher:
        pytest.skip("there is no mpirun or mpiexec")
    folder = tmp_path / "ours"
    folder.mkdir()
    command_line = "-w -r -R -k -G 5 -o f -t 4k -b 16k -l o"
    result = run([*launcher, str(engine_path), "ior", *command_line.split()], folder)
    assert result.returncode == 0, result.stderr
    assert f"tasks               : {tasks}\n" in result.stdout
    assert digest_files(folder)["f"][0] == tasks * 16384
