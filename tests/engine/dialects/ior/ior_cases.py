# SPDX-License-Identifier: Apache-2.0
"""Command lines of IOR whose files are compared with those of the real one, byte for byte, and how both are run.

`ior_files.json` holds what IOR 4.1 left behind for each of them: `python ior_cases.py` records it again with the `ior`
on PATH. Where `ior` is there, a test also checks that the recording is still what it does.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).with_name("ior_files.json")
LIMIT_S = 120  # only there so that a hang fails instead of hanging the tests

Files = dict[str, tuple[int, str]]


@dataclass(frozen=True)
class Case:
    """`words` are run in an empty directory by `tasks` tasks; words of several commands are separated by "then"."""

    arguments: str
    tasks: int = 1
    before: int = 0  # bytes of 0xee in the file f beforehand
    mpi: bool = False
    script: str = ""  # becomes the file `script`

    @property
    def name(self) -> str:
        return f"{self.arguments} by {self.tasks}"

    @property
    def commands(self) -> list[list[str]]:
        return [part.split() for part in self.arguments.split(" then ")]


SCRIPT = """anything before is ignored
IOR START
 # all of it into one folder
 api=POSIX, writeFile=1, keepFile=1
 setTimeStampSignature = 11  # the signature
 testFile = one
 transferSize=4k
 blockSize=16k
RUN
 testFile = two
 filePerProc=1
 segmentCount=3
RUN
RUN
 testFile=three, dataPacketType=offset
IOR STOP
 testFile = four
