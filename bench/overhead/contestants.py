# SPDX-License-Identifier: Apache-2.0
"""How each program does the work of a cell. Peers are used when they are found on PATH and left out otherwise."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from overhead.cells import KIB, MIB, Cell, get_prepared_file

TIMEOUT_S = 120
#: Bytes after which the engine's content repeats, for transfers shorter than the last figure and for others.
ENGINE_DATA = (256 * KIB, MIB)
ENGINE_DATA_LONG = 256 * KIB


class RunError(Exception):
    """A contestant did not do its work; one sentence."""


@dataclass(frozen=True)
class Turn:
    """What one turn gave."""

    rate: float  #: operations per second
    cpu_ns: float | None = None  #: processor time of an operation, where the program tells it


class Contestant(Protocol):
    @property
    def name(self) -> str:
        """As it is called in the figures."""
        ...

    def can(self, cell: Cell) -> bool:
        """Whether the program can do this work in the same way as the others."""
        ...

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        """Does the work for about that long with all files in `folder`."""
        ...


def find_error_message(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of a failed program's output that is not empty or a rule."""
    lines = [line.strip() for text in (done.stdout, done.stderr) for line in text.splitlines()]
    telling = [line for line in lines if line.strip("-= ") and not line.startswith("==")]
    return telling[-1] if telling else "no message"


