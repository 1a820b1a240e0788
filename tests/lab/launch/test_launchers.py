# SPDX-License-Identifier: Apache-2.0
"""Command lines of launchers, and the processes that they start."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from launch_builders import Fake, make_launch, run_session, write_program

from sonde.launch.launchers.list import make_launcher
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.launchers.mpiexec import MpiexecLauncher, find_mpiexec
from sonde.launch.launchers.srun import SrunLauncher
from sonde.model.errors import UserError


def test_launchers_build_their_command_lines() -> None:
    engine = ["engine", "run"]
    assert LocalLauncher().make_command_line(engine) == engine
    hydra = MpiexecLauncher(4, Path("/opt/bin/mpiexec"), "hydra", ["-hosts", "a,b"])
    assert hydra.make_command_line(engine) == ["/opt/bin/mpiexec", "-hosts", "a,b", "-n", "4", *engine]
    openmpi = MpiexecLauncher(4, Path("/opt/bin/mpiexec"), "openmpi").make_command_line(engine)
    assert "--oversubscribe" in openmpi
    assert ("--allow-run-as-root" in openmpi) == (os.geteuid() == 0)
    srun = SrunLauncher(8, ["--nodes=2"]).make_command_line(engine)
    assert srun[:3] == ["srun", "--ntasks=8", "--mpi=pmi2"]
    assert srun[-3:] == ["--nodes=2", *engine]
    assert "--mpi=pmi2" not in SrunLauncher(8, ["--mpi=pmix"]).make_command_line(engine)
    assert (
        SrunLauncher(8).choose_forwarded_signal(signal.SIGINT)
        == SrunLauncher(8).choose_forwarded_signal(signal.SIGTERM)
        == signal.SIGUSR1
    )


def test_ssh_launcher_reads_hosts_with_ranges_and_from_files(tmp_path: Path) -> None:
    engine = ["/opt/sonde-engine", "run", "plan.json"]
    command_from_ranges = make_launcher("ssh", 5, "--hosts n[01-02,07],fs-a").make_command_line(engine)
    assert command_from_ranges == [
        engine[0],
        "ssh",
        "--hosts",
        "n01,n02,n07,fs-a",
        "--processes",
        "5",
        "run",
        "plan.json",
    ]
    (tmp_path / "hosts").write_text("n1\n# rack 2\nn[2-3] # new\n\n")
    command_from_file = make_launcher("ssh", 3, f'--hosts=@{tmp_path}/hosts --shell "env -i"').make_command_line(engine)
    assert command_from_file[2:8] == ["--hosts", "n1,n2,n3", "--processes", "3", "--shell", "env -i"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "needs the hosts"),
        ("--hosts ,", "needs the hosts"),
        ("--hosts", "needs a value after it"),
        ("-hosts n1", "has no argument -hosts"),
        ("--hosts n1,n2,n1", "n1 is listed twice"),
        ("--hosts n[1-2", "bracket without its partner"),
        ("--hosts n[1-5]", "5 hosts for 4 processes"),
        ("--hosts -oProxyCommand=x", "begins with a dash"),
        ("--hosts @/no/such/file", "cannot read the hosts in /no/such/file"),
        ("--hosts n1 --shell no-such-shell", "There is no no-such-shell on PATH"),
    ],
)
def test_wrong_arguments_of_ssh_launcher_are_refused(arguments: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        make_launcher("ssh", 4, arguments)


@pytest.mark.parametrize(
    ("expected_text", "flavor"),
    [
        ("HYDRA build details:\n    Version:    5.0.2", "hydra"),
        ("mpiexec (OpenRTE) 4.1.4", "openmpi"),
        ("hello", "unknown"),
    ],
)
def test_mpiexec_is_identified_by_its_version_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_text: str, flavor: str
) -> None:
    monkeypatch.setenv("SONDE_MPIEXEC", str(write_program(tmp_path / "mpiexec", f"cat <<'END'\n{expected_text}\nEND")))
    assert find_mpiexec().flavor == flavor


def test_ranks_find_the_library_in_the_prefix_of_mpiexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpiexec = write_program(tmp_path / "bin" / "mpiexec", "echo HYDRA")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi_abi.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/before")
    assert MpiexecLauncher(2, mpiexec, "hydra").make_environment() == {"LD_LIBRARY_PATH": f"{tmp_path}/lib:/before"}


def fake_mpiexec(tmp_path: Path) -> Path:
    """Starts one process only, like a launcher whose PMI the engine does not understand."""
    return write_program(tmp_path / "mpiexec", 'while [ "$1" != -n ]; do shift; done; shift 2; exec "$@"')


def test_unconnected_ranks_are_reported(fake_engine: Fake, tmp_path: Path) -> None:
    fake_engine("alone", seconds="300", processes="4")
    begin = time.monotonic()
    outcome, _ = run_session(make_launch(tmp_path / "r", MpiexecLauncher(4, fake_mpiexec(tmp_path), "unknown")))
    assert outcome.exit_code == 3
    assert "asked for 4 processes, but the engine sees 1" in outcome.text
    assert time.monotonic() - begin < 300


def test_run_with_all_ranks_connected_exits_with_0(fake_engine: Fake, tmp_path: Path) -> None:
    fake_engine(processes="4")
    outcome, _ = run_session(make_launch(tmp_path / "r", MpiexecLauncher(4, fake_mpiexec(tmp_path), "unknown")))
    assert outcome.exit_code == 0


def test_unknown_launcher_is_rejected() -> None:
    with pytest.raises(UserError, match="no launcher"):
        make_launcher("rocket", 1)