"""

CASES = [
    Case("-w -k -G 5 -o f"),
    Case("-w -k -G 5 -o f -t 4k -b 64k -s 3"),
    Case("-w -k -G 5 -o f -F -t 4k -b 64k -s 3", 2),
    Case("-w -k -G 5 -o f -t 10000 -b 10000 -s 20", 2),
    Case("-w -k -G 5 -o f -t 10000 -b 1000000", 2),
    Case("-w -k -G 5 -o f -t 1000 -b 5000 -s 7 -F", 3),
    Case("-w -k -G 5 -o f -l offset -t 8200 -b 24600 -s 2", 2),
    Case("-w -k -G 5 -o f -l o -t 64k -b 256k -F", 2),
    Case("-w -k -G 5 -o f -l incompressible -t 4k -b 64k -s 2", 2),
    Case("-w -k -G 5 -o f -l i -t 8200 -b 24600 -F", 2),
    Case("-w -k -G 5 -o f -l random -t 8200 -b 24600 -s 2", 2),
    Case("-w -k -G 5 -o f -l r -t 64k -b 256k -F", 2),
    Case("-w -k -G -7 -o f -t 8 -b 80"),
    Case("-w -k -G 123456789 -o f -t 16k -b 64k --dataPacketType=timestamp"),
    Case("-w -k -G 5 -o ./f -F -u -t 4k -b 16k", 3),
    Case("-w -k -G 5 -o f -m -i 3 -t 4k -b 16k", 2),
    Case("-w -k -G 5 -o f -m -i 2 -F -t 4k -b 16k", 2),
    Case("-w -k -G 5 -o ./f -m -i 2 -F -u -t 4k -b 16k", 2),
    Case("-w -k -G 5 -o f -i 3 -t 4k -b 16k", 2),
    Case("-w -k -G 5 -o f -E -t 4k -b 16k", 1, before=100_000),
    Case("-w -k -G 5 -o f -t 4k -b 16k", 1, before=100_000),
    Case("-w -k -G 5 -o a@b@a -F -t 4k -b 16k", 4),
    Case("-w -k -G 5 -o f -z -F -t 4k -b 64k -s 2", 2),
    Case("-w -k -G 5 -o f -z -F -t 4k -b 64k -l o --random-offset-seed=3", 2),
    Case("-w -r -R -k -G 5 -o f -z -F -t 4k -b 64k -l o --random-offset-seed=3", 2),
    Case("-w -k -G 5 -o f -z -F -t 4k -b 64k --randomPrefill=16k", 2),
    Case("-w -r -k -G 5 -o f -e -Y -t 4k -b 16k", 2),
    Case("-w -r -k -G 5 -o f -g -t 4k -b 16k -F", 2),
    Case("-w -r -W -R -k -G 5 -o f -t 4k -b 16k -l o", 2),
    Case("-w -r -C -Q 2 -k -G 5 -o f -t 4k -b 16k -F", 4),
    Case("-w -r -Z -X 7 -R -k -G 5 -o f -t 4k -b 16k -F -l o", 4),
    Case("-w -r -Z -Z -X 7 -R -k -G 5 -o f -t 4k -b 16k -l o", 4),
    Case("-w -r -i 2 -G 5 -o f -F -t 4k -b 16k", 2),
    Case("-w -r -i 2 -G 5 -o ./f -F -u -t 4k -b 16k", 2),
    Case("-w -r -G 5 -o f -t 4k -b 16k", 2),
    Case("-w -r -G 5 -o f -K -W -R -m -i 2 -F -t 4k -b 16k", 2),
    Case("-w -k -G 5 -o f -t 4k -b 16k -O writeFile=1,filePerProc=1,segmentCount=2", 2),
    Case("-w -k -G=5 -o=f -t=4k -b=16k -s=2 -F=1", 2),
    Case("-wkF -G 5 -o f -t 4k -b 16k", 2),
    Case("-w -k -G 5 -o f -t 4k -b 64k -O stoneWallingWearOutIterations=5", 2),
    Case("-w -k -G 5 -o f -t 4k -b 64k -D 60 -O stoneWallingWearOut=1,stoneWallingStatusFile=status", 2),
    Case(
        "-w -k -G 5 -o f -t 4k -b 64k -F -D 60 -O stoneWallingWearOut=1,stoneWallingStatusFile=s"
        " then -r -R -G 5 -k -o f -t 4k -b 128k -F -O stoneWallingStatusFile=s",
        2,
    ),
    Case("-w -k -G 5 -o f -t 4k -b 16k then -r -G 5 -o f -t 4k -b 16k -R", 2),
    Case("-w -k -G 5 -o f -t 4k -b 16k --posix.odirect", 2),
    Case("-w -k -G 5 -o f -t 4k -b 16k -O useO_DIRECT=1 -F", 2),
    Case("-w -k -G 5 -o f -x -t 4k -b 16k -N 2 -F", 4),
    Case("-w -k -G 5 -o f -t 4k -b 16k -s 2 -N 3", 4),
    Case("-w -r -R -k -G 5 -o f -a MMAP -t 4k -b 16k -s 2", 2),
    Case("-w -k -G 5 -o f -a POSIX -t 4k -b 64k -F", 2),
    Case("-w -r -o f -a DUMMY -t 4k -b 16k", 2),
    Case("-w -r -R -k -G 5 -o f -a MPIIO -t 4k -b 16k -s 2", 2, mpi=True),
    Case("-w -r -k -G 5 -o f -a MPIIO -F -t 10000 -b 20000", 2, mpi=True),
    Case("-w -r -R -k -G 5 -o f -a MPIIO -c -t 10000 -b 10000 -s 5 -l o", 2, mpi=True),
    Case("-w -k -G 5 -o f -a MPIIO --mpiio.useFileView -t 4k -b 16k -s 2", 2, mpi=True),
    Case("-w -k -G 5 -o f -a MPIIO --mpiio.preallocate -t 4k -b 16k", 2, mpi=True),
    Case("-f script", 2, script=SCRIPT),
    Case("-w -k -G 5 -o f -t 4k -b 16k -O minTimeDuration=1", 1),
]


def prepare_case(case: Case, folder: Path) -> None:
    """Creates the files that the case needs."""
    folder.mkdir()
    if case.before:
        (folder / "f").write_bytes(b"\xee" * case.before)
    if case.script:
        (folder / "script").write_text(case.script, encoding="utf-8")


def digest_files(folder: Path) -> Files:
    """Size and digest of everything in a folder, by name; directories end with a slash."""
    files: Files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            files[name + "/"] = (0, "")
        else:
            content = path.read_bytes()
            files[name] = (len(content), hashlib.sha256(content).hexdigest()[:16])
    return files


def make_launcher_command(tasks: int) -> list[str] | None:
    """A launcher for the real IOR; none is needed for one task."""
    if tasks == 1:
        return []
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun") or shutil.which("mpiexec")
    return None if launcher is None else [launcher, "-n", str(tasks)]


ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_io": "romio321",  # the other one of Open MPI 4 opens no shared files here
}


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


def run_real(case: Case, folder: Path) -> Files | None:
    """Files that the IOR on PATH leaves; None when it cannot be run with that number of tasks, or at all."""
    program = shutil.which("ior")
    start = make_launcher_command(case.tasks)
    if program is None or start is None:
        return None
    prepare_case(case, folder)
    for command_line in case.commands:
        result = run([*start, program, *command_line], folder)
        headers = [line for line in result.stdout.splitlines() if line.startswith("tasks ")]
        used = int(command_line[command_line.index("-N") + 1]) if "-N" in command_line else case.tasks
        if result.returncode != 0 or any(int(line.split(":")[1]) != used for line in headers):
            return None
    return digest_files(folder)


def read_recorded_files() -> dict[str, Files]:
    """The files of the real IOR by the name of the case."""
    recorded_files = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {
        name: {file: (size, digest) for file, (size, digest) in files.items()} for name, files in recorded_files.items()
    }


def record_all_cases(folder: Path) -> None:
    """Runs all cases with the real IOR and writes down what it left."""
    recorded_files: dict[str, Files] = {}
    for number, case in enumerate(CASES):
        files = run_real(case, folder / str(number))
        if files is None:
            print(f"the ior on PATH cannot do: {case.name}", file=sys.stderr)
            continue
        recorded_files[case.name] = files
    RECORDED.write_text(json.dumps(recorded_files, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        record_all_cases(Path(temporary))