def run_command(command: list[str], folder: Path, env: dict[str, str] | None = None) -> str:
    """Standard output of a program that must succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RunError(f"{Path(command[0]).name} ended with {done.returncode}: {find_error_message(done)}")
    return done.stdout


@dataclass(frozen=True)
class RawLoop:
    """The bare loop over the same system calls (bench/raw)."""

    program: Path
    name: str = "raw"

    def can(self, cell: Cell) -> bool:
        return True

    def command(self, cell: Cell, folder: Path, seconds: float) -> list[str]:
        arguments = {
            "file": folder / "raw" if cell.fresh else get_prepared_file(folder),
            "op": "write" if cell.write else "read",
            "transfer": cell.transfer,
            "size": cell.size,
            "data": ENGINE_DATA[cell.transfer >= ENGINE_DATA_LONG] if cell.data else 0,
            "order": "random" if cell.random else "sequential",
            "seconds": 0 if cell.fresh else seconds,
            "depth": cell.depth,
            "direct": int(cell.direct),
            "fresh": int(cell.fresh),
        }
        return [str(self.program), "loop", *(f"{name}={value}" for name, value in arguments.items())]

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        count = json.loads(run_command(self.command(cell, folder, seconds), folder))
        operations = float(count["ops"])
        return Turn(operations / float(count["seconds"]), float(count["cpu_seconds"]) / operations * 1e9)


def make_engine_plan(cell: Cell, folder: Path, seconds: float | None) -> dict[str, Any]:
    """A plan with one phase, "cell"; without seconds one pass."""
    phase: dict[str, Any] = {
        "id": "cell",
        "op": ("write" if cell.fresh else "rewrite") if cell.write else "read_only",
        "access": {
            "transfer": cell.transfer,
            "block": cell.size,
            "segments": 1,
            "order": "random_permute" if cell.random else "sequential",
        },
        "io": {"direct": cell.direct, "queue_depth": max(1, cell.depth)},
    }
    target: dict[str, Any] = {"path": str(folder), "min_free": 0}
    if not cell.fresh:
        file = get_prepared_file(folder)
        target |= {"path": str(file.parent.parent), "directory": file.parent.name, "use_existing": True, "keep": True}
        if seconds is not None:
            phase["stop"] = {"time": seconds}
    return {
        "schema": "sonde-plan/2",
        "id": "bench",
        "target": target,
        "tasks": {"threads": 1},
        "data": {
            "backend": "io_uring" if cell.depth else "posix",
            "files": {"mapping": "shared"},
            "payload": {} if cell.data else {"period": 4 * KIB},
        },
        "phases": [phase],
    }


def read_phase_end_line(record: Path, phase: str) -> dict[str, Any]:
    """The result line of a phase."""
    for line in record.read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        if entry.get("type") == "phase_end" and entry.get("phase") == phase:
            return entry
    raise RunError(f"the record has no result of the phase {phase}")


@dataclass(frozen=True)
class Engine:
    """Our own program, all meters on."""

    program: Path
    name: str = "engine"

    def can(self, cell: Cell) -> bool:
        return True

    def command(self, plan: dict[str, Any], folder: Path) -> tuple[list[str], Path]:
        """Writes the plan; the command and where its record will be."""
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        record = folder / "record.ndjson"
        record.unlink(missing_ok=True)
        return [str(self.program), "run", str(folder / "plan.json"), "--record", str(record)], record

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        command, record = self.command(make_engine_plan(cell, folder, seconds), folder)
        run_command(command, folder)
        end = read_phase_end_line(record, "cell")
        cpu_s = float(end["cpu"]["user_s"]) + float(end["cpu"]["system_s"])
        return Turn(float(end["rates"]["transfer"]["ops_per_s"]), cpu_s / float(end["ops"]["done"]) * 1e9)


def write_layout(layouts: Path, file: Path, stripes: int) -> dict[str, str]:
    """Gives `file` a layout of so many targets, 1 MiB on each in turn: the environment in which the engine believes it.

    The form is struct lov_user_md_v1 of lustre_user.h, which the engine takes for the attribute of the file.
    """
    head = struct.pack("<IIQQIHH", 0x0BD10BD0, 1, 1, 0, 1 << 20, stripes, 0)
    objects = b"".join(struct.pack("<QQII", 1, 0, 0, index) for index in range(stripes))
    layouts.mkdir(exist_ok=True)
    (layouts / file.name).write_bytes(head + objects)
    return {"SONDE_PRETEND_LAYOUTS": str(layouts)}


@dataclass(frozen=True)
class EngineWithTargets(Engine):
    """The same when the file lies on `stripes` targets, and each operation is given to one of them."""

    stripes: int = 1

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        command, record = self.command(make_engine_plan(cell, folder, seconds), folder)
        run_command(command, folder, write_layout(folder / "layouts", get_prepared_file(folder), self.stripes))
        if '"type":"targets"' not in record.read_text(encoding="utf-8"):
            raise RunError("the engine did not take the layout that was given to it")
        end = read_phase_end_line(record, "cell")
        cpu_s = float(end["cpu"]["user_s"]) + float(end["cpu"]["system_s"])
        return Turn(float(end["rates"]["transfer"]["ops_per_s"]), cpu_s / float(end["ops"]["done"]) * 1e9)


@dataclass(frozen=True)
class Ior:
    """IOR, POSIX back-end, one process without a launcher."""

    program: str
    name: str = "ior"

    def can(self, cell: Cell) -> bool:
        return cell.depth == 0 and not cell.direct

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        path = folder / "ior" if cell.fresh else get_prepared_file(folder)
        command = [self.program, "-a", "POSIX", "-k", "-t", str(cell.transfer), "-b", str(cell.size), "-o", str(path)]
        command += ["-O", "summaryFormat=JSON", "-O", f"summaryFile={folder / 'ior.json'}"]
        command += ["-w" if cell.write else "-r", *(["-z"] if cell.random else [])]
        if not cell.fresh:
            # IOR cannot repeat by time: as many passes as fit into a round of the others.
            command += ["-E", "-i", str(max(1, round(seconds * 3e9 / cell.size)))]
        run_command(command, folder, ROOT_MPI)
        results = json.loads((folder / "ior.json").read_text(encoding="utf-8"))["tests"][0]["Results"]
        return Turn(cell.operations * len(results) / sum(float(result["wrRdTime"]) for result in results))


#: Open MPI refuses root otherwise; the search for a remote launcher takes time in each start.
ROOT_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_plm_rsh_agent": "false",
}


@dataclass(frozen=True)
class Fio:
    """fio with psync, or with io_uring and what makes it fast: registered buffers and files."""

    program: str
    batch: int = 1  #: io_uring: how many operations it may hand over at once
    name: str = "fio"

    def can(self, cell: Cell) -> bool:
        return cell.depth > 0 or self.batch == 1

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        kind = ("rand" if cell.random else "") + ("write" if cell.write else "read")
        arguments = {
            "name": "cell",
            "filename": folder / "fio" if cell.fresh else get_prepared_file(folder),
            "rw": kind,
            "bs": cell.transfer,
            "size": cell.size,
            "direct": int(cell.direct),
            "ioengine": "io_uring" if cell.depth else "psync",
            "output-format": "json",
        }
        if cell.depth:
            arguments |= {"iodepth": cell.depth, "fixedbufs": 1, "registerfiles": 1}
            arguments |= {"iodepth_batch": self.batch, "iodepth_batch_complete_max": self.batch}
        if cell.fresh:
            arguments |= {"fallocate": "none", "end_fsync": 0}
        else:
            arguments |= {"time_based": 1, "runtime": f"{round(seconds * 1000)}ms"}
        if not cell.direct:
            arguments["invalidate"] = 0
        text = run_command([self.program, *(f"--{name}={value}" for name, value in arguments.items())], folder)
        job = json.loads(text[text.index("{") :])["jobs"][0]
        return Turn(float(job["write" if cell.write else "read"]["iops"]))


@dataclass(frozen=True)
class TUring:
    """fio's own bare io_uring loop (t/io_uring), reads only."""

    program: str
    name: str = "t_io_uring"

    def can(self, cell: Cell) -> bool:
        return cell.depth > 0 and not cell.write

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        depth = str(cell.depth)
        options = ["-d", depth, "-s", depth, "-c", depth, "-p0", "-B1", "-F1", "-n1", f"-O{int(cell.direct)}"]
        # It reports once a second, and not the first one.
        text = run_command(
            [self.program, *options, "-b", str(cell.transfer), "-r", "2", str(get_prepared_file(folder))], folder
        )
        rates = [line.split("=")[1].split(",")[0] for line in text.splitlines() if line.startswith("IOPS=")]
        if not rates:
            raise RunError("t/io_uring printed no rate")
        number = rates[-1]
        unit = {"K": 1e3, "M": 1e6}.get(number[-1], 1.0)
        return Turn(float(number.rstrip("KM")) * unit)


