# SPDX-License-Identifier: Apache-2.0
"""Command lines of mdtest whose trees and tables are compared with those of the real one, and how both are run.

`mdtest_trees.json` holds what mdtest 4.1 left behind and printed for each of them: `python mdtest_cases.py` records it
again with the `mdtest` on PATH. Where `mdtest` is there, a test also checks that the recording is still what it does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("mdtest_trees.json")
LIMIT_S = 120  # only there so that a hang fails instead of hanging the tests

Facts = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """`words` are run in an empty directory by `tasks` tasks; words of several commands are separated by "then"."""

    arguments: str
    tasks: int = 1

    @property
    def name(self) -> str:
        return f"{self.arguments} by {self.tasks}"

    @property
    def commands(self) -> list[list[str]]:
        return [part.split() for part in self.arguments.split(" then ")]


CASES = [
    Case("-n 10 -d d"),
    Case("-n 10 -d d", 2),
    Case("-n 10 -d d -C"),
    Case("-n 10 -d d -C -F"),
    Case("-n 10 -d d -C -D", 2),
    Case("-n 12 -d d -C -F -u", 2),
    Case("-n 12 -d d -C -F -u -N 1", 3),
    Case("-n 12 -d d -u -N 1", 3),
    Case("-n 12 -d d -N 1", 3),
    Case("-I 3 -d d -z 2 -b 2 -C", 2),
    Case("-I 3 -d d -z 2 -b 2 -L -C", 2),
    Case("-I 3 -d d -z 2 -b 2", 2),
    Case("-I 3 -d d -z 3 -b 1 -C -F"),
    Case("-n 20 -d d -z 2 -b 2 -C"),
    Case("-n 13 -d d -z 1 -b 3 -L -F -C -u", 2),
    Case("-n 12 -d d -I 4 -C", 2),
    Case("-n 12 -d d -I 4 -F", 2),
    Case("-n 4 -d d -I 2 -z 1 -b 2 -C", 2),
    Case("-n 5 -d d -C -F -w 100 -G 7", 2),
    Case("-n 5 -d d -C -F -w 9000 -G 7 --dataPacketType=offset", 2),
    Case("-n 5 -d d -C -F -w 3901 -e 3901 -G 7 --dataPacketType=incompressible", 2),
    Case("-n 5 -d d -C -F -w 3901 -G=-12 --dataPacketType=random", 2),
    Case("-n 5 -d d -C -F -w 1k -G 7 -y -Y"),
    Case("-n 5 -d d -F -w 3901 -e 3901 -G 7 -X -N 1", 2),
    Case("-n 5 -d d -F -w 64 -e 64 -G 7 --verify-write"),
    Case("-n 6 -d d -S -C", 2),
    Case("-n 6 -d d -S", 2),
    Case("-n 6 -d d -c -C", 2),
    Case("-n 6 -d d -c -F -u -C", 2),
    Case("-n 6 -d d -c", 2),
    Case("-n 7 -d d -k -F -C"),
    Case("-n 3 -d d -i 3 -C", 2),
    Case("-n 9 -d d -R --random-seed=5"),
    Case("-n 9 -d d -C -D -U"),
    Case("-n 4 -d d -C -f 1 -l 2 -s 1", 2),
    Case("-n 20 -d d -F -C -W 60 -x status", 2),
    Case("-n 10 -d d -C then -n 10 -d d -T then -n 10 -d d -E then -n 10 -d d -r", 2),
    Case("-n 8 -d d -C -F -w 16 -G 3 then -n 8 -d d -E -F -X -e 8 -w 16 -G 3"),
    Case("-n 20 -d d -F -C -W 60 -x status then -n 20 -d d -F -T -x status", 2),
    Case("-n 5 -C -F"),
]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder."""
    return subprocess.run(
        arguments,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **ENVIRONMENT},
    )


ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def make_launcher_command(tasks: int) -> list[str] | None:
    """A launcher for the real mdtest; none is needed for one task."""
    if tasks == 1:
        return []
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun") or shutil.which("mpiexec")
    return None if launcher is None else [launcher, "-n", str(tasks)]


def digest_tree(folder: Path) -> Facts:
    """Counts of directories, files and bytes, and a digest of all names, sizes and contents."""
    digest = hashlib.sha256()
    facts: Facts = {"directories": 0, "files": 0, "bytes": 0}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        content = b"" if path.is_dir() else path.read_bytes()
        facts["directories" if path.is_dir() else "files"] += 1
        facts["bytes"] += len(content)
        digest.update(f"{name} {path.is_dir()} {hashlib.sha256(content).hexdigest()}\n".encode())
    return {**facts, "digest": digest.hexdigest()[:16]}


_ROW = re.compile(r"^   ([A-Z][a-z]+ [a-z]+) +([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)$", re.MULTILINE)


def parse_output(output: str) -> Facts:
    """The tests that the output reports: table rows with a rate, and the printed counts."""
    table = output.split("\nSUMMARY")[-1]
    return {
        "rows": [name for name, *_ in _ROW.findall(table)],
        "with_rate": sorted(name for name, highest, *_ in _ROW.findall(table) if float(highest) > 0),
        "counts": re.findall(r"^\d+ tasks, .*$", output, re.MULTILINE),
        "iterations": re.findall(r"\(of (\d+) iterations\)", output),
    }


def run_case(case: Case, program: list[str], folder: Path, options: list[str]) -> Facts | None:
    """All commands of a case; what they leave and print. None when one does not work here."""
    folder.mkdir()
    printed_facts: list[Facts] = []
    for command_line in case.commands:
        result = run([*program, *command_line, *options], folder)
        if result.returncode != 0 or f"with {case.tasks} total task(s)" not in result.stdout:
            print(result.stdout[-500:], result.stderr[-2000:], file=sys.stderr)
            return None
        printed_facts.append(parse_output(result.stdout))
    return {**digest_tree(folder), "printed": printed_facts}


def run_real(case: Case, folder: Path) -> Facts | None:
    """Facts about a run of the mdtest on PATH; None when it cannot be run with that number of tasks, or at all."""
    program = shutil.which("mdtest")
    start = make_launcher_command(case.tasks)
    return None if program is None or start is None else run_case(case, [*start, program], folder, [])


def read_recorded_facts() -> dict[str, Facts]:
    """Facts about the runs of the real mdtest by name of the case."""
    recorded_facts: dict[str, Facts] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return recorded_facts


def record_all_cases(folder: Path) -> None:
    """Runs all cases with the real mdtest and writes down what it did."""
    recorded_facts: dict[str, Facts] = {}
    for number, case in enumerate(CASES):
        facts = run_real(case, folder / str(number))
        if facts is None:
            print(f"the mdtest on PATH cannot do: {case.name}", file=sys.stderr)
            continue
        recorded_facts[case.name] = facts
    RECORDED.write_text(json.dumps(recorded_facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        record_all_cases(Path(temporary))
