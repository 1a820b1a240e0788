# SPDX-License-Identifier: Apache-2.0
"""How each tool goes over a course. Others are used when they are found on PATH and left out otherwise.

Sonde is given the words of IOR and mdtest, so that it is the drop-in that is measured; beside elbencho and
fio, which name files in other ways, it uses a plan of its own for names.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from beside.courses import MIB, Rates, WorkloadCourse
from overhead.contestants import ROOT_MPI, RunError, run_command

MDTEST_ROWS = {"File creation": "create", "File stat": "stat", "File read": "open", "File removal": "remove"}
#: Phases of the plans that the words of mdtest come to.
MDTEST_PHASES = {"file-create": "create", "file-stat": "stat", "file-read": "open", "file-remove": "remove"}


class Tool(Protocol):
    @property
    def name(self) -> str:
        """As it is called in the figures."""
        ...

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        """Those that it can do in the same way as the others."""
        ...

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        """Does them with all files in `folder`."""
        ...


def make_ior_arguments(course: WorkloadCourse, random: bool) -> list[str]:
    """Sequential: new files are written and read. Random: the files that are there are written again and read."""
    arguments = ["-a", "POSIX", "-w", "-r", "-k", "-t", str(course.transfer)]
    if course.shared:
        arguments += ["-b", str(course.transfer), "-s", str(course.operations)]
    else:
        arguments += ["-F", "-b", str(course.size)]
    return [*arguments, *(["-z", "-E"] if random else []), "-o", "data"]


def make_mdtest_arguments(course: WorkloadCourse) -> list[str]:
    arguments = ["-F", "-C", "-T", "-E", "-r", "-u", "-n", str(course.items), "-d", "names"]
    return arguments + (["-w", str(course.size), "-e", str(course.size)] if course.size else [])


def parse_mdtest_rates(table: str) -> Rates:
    """The largest rate of each test of files in mdtest's summary: with one iteration, the rate."""
    rows = re.findall(r"^   (File \w+) +([0-9.]+) ", table, re.MULTILINE)
    return {MDTEST_ROWS[name]: float(rate) for name, rate in rows}


def get_step_name(access: str, random: bool) -> str:
    return f"random_{access}" if random else access


def read_phase_end_lines(record: Path) -> list[dict[str, Any]]:
    """The result lines of a record."""
    lines = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["type"] == "phase_end"]