@dataclass(frozen=True)
class Elbencho:
    """elbencho with its default meters; writes with fresh random content for every block, which is its default."""

    program: str
    name: str = "elbencho"

    def can(self, cell: Cell) -> bool:
        return cell.depth == 0 and not cell.direct

    def run(self, cell: Cell, folder: Path, seconds: float) -> Turn:
        path = folder / "elbencho" if cell.fresh else get_prepared_file(folder)
        results = folder / "elbencho.json"
        command = [self.program, "-t", "1", "-s", str(cell.size), "-b", str(cell.transfer), "--nolive"]
        command += ["--jsonfile", str(results), "-w" if cell.write else "-r"]
        command += ["--rand"] if cell.random else []
        command += [] if cell.fresh else ["--infloop", "--timelimit", "1"]  # whole seconds only
        path.touch()  # it refuses to make files below /dev, where /dev/shm is
        results.unlink(missing_ok=True)
        run_command([*command, str(path)], folder)
        # One object a phase, numbers as text.
        last = json.loads(results.read_text(encoding="utf-8").strip().splitlines()[-1])
        return Turn(float(last["last_done"]["iops"]))


def list_peers() -> list[Contestant]:
    """All other tools on PATH."""
    contestants: list[Contestant] = []
    for name, make in (("ior", Ior), ("elbencho", Elbencho), ("t_io_uring", TUring)):
        if path := shutil.which(name):
            contestants.append(make(path))
    if fio := shutil.which("fio"):
        contestants += [Fio(fio), Fio(fio, batch=16, name="fio_batch16")]
    return contestants
