# SPDX-License-Identifier: Apache-2.0
"""`sonde io500` over several nodes (network namespaces): each phase launched by mpiexec, and the search distributed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in ("engine/ranks", "engine"):
    sys.path.append(str(ROOT / "tests" / folder))

import many_nodes  # noqa: E402  (found through the path above)
import start_ranks  # noqa: E402

pytestmark = pytest.mark.mpi
NODES, RANKS = 3, 2  # ranks of each node
#: In place of a stonewall of a second: the count of files is to be known, and each node leaves a word when it is asked.
LONG_SETTINGS = """drop-caches = TRUE
drop-caches-cmd = hostname >> dropped
[debug]
stonewall-time = 60
"""


def test_phases_and_search_are_shared_by_all_nodes(engine: Path, tmp_path: Path, short_io500: str) -> None:
    launcher, module = start_ranks.find_mpich(), start_ranks.find_built_program("sonde-mpi-abi.so")
    reason = many_nodes.explain_unavailability()
    if reason or launcher is None or module is None:
        pytest.skip(reason or "needs the Python package mpich and sonde-mpi-abi.so")
    (tmp_path / "my.ini").write_text(short_io500.replace("[debug]\nstonewall-time = 1\n", LONG_SETTINGS))
    with many_nodes.ManyNodes(NODES, tmp_path) as nodes:
        hosts = ",".join(f"{name}:{RANKS}" for name in nodes.names)
        arguments = ["--launcher", "mpiexec", "--tasks", str(NODES * RANKS), "--mpi-module", str(module), "--no-report"]
        arguments += ["--launcher-args", f"-launcher ssh -launcher-exec {tmp_path}/remote-shell -hosts {hosts}"]
        inside = f'cd {tmp_path} && mount --bind {tmp_path}/hosts /etc/hosts && exec "$@"'
        enter = ["nsenter", f"--net=/run/netns/{nodes.prefix}head", "unshare", "--mount", "--propagation", "private"]
        done = subprocess.run(
            [*enter, "bash", "-c", inside, "head", sys.executable, "-m", "sonde", "io500", "my.ini", *arguments],
            capture_output=True,
            text=True,
            timeout=start_ranks.LIMIT_S,
            check=False,
            env={
                **os.environ,
                "SONDE_ENGINE": str(engine),
                "SONDE_MPIEXEC": str(launcher.start[0]),
                "PYTHONPATH": str(ROOT / "lab"),
            },
        )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "results" / "result.txt").read_text()
    tasks = NODES * RANKS
    assert f"found           = {tasks}\ntotal-files     = {350 * tasks + tasks + 1}\n" in text
    scores = re.findall(r"^score += ([\d.]+)$", text, re.M)
    assert len(scores) == 13
    assert all(float(score) > 0 for score in scores[:-1])
    assert sorted((tmp_path / "dropped").read_text().split()) == sorted([*nodes.names] * RANKS * 13)
    table = (tmp_path / "results" / "find.csv").read_text().splitlines()
    assert len(table) == 2 + tasks
    assert list((tmp_path / "data").iterdir()) == []
