# SPDX-License-Identifier: Apache-2.0
"""Under the name of a tool the engine is that tool; and the variables by which IOR plays several nodes work."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ARGUMENTS_AND_OUTPUT = {
    "ior": ("-a DUMMY -o f", "\nSummary of all tests:"),
    "mdtest": ("-a DUMMY -n 3 -d m", "\nSUMMARY rate (in ops/sec): (of 1 iterations)"),
    "md-workbench": ("-a DUMMY -P 3 -I 1 -R 1 -o w", "\ncleanup process max:"),
}


@pytest.mark.parametrize("tool", ARGUMENTS_AND_OUTPUT)
def test_program_name_selects_the_dialect(tool: str, engine_path: Path, tmp_path: Path) -> None:
    (tmp_path / tool).symlink_to(engine_path)
    command_line, wanted = ARGUMENTS_AND_OUTPUT[tool]
    result = subprocess.run(
        [f"./{tool}", *command_line.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert wanted in result.stdout
    on_path = subprocess.run(
        [tool, "-h"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    assert on_path.returncode == 0
    assert tool in on_path.stdout


def test_simulated_nodes_of_ior_shift_readers(engine_path: Path, tmp_path: Path) -> None:
    """IOR's own test: one task on each of two nodes, so that with -C each reads what the other wrote."""
    command_line = "ior -w -r -C -W -t 16 -b 16 -G 7 -o f --sonde-processes=2 --sonde-record=r"
    environment = {**os.environ, "IOR_FAKE_TASK_PER_NODES": "1", "IOR_FAKE_NODES": "2"}
    command = [str(engine_path), *command_line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Fake tasks per node: using 1\n" in done.stdout
    assert "Fake number of node: using 2\n" in done.stdout
    assert "nodes               : 2\n" in done.stdout
    assert "clients per node    : 1\n" in done.stdout
    assert '"shift":{"by":"tasks","n":1' in (tmp_path / "r").read_text().replace(" ", "")
