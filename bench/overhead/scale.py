# SPDX-License-Identifier: Apache-2.0
"""Many ranks on few cores: from start to end, and what memory a rank takes."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from overhead.cells import KIB
from overhead.contestants import ROOT_MPI, TIMEOUT_S, Engine, RunError, find_error_message, read_phase_end_line

BLOCK = 64 * KIB


@dataclass(frozen=True)
class Launcher:
    """An mpiexec and how it is told that ranks may share cores."""

    path: str
    name: str
    options: tuple[str, ...]


def find_launcher(path: str) -> Launcher | None:
    """Which MPI an mpiexec belongs to; None when it does not run."""
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    if "Open MPI" in output or "OpenRTE" in output:
        return Launcher(path, "openmpi", ("--oversubscribe",))
    return Launcher(path, "hydra", ()) if "HYDRA" in output else Launcher(path, "mpi", ())


def list_launchers(requested: list[str], root: Path) -> list[Launcher]:
    """The given ones, or all that can be found."""
    names = requested or ["mpiexec", "mpiexec.openmpi", "mpiexec.mpich", str(root / ".venv/bin/mpiexec")]
    launchers_by_path: dict[str, Launcher] = {}
    for name in names:
        path = shutil.which(name)
        if path and os.path.realpath(path) not in launchers_by_path and (found_launcher := find_launcher(path)):
            launchers_by_path[os.path.realpath(path)] = found_launcher
    return list(launchers_by_path.values())


@dataclass
class ScaleOutcome:
    seconds: float  #: median, start to end
    peak_mib: float  #: of the largest rank


def make_engine_command(engine: Engine, folder: Path, ranks: int) -> tuple[list[str], Path]:
    plan = {
        "schema": "sonde-plan/2",
        "id": "ranks",
        "target": {"path": str(folder), "min_free": 0},
        "data": {"access": {"transfer": 4 * KIB, "block": BLOCK, "segments": 1}},
        "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
    }
    return engine.command(plan, folder)


def require_all_engine_ranks(record: Path, ranks: int) -> None:
    """Raises unless all ranks took part: a launcher that is not understood would start as many runs of one rank."""
    done = read_phase_end_line(record, "read")["bytes"]["transferred"]
    if done != ranks * BLOCK:
        raise RunError(f"the engine moved {done} bytes instead of {ranks * BLOCK}: the ranks did not find each other")


def require_all_ior_ranks(summary: Path, ranks: int) -> None:
    """The same for IOR."""
    tasks = json.loads(summary.read_text(encoding="utf-8"))["tests"][0]["Options"]["tasks"]
    if int(tasks) != ranks:
        raise RunError(f"IOR saw {tasks} ranks: it belongs to another MPI than this launcher")


def measure_start(command: list[str], folder: Path) -> float:
    """Runs the command and returns its duration in seconds."""
    begin = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **ROOT_MPI},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RunError(f"ended with {done.returncode}: {find_error_message(done)}")
    return time.monotonic() - begin


def measure_median_start(
    who: str, program: Engine | str, mpi: Launcher, raw: Path, base: Path, ranks: int, times: int
) -> ScaleOutcome:
    """The median of `times` runs, and one more under the wrapper that reads each rank's peak memory."""
    seconds: list[float] = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=base) as name:
        folder = Path(name)
        before = [mpi.path, *mpi.options, "-n", str(ranks)]
        for number in range(times + 1):
            if isinstance(program, Engine):
                command, record = make_engine_command(program, folder, ranks)
            else:
                record = folder / "ior.json"
                command = [program, "-a", "POSIX", "-F", "-t", "4k", "-b", str(BLOCK), "-w", "-r"]
                command += ["-o", str(folder / "ior"), "-O", "summaryFormat=JSON", "-O", f"summaryFile={record}"]
            if number == times:
                measure_start([*before, str(raw), "child", str(folder / "use"), *command], folder)
            else:
                seconds.append(measure_start([*before, *command], folder))
            (require_all_engine_ranks if isinstance(program, Engine) else require_all_ior_ranks)(record, ranks)
        uses = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("use.*")]
    if len(uses) != ranks:
        raise RunError(f"{who}: {len(uses)} of {ranks} ranks told their memory")
    return ScaleOutcome(statistics.median(seconds), max(use["peak_kib"] for use in uses) / 1024)
