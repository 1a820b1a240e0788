# SPDX-License-Identifier: Apache-2.0
"""IOR's command line on several nodes: -C reads what a task of the next node wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import start_ranks
from many_nodes import ManyNodes, explain_unavailability

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(("options", "shift"), [("-C", 2), ("-C -Q 2", 0), ("", 0)])
def test_constant_reordering_moves_on_by_a_node(options: str, shift: int, tmp_path: Path) -> None:
    engine, module = start_ranks.find_built_program("sonde-engine"), start_ranks.find_built_program("sonde-mpi-abi.so")
    mpiexec = Path(sys.prefix) / "bin" / "mpiexec"
    if reason := explain_unavailability():
        pytest.skip(reason)
    if engine is None or module is None or not mpiexec.exists():
        pytest.skip("needs the engine, its module for the MPI standard ABI, and the mpiexec of the package mpich")
    engine_options = [f"--sonde-record={tmp_path}/r", f"--sonde-mpi-module={module}"]
    line = f"ior -w -r -R -F -l o -G 5 -t 4k -b 64k -o {tmp_path}/f {options}".split()
    with ManyNodes(2, tmp_path) as nodes:
        command = nodes.mpiexec(mpiexec, 2, str(engine), *line, *engine_options)
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "nodes               : 2\ntasks               : 4\nclients per node    : 2\n" in result.stdout
    lines = [json.loads(text) for text in (tmp_path / "r").read_text().splitlines()]
    plan = next(line for line in lines if line["type"] == "run")["plan"]
    read = next(phase for phase in plan["phases"] if phase["op"] == "read")
    assert read.get("shift", {"n": 0})["n"] == shift
    end = next(line for line in lines if line["type"] == "phase_end" and line["op"] == "read")
    assert end["verify"] == {"checked_bytes": 4 << 16, "mismatches": 0}