@dataclass(frozen=True)
class Sonde:
    """Our engine, all meters on, with the words of the other tools."""

    program: Path
    name: str = "sonde"

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        return course.steps

    def ends(self, tool: str, arguments: list[str], folder: Path, tasks: int) -> list[dict[str, Any]]:
        record = folder / "record.ndjson"
        record.unlink(missing_ok=True)
        run_command(
            [str(self.program), tool, *arguments, f"--sonde-processes={tasks}", f"--sonde-record={record}"], folder
        )
        return read_phase_end_lines(record)

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        rates: Rates = {}
        if course.items:
            for end in self.ends("mdtest", make_mdtest_arguments(course), folder, tasks):
                if step := MDTEST_PHASES.get(end["phase"].split("-", 1)[1]):
                    rates[step] = end["rates"]["total"]["ops_per_s"]
            return rates
        for random in (False, True)[: len(course.steps) // 2]:
            for end in self.ends("ior", make_ior_arguments(course, random), folder, tasks):
                rates[get_step_name(end["op"] if end["op"] == "read" else "write", random)] = end["rates"]["total"][
                    "ops_per_s"
                ]
        return rates


@dataclass(frozen=True)
class SondeNames:
    """Our engine with a plan of its own for names: the kernel is given names in a directory that is open, as elbencho
    does; with the words of mdtest it is given whole paths, as mdtest does.
    """

    program: Path
    name: str = "sonde_names"

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        return course.steps if course.items else ()

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        operations = {"create": "create", "stat": "stat", "open": "read" if course.size else "open_close"}
        phases = {"mktree": "mktree", **operations, "remove": "remove", "rmtree": "rmtree"}
        plan = {
            "schema": "sonde-plan/2",
            "id": "names",
            "target": {"path": str(folder), "min_free": 0},
            "tasks": {"processes": tasks},
            "meta": {
                "tree": {"items_per_task": course.items, "scope": "per_task"},
                "file": {"write": course.size, "read": course.size},
                "lookup": {"paths": "relative"},
            },
            "phases": [{"id": step, "op": operation} for step, operation in phases.items()],
        }
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        record = folder / "record.ndjson"
        run_command([str(self.program), "run", str(folder / "plan.json"), "--record", str(record)], folder)
        return {
            end["phase"]: end["rates"]["total"]["ops_per_s"] for end in read_phase_end_lines(record) if end["rates"]
        }


@dataclass(frozen=True)
class MpiProgram:
    """IOR and mdtest: one process alone, several by a launcher."""

    program: str
    launcher: tuple[str, ...]  #: and its options up to the number of processes; empty: there is none

    def call(self, arguments: list[str], folder: Path, tasks: int) -> str:
        before = [*self.launcher, str(tasks)] if tasks > 1 else []
        return run_command([*before, self.program, *arguments], folder, ROOT_MPI)


@dataclass(frozen=True)
class Ior:
    mpi: MpiProgram
    name: str = "ior"

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        return () if course.items or (tasks > 1 and not self.mpi.launcher) else course.steps

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        rates: Rates = {}
        for random in (False, True)[: len(course.steps) // 2]:
            summary = ["-O", "summaryFormat=JSON", "-O", "summaryFile=ior.json"]
            self.mpi.call([*make_ior_arguments(course, random), *summary], folder, tasks)
            test = json.loads((folder / "ior.json").read_text(encoding="utf-8"))["tests"][0]
            if int(test["Options"]["tasks"]) != tasks:
                raise RunError(f"IOR saw {test['Options']['tasks']} tasks: it belongs to another MPI than the launcher")
            for result in test["Results"]:
                rates[get_step_name(result["access"], random)] = float(result["bwMiB"]) * MIB / course.transfer
        return rates


@dataclass(frozen=True)
class Mdtest:
    """mdtest starts each test with a second of sleep outside its clock."""

    mpi: MpiProgram
    name: str = "mdtest"

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        return () if not course.items or (tasks > 1 and not self.mpi.launcher) else course.steps

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        table = self.mpi.call(make_mdtest_arguments(course), folder, tasks)
        if f"with {tasks} total task(s)" not in table:
            raise RunError("mdtest saw another number of tasks: it belongs to another MPI than the launcher")
        return parse_mdtest_rates(table)


@dataclass(frozen=True)
class Elbencho:
    """elbencho with its default meters and content (new random bytes in each block)."""

    program: str
    name: str = "elbencho"

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        return course.steps

    def last_done(self, phase: str, arguments: list[str], places: list[Path], folder: Path) -> dict[str, str]:
        results = folder / "elbencho.json"
        results.unlink(missing_ok=True)
        run_command([self.program, *arguments, "--nolive", "--jsonfile", str(results), *map(str, places)], folder)
        for line in results.read_text(encoding="utf-8").splitlines():
            document: dict[str, Any] = json.loads(line)  # one object a phase, numbers as text
            if document["phase_type"] == phase:
                return dict(document["last_done"])
        raise RunError(f"elbencho told no result of {phase}")

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        rates: Rates = {}
        if course.items:
            tool_folder = folder / "elbencho"
            tool_folder.mkdir()
            tree = ["-t", str(tasks), "-n", "1", "-N", str(course.items)]
            data = ["-s", str(course.size), "-b", str(max(1, course.size))]
            arguments = {
                "create": ("WRITE", ["-d", "-w", *data]),
                "stat": ("STAT", ["--stat"]),
                "open": ("READ", ["-r", *data]),
                "remove": ("RMFILES", ["-F"]),
            }
            for step, (phase, more) in arguments.items():
                rates[step] = float(self.last_done(phase, [*tree, *more], [tool_folder], folder)["entries/s"])
            return rates
        files = [folder / f"elbencho{number}" for number in range(1 if course.shared else tasks)]
        total = course.size * tasks if course.shared else course.size
        for file in files:
            file.touch()  # it refuses to make files below /dev, where /dev/shm is
        for step in course.steps:
            words_of = ["-t", str(tasks), "-s", str(total), "-b", str(course.transfer)]
            words_of += ["-w" if step.endswith("write") else "-r"]
            words_of += ["--rand"] if step.startswith("random") else []
            words_of += ["--strided"] if course.shared else []
            phase = "WRITE" if step.endswith("write") else "READ"
            rates[step] = float(self.last_done(phase, words_of, files, folder)["iops"])
        return rates


@dataclass(frozen=True)
class Fio:
    """fio with psync, and with its engines for names."""

    program: str
    name: str = "fio"

    def steps(self, course: WorkloadCourse, tasks: int) -> tuple[str, ...]:
        if course.items:
            # Its engines for names write nothing into files, and its jobs share one directory.
            return ("create", "stat", "remove") if tasks == 1 and course.size == 0 else ()
        return course.steps

    def job(self, arguments: dict[str, object], folder: Path) -> dict[str, Any]:
        text = run_command([self.program, *(f"--{name}={value}" for name, value in arguments.items())], folder)
        job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
        return job

    def run(self, course: WorkloadCourse, folder: Path, tasks: int) -> Rates:
        rates: Rates = {}
        common: dict[str, object] = {"name": "fio", "group_reporting": 1, "output-format": "json", "numjobs": tasks}
        if course.items:
            tool_folder = folder / "fio"
            tool_folder.mkdir()
            common |= {"directory": tool_folder, "nrfiles": course.items, "openfiles": 1, "filesize": "4k", "bs": "4k"}
            # In any other order it looks for the next file in a list of all.
            common |= {"fallocate": "none", "file_service_type": "sequential"}
            for step, engine in {"create": "filecreate", "stat": "filestat", "remove": "filedelete"}.items():
                job = self.job({**common, "ioengine": engine}, folder)
                rates[step] = max(float(job[kind]["iops"]) for kind in ("read", "write", "trim"))
            return rates
        common |= {"bs": course.transfer, "ioengine": "psync", "fallocate": "none", "invalidate": 0}
        if course.shared:
            common |= {"filename": folder / "fio", "size": course.size * tasks, "io_size": course.size}
            common |= {"offset_increment": course.transfer}
        else:
            common |= {"directory": folder, "size": course.size, "filename_format": "fio.$jobnum"}
        for step in course.steps:
            kind = step.removeprefix("random_")
            skip = f":{course.transfer * (tasks - 1)}" if course.shared and tasks > 1 else ""
            new = {"create_on_open": 1} if step == "write" else {}
            job = self.job({**common, **new, "rw": ("rand" if step != kind else "") + kind + skip}, folder)
            rates[step] = float(job[kind]["iops"])
        return rates


def list_other_tools(mpiexec: tuple[str, ...]) -> list[Tool]:
    """All other tools on PATH."""
    tools: list[Tool] = []
    if path := shutil.which("ior"):
        tools.append(Ior(MpiProgram(path, mpiexec)))
    if path := shutil.which("mdtest"):
        tools.append(Mdtest(MpiProgram(path, mpiexec)))
    if path := shutil.which("elbencho"):
        tools.append(Elbencho(path))
    if path := shutil.which("fio"):
        tools.append(Fio(path))
    return tools
