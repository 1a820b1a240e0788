# SPDX-License-Identifier: Apache-2.0
"""The engine program: where it is found, and what its messages and exit statuses become."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch_builders import write_program

from sonde.launch.engine import find_engine, find_engine_message, make_engine_error
from sonde.model.errors import DataMismatchError, MachineError, RunFailedError, StoppedError, UserError

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
    ("script", "script_exit_code", "expected_text"),
    [
        ("echo hello", 0, "not JSON"),
        ("echo sonde-engine: broken >&2; exit 3", 3, "Broken."),
        ("exit 2", 2, "exit code 2"),
    ],
)
def test_bad_engine_answer_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, script_exit_code: int, expected_text: str
) -> None:
    monkeypatch.setenv("SONDE_ENGINE", str(write_program(tmp_path / "engine", script)))
    with pytest.raises(UserError, match=expected_text):
        find_engine().probe_directory(tmp_path)


@pytest.mark.parametrize(
    ("messages", "expected_sentence"),
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
def test_engine_message_is_extracted_from_its_output(messages: str, expected_sentence: str) -> None:
    assert find_engine_message(messages) == expected_sentence


@pytest.mark.parametrize(
    ("status", "expected_type"),
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
def test_exit_statuses_become_errors(status: int, expected_type: type[UserError]) -> None:
    error = make_engine_error(status, "it broke")
    assert type(error) is expected_type
    assert str(error).endswith(".")
