# SPDX-License-Identifier: Apache-2.0
"""Starting, following and ending engine processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sonde.launch import child_process as child_module
from sonde.launch import session as session_module
from sonde.launch.child_process import ChildProcess, SignalWatch
from sonde.launch.engine import find_engine, find_engine_message, make_engine_error
from sonde.launch.growing_file import GrowingFile
from sonde.launch.launchers.list import make_launcher
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.launchers.mpiexec import MpiexecLauncher, find_mpiexec
from sonde.launch.launchers.srun import SrunLauncher
from sonde.launch.session import EngineLaunch, EngineSession, LaunchResult
from sonde.model.errors import DataMismatchError, MachineError, RunFailedError, StoppedError, UserError

Fake = Callable[..., Path]

HYDRA = """
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   EXIT CODE: 9
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
OPENMPI = """
Primary job  terminated normally, but 1 process returned
mpirun noticed that process rank 2 with PID 9 on node a exited on signal 9 (Killed).
--------------------------------------------------------------------------
"""
SLURM = "srun: error: node7: task 3: Killed\nsrun: launch/slurm: _step_signal: Terminating\n"

PLAN: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "p",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "1MiB", "volume": "64MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}


def make_launch(folder: Path, launcher: Any = None, stages: int = 1, plan: dict[str, Any] = PLAN) -> EngineLaunch:
    folder.mkdir(exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    return EngineLaunch(find_engine(), launcher or LocalLauncher(), folder / "plan.json", folder, "id", stages)


def run_session(
    launch: EngineLaunch, on_phase_begin: Callable[[], None] | None = None
) -> tuple[LaunchResult, list[str]]:
    """Runs a launch; calls `on_phase_begin` once the first phase has begun: no test depends on start-up time."""
    line_types: list[str] = []

    def observe(kind: str, line: object) -> None:
        if kind == "phase_begin" and on_phase_begin and kind not in line_types:
            on_phase_begin()
        line_types.append(kind)

    return EngineSession(launch, observe).run_all_stages(), line_types


def signal_this_process(number: int) -> None:
    """Sends a signal to this process."""
    os.kill(os.getpid(), number)


def read_commands(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("mode", "code", "text"),
    [
        ("ok", 0, ""),
        ("enospc", 1, "no space left on device"),
        ("mismatch", 4, "not what was written"),
        ("refuse", 2, "not what this fake engine likes"),
        ("environment", 3, "/fake cannot be written: permission denied."),
        ("silent", 3, "exit code 3"),
        ("crash", 1, "SIGKILL"),
        ("torn", 1, "SIGKILL"),
        ("no-end", 1, "without completing its record"),
    ],
)
def test_engine_end_becomes_exit_code_and_one_sentence(
    fake: Fake, tmp_path: Path, mode: str, code: int, text: str
) -> None:
    fake(mode)
    outcome, _ = run_session(make_launch(tmp_path))
    assert outcome.exit_code == code
    assert text in outcome.text
    assert "\n" not in outcome.text
    assert bool(outcome.text) == (code != 0)


def test_record_lines_arrive_while_the_engine_runs(fake: Fake, tmp_path: Path) -> None:
    fake(seconds="600")
    line_types: list[str] = []

    def observe(kind: str, line: object) -> None:
        line_types.append(kind)
        if line_types.count("progress") == 3:
            signal_this_process(signal.SIGINT)  # without following, the lines would arrive after ten minutes

    assert EngineSession(make_launch(tmp_path), observe).run_all_stages().exit_code == 5
    assert line_types.count("progress") >= 3


def test_stages_are_separate_launches_with_one_record(fake: Fake, tmp_path: Path) -> None:
    plan = {**PLAN, "phases": [PLAN["phases"][0], {**PLAN["phases"][1], "process": "separate"}]}
    log = fake()
    outcome, line_types = run_session(make_launch(tmp_path, stages=2, plan=plan))
    assert outcome.exit_code == 0
    assert [arguments[-2:] for arguments in read_commands(log)] == [["--stage", "0"], ["--stage", "1"]]
    assert line_types.count("phase_end") == 2
    kinds = [json.loads(line)["type"] for line in (tmp_path / "record.ndjson").read_text().splitlines()]
    assert kinds.count("run") == 1
    assert kinds.count("end") == 1
    assert kinds.count("phase_end") == 2
    assert not list(tmp_path.glob("stage-*"))


def test_failed_stage_is_the_last(fake: Fake, tmp_path: Path) -> None:
    plan = {**PLAN, "phases": [{"id": f"w{i}", "op": "write", "process": "separate"} for i in range(3)]}
    log = fake("enospc")
    outcome, _ = run_session(make_launch(tmp_path, stages=3, plan=plan))
    assert outcome.exit_code == 1
    assert len(read_commands(log)) == 2
    assert "no space left" in outcome.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_ends_the_run_in_good_order(fake: Fake, tmp_path: Path, number: int) -> None:
    fake(seconds="20")
    before = signal.getsignal(signal.SIGINT)
    outcome, line_types = run_session(make_launch(tmp_path), lambda: signal_this_process(number))
    assert outcome.exit_code == 5
    assert outcome.record.status == "interrupted"
    assert line_types[-1] == "end"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_during_engine_start_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The signal may arrive before the engine has a handler: the engine dies, which counts as an interruption."""
    engine = tmp_path / "sonde-engine"
    engine.write_text("#!/bin/sh\nexec sleep 300\n")
    engine.chmod(0o755)
    monkeypatch.setenv("SONDE_ENGINE", str(engine))
    began = time.monotonic()
    outcome = EngineSession(
        make_launch(tmp_path / "run"), lambda kind, line: None, on_start=lambda pid: signal_this_process(number)
    ).run_all_stages()
    assert outcome.exit_code == 5
    assert time.monotonic() - began < 300


def test_second_signal_kills_after_grace_period(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "GRACE_S", 0.3)
    fake("deaf", seconds="30")

    def twice() -> None:
        signal_this_process(signal.SIGINT)
        threading.Timer(0.4, signal_this_process, [signal.SIGINT]).start()

    outcome, _ = run_session(make_launch(tmp_path), twice)
    assert outcome.exit_code == 1
    assert "SIGKILL" in outcome.text


def test_single_signal_never_kills(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "GRACE_S", 0.1)
    fake("deaf", seconds="1.2")
    outcome, _ = run_session(make_launch(tmp_path), lambda: signal_this_process(signal.SIGINT))
    assert outcome.exit_code == 0


def test_children_of_a_killed_launcher_are_ended(tmp_path: Path) -> None:
    """The processes of a killed launcher are in its process group."""
    script = "import subprocess, sys, os, signal\n"
    script += "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    script += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); os.kill(os.getpid(), signal.SIGKILL)"
    with SignalWatch() as signals:
        status = ChildProcess([sys.executable, "-c", script], tmp_path / "messages", {}).wait_for_end(
            signals, lambda n: n, lambda: None
        )
    assert status == -9
    orphan = int((tmp_path / "pid").read_text())
    stat = Path(f"/proc/{orphan}/stat")
    assert not stat.exists() or stat.read_text().split(") ")[1].startswith("Z")


class _HangingLauncher(LocalLauncher):
    """Does not return after the engine has ended, like a launcher that has lost a node."""

    def make_command_line(self, engine: Sequence[str]) -> list[str]:
        return ["/bin/sh", "-c", '"$@"; exec sleep 100', "sh", *super().make_command_line(engine)]


def test_launcher_hanging_after_failed_run_is_ended(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "LAUNCHER_GRACE_S", 0.2)
    fake("enospc")
    outcome, _ = run_session(make_launch(tmp_path, _HangingLauncher()))
    assert outcome.exit_code == 1
    assert "no space left on device" in outcome.text


def test_phase_beyond_the_time_limit_is_ended(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like a call to storage that does not return: the engine cannot end the phase itself."""
    monkeypatch.setenv("SONDE_STORAGE_PATIENCE", "0.1")
    fake("deaf", seconds="30")
    outcome, _ = run_session(replace(make_launch(tmp_path), time_limit_s=0.1))
    assert outcome.exit_code == 5
    assert outcome.text == (
        "Phase write waited for storage that did not answer, and was ended; finished phases are stored, and"
        " `sonde clean` removes the remaining files when the storage answers."
    )


def test_run_ending_after_its_time_limit_is_not_stuck(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(seconds="0.3")
    outcome, _ = run_session(replace(make_launch(tmp_path), time_limit_s=0.0))
    assert (outcome.exit_code, outcome.text) == (0, "")
    monkeypatch.setenv("SONDE_STORAGE_PATIENCE", "long")
    with pytest.raises(UserError, match='SONDE_STORAGE_PATIENCE is "long", which is no number of seconds'):
        run_session(replace(make_launch(tmp_path), time_limit_s=1.0))


def test_unkillable_engine_is_abandoned(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for a process that waits in the kernel: here kill() does nothing."""
    monkeypatch.setattr(child_module, "STUCK_S", 0.2)
    monkeypatch.setattr(child_module.ChildProcess, "kill_group", lambda self: None)
    monkeypatch.setenv("SONDE_STORAGE_PATIENCE", "0.1")
    fake("deaf", seconds="30")
    pids: list[int] = []
    outcome = EngineSession(
        replace(make_launch(tmp_path), time_limit_s=0.1), lambda kind, line: None, pids.append
    ).run_all_stages()
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)
    assert outcome.exit_code == 5
    assert outcome.text.endswith(
        f"when the storage answers; process {pids[0]} of the engine cannot be killed before that."
    )


def test_child_has_its_own_group_and_no_terminal_input(tmp_path: Path) -> None:
    script = "import os, sys; print(os.getpgid(0) == os.getpid(), sys.stdin.read() == '')"
    child = ChildProcess([sys.executable, "-c", script], tmp_path / "messages", {"X": "1"})
    with SignalWatch() as signals:
        assert child.wait_for_end(signals, lambda n: n, lambda: None) == 0
    assert child.read_last_output() == "True True\n"


def test_missing_command_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="does not start"):
        ChildProcess(["/no/such/program"], tmp_path / "messages", {})


def test_growing_file_returns_only_new_bytes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    follower = GrowingFile(file)
    assert follower.read_appended_bytes() == b""
    file.write_bytes(b"one")
    assert follower.read_appended_bytes() == b"one"
    assert follower.read_appended_bytes() == b""
    with file.open("ab") as out:
        out.write(b"two")
    assert follower.read_appended_bytes() == b"two"
    follower.close()


def test_waiting_takes_almost_no_cpu_time(fake: Fake, tmp_path: Path) -> None:
    """The lab uses the same cores as the engine."""
    fake(seconds="1")
    begin, before = time.monotonic(), time.process_time()
    run_session(make_launch(tmp_path))
    assert time.process_time() - before < 0.12 * (time.monotonic() - begin)


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


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("says", "flavor"),
    [
        ("HYDRA build details:\n    Version:    5.0.2", "hydra"),
        ("mpiexec (OpenRTE) 4.1.4", "openmpi"),
        ("hello", "unknown"),
    ],
)
def test_mpiexec_is_identified_by_its_version_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, flavor: str
) -> None:
    monkeypatch.setenv("SONDE_MPIEXEC", str(write_program(tmp_path / "mpiexec", f"cat <<'END'\n{says}\nEND")))
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


def test_unconnected_ranks_are_reported(fake: Fake, tmp_path: Path) -> None:
    fake("alone", seconds="300", processes="4")
    begin = time.monotonic()
    outcome, _ = run_session(make_launch(tmp_path / "r", MpiexecLauncher(4, fake_mpiexec(tmp_path), "unknown")))
    assert outcome.exit_code == 3
    assert "asked for 4 processes, but the engine sees 1" in outcome.text
    assert time.monotonic() - begin < 300


def test_connected_ranks_run(fake: Fake, tmp_path: Path) -> None:
    fake(processes="4")
    outcome, _ = run_session(make_launch(tmp_path / "r", MpiexecLauncher(4, fake_mpiexec(tmp_path), "unknown")))
    assert outcome.exit_code == 0


def test_environment_variable_selects_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path / "engine", "echo sonde-engine 9.9")
    monkeypatch.setenv("SONDE_ENGINE", str(program))
    engine = find_engine()
    assert engine.path == program
    assert engine.read_version() == "9.9"
    monkeypatch.setenv("SONDE_ENGINE", str(tmp_path / "none"))
    with pytest.raises(MachineError, match="SONDE_ENGINE"):
        find_engine()


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("echo hello", 0, "not JSON"),
        ("echo sonde-engine: broken >&2; exit 3", 3, "Broken."),
        ("exit 2", 2, "exit code 2"),
    ],
)
def test_bad_engine_answer_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int, kind: str
) -> None:
    monkeypatch.setenv("SONDE_ENGINE", str(write_program(tmp_path / "engine", text)))
    with pytest.raises(UserError, match=kind):
        find_engine().probe_directory(tmp_path)


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        ("sonde-engine: ours\nsome library: bye\n", "ours"),
        ("sonde-simulate: of the model\nsome library: bye\n", "of the model"),
        ("\n\n  spaces  \n", "spaces"),
        (HYDRA, "A process of the run was lost: Killed (signal 9)"),
        (OPENMPI, "A process of the run was lost: process rank 2 with PID 9 on node a exited on signal 9 (Killed)."),
        (SLURM, "A process of the run was lost: node7: task 3: Killed"),
        (f"{HYDRA}\nsonde-engine: a peer was lost", "a peer was lost"),
    ],
)
def test_engine_message_is_found_in_its_output(messages: str, sentence: str) -> None:
    assert find_engine_message(messages) == sentence


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (1, RunFailedError),
        (2, UserError),
        (3, MachineError),
        (4, DataMismatchError),
        (5, StoppedError),
        (9, RunFailedError),
        (127, MachineError),
        (-11, RunFailedError),
        (-64, RunFailedError),
    ],
)
def test_exit_statuses_become_errors(status: int, kind: type[UserError]) -> None:
    error = make_engine_error(status, "it broke")
    assert type(error) is kind
    assert str(error).endswith(".")


def test_unknown_launcher_is_rejected() -> None:
    with pytest.raises(UserError, match="no launcher"):
        make_launcher("rocket", 1)


def test_engine_completes_its_record_after_the_lab_dies(fake: Fake, tmp_path: Path) -> None:
    """The engine writes its messages to a file, not to a pipe that would break."""
    fake(seconds="0.5")
    launch, record = make_launch(tmp_path), tmp_path / "record.ndjson"
    code = (
        "import sys, os, signal, threading, time\n"
        "from pathlib import Path\n"
        "from sonde.launch.child_process import ChildProcess, SignalWatch\n"
        "def die():\n"
        f"    while not Path({str(record)!r}).exists(): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "threading.Thread(target=die).start()\n"
        f"child = ChildProcess({launch.make_stage_command(None, record)!r}, Path({str(tmp_path / 'm')!r}), {{}})\n"
        "with SignalWatch() as signals: child.watch(signals, lambda n: n, lambda: None)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    text = record.read_text()
    assert '"end"' not in text, "it died too late to show anything"
    for _ in range(200):
        text = record.read_text()
        if '"end"' in text:
            break
        time.sleep(0.05)
    assert '"status": "done"' in text
