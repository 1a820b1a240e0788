# SPDX-License-Identifier: Apache-2.0
"""The engine, IOR and a program of ours under the preload library, with one and two ranks and each MPI that is here.
What they read is what they wrote and what MPI promises; their own files are buffered, and of the files that ranks share
by MPI-IO those of which the user says that the parts are disjoint.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

EDISON = "-a MPIIO -t 10000 -b 1000000 -s 2 -w -r -W -R -g -k -G 7"
PIECES = "-a MPIIO -t 10000 -b 10000 -s 100 -w -W -k"
LINE = "-t 1000 -b 100000 -s 2 -w -r -W -R -g -k"
UNBUFFERED_FIRST_WRITES = 16
LAUNCHERS = {
    "mpich": [str(Path(sys.prefix) / "bin" / "mpiexec")],
    "openmpi": ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe"],
}


@dataclass(frozen=True)
class FileReport:
    """The library's report on one open of one file."""

    path: str
    calls: int
    below: int
    writes: int
    release_reason: str | None
    advice: str | None

    @property
    def is_a_twentieth(self) -> bool:
        """At most a twentieth of the calls reached the kernel, except the first writes of a file: these bypass the
        buffer while storage answers at once."""
        return (self.below - min(self.writes, UNBUFFERED_FIRST_WRITES)) * 20 < self.calls


def reports(lines: Path) -> list[FileReport]:
    """All that processes have written to the folder."""
    lines_read = [
        json.loads(line) for file in lines.iterdir() for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [
        FileReport(
            line["path"],
            line["read"]["calls"] + line["write"]["calls"],
            line["read"]["storage_calls"] + line["write"]["storage_calls"],
            line["write"]["calls"],
            line.get("release_reason"),
            line.get("advice"),
        )
        for line in lines_read
        if line["type"] == "buffer" and "locktest" not in line["path"]
    ]


def run_under_iobuf(
    command: list[str], folder: Path, library: Path, options: str = "size=64k:count=4:alone"
) -> list[FileReport]:
    """Runs it under the library; what the reports say about the files that it made in `folder`."""
    lines = Path(tempfile.mkdtemp(prefix="lines", dir=folder))
    under = {
        "LD_PRELOAD": str(library),
        "IOBUF_PARAMS": f"{folder}/data*:{options}",
        "SONDE_IOBUF_LINES": str(lines),
    }
    position = command.index("--under")
    command_line = [
        *command[:position],
        "env",
        *(f"{name}={value}" for name, value in under.items()),
        *command[position + 1 :],
    ]
    done = subprocess.run(command_line, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return reports(lines)


def program(name: str, engine: Path) -> list[str]:
    """IOR itself, where it is on PATH; or the engine, which takes the same words."""
    if name == "engine":
        return [str(engine), "ior"]
    if shutil.which("ior") is None:
        pytest.skip("ior is not on PATH")
    return ["ior"]


def launcher(name: str, of: str) -> list[str]:
    command = LAUNCHERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here")
    if of == "ior" and name == "mpich":
        pytest.skip("which MPI an ior on PATH was built with is not known; mpiexec.openmpi is tried")
    return command


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mpi", LAUNCHERS)
@pytest.mark.parametrize("name", ["engine", "ior"])
def test_file_per_process_output_is_buffered(
    name: str, mpi: str, ranks: int, engine: Path, tmp_path: Path, library: Path
) -> None:
    start_with = [*launcher(mpi, name), "-n", str(ranks), "--under", *program(name, engine)]
    file_reports = run_under_iobuf(
        [*start_with, "-a", "POSIX", "-F", *LINE.split(), "-o", str(tmp_path / "data")], tmp_path, library
    )
    written = [report for report in file_reports if report.calls > 0]
    assert len({report.path for report in written}) == ranks
    assert all(report.is_a_twentieth for report in written), written


def needs_mpi(name: str, engine: Path) -> None:
    if name == "engine" and not any(engine.parent.glob("sonde-mpi-*.so")):
        pytest.skip("the engine was built without an MPI")


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mpi", LAUNCHERS)
@pytest.mark.parametrize("name", ["engine", "ior"])
def test_edisons_lines_with_transfers_of_10000_bytes(
    name: str, mpi: str, ranks: int, engine: Path, tmp_path: Path, library: Path
) -> None:
    """Transfers of 10,000 bytes in blocks of 1,000,000, verified: a twentieth of the calls, and the same bytes."""
    needs_mpi(name, engine)
    arguments = [*EDISON.split(), "-o", str(tmp_path / "data")]
    start_with = [*launcher(mpi, name), "-n", str(ranks), "--under", *program(name, engine)]
    run_under_iobuf([*start_with, *arguments], tmp_path, library, "off")
    without = (tmp_path / "data").read_bytes()
    (tmp_path / "data").unlink()
    file_reports = run_under_iobuf([*start_with, *arguments], tmp_path, library, "size=1M:alone:mpiio=disjoint")
    assert (tmp_path / "data").read_bytes() == without
    assert len(without) == ranks * 2_000_000
    moved = [report for report in file_reports if report.calls > 0]
    assert len(moved) >= 2 * ranks  # written, and read
    assert all(report.release_reason is None and report.is_a_twentieth for report in moved), moved


@pytest.mark.parametrize("mpi", LAUNCHERS)
def test_interleaved_ranks_are_advised_to_use_collective_calls(
    mpi: str, engine: Path, tmp_path: Path, library: Path
) -> None:
    needs_mpi("engine", engine)
    start_with = [*launcher(mpi, "engine"), "-n", "2", "--under", *program("engine", engine)]
    file_reports = run_under_iobuf(
        [*start_with, *PIECES.split(), "-o", str(tmp_path / "data")], tmp_path, library, "alone:mpiio=disjoint"
    )
    written = [report for report in file_reports if report.writes > 0]
    assert len(written) == 2
    assert all("use collective calls" in (report.advice or "") for report in written), file_reports


#: What lets a file go, and why; the others stay buffered.
RELEASE_REASONS = {
    "collective": "collective calls",
    "atomic": "atomic mode",
    "shared_offset": "share an offset",
    "holes": "its view has holes",
    "two_handles": "once more",
}
ONE_RANKS = {"own_files.0", "own_files.1", "read_only"}


@dataclass(frozen=True)
class RankResults:
    """Results of all ranks, and the files that they left."""

    out: str
    files: dict[str, bytes]


@dataclass(frozen=True)
class Sharing:
    command: list[str]
    without: RankResults


@pytest.fixture(scope="module", params=LAUNCHERS)
def two_ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sharing:
    """Two ranks that do with files what ranks do, and what comes of it without the library."""
    name = str(request.param)
    compiler = {"mpich": str(Path(sys.prefix) / "bin" / "mpicc"), "openmpi": "mpicc.openmpi"}[name]
    if shutil.which(compiler) is None or shutil.which("cc") is None:
        pytest.skip(f"there is no {compiler} here")
    folder = tmp_path_factory.mktemp(name)
    source = Path(__file__).resolve().parents[1] / "preload" / "programs" / "mpi_io.c"
    subprocess.run([compiler, "-O1", "-g", "-w", "-o", str(folder / "mpi_io"), str(source)], check=True)
    command = [*launcher(name, "ours"), "-n", "2", "--under", str(folder / "mpi_io")]
    return Sharing(command, run_in_new_folder(command, folder / "without", {}))


def run_in_new_folder(command: list[str], folder: Path, settings: dict[str, str]) -> RankResults:
    """Runs the program in a new folder."""
    folder.mkdir()
    position = command.index("--under")
    under = ["env", *(f"{name}={value}" for name, value in settings.items())] if settings else []
    command_line = [*command[:position], *under, *command[position + 1 :], str(folder)]
    done = subprocess.run(command_line, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return RankResults(done.stdout, {file.name: file.read_bytes() for file in folder.iterdir()})


@pytest.mark.parametrize(
    "options", ["mpiio=disjoint", "alone:mpiio=disjoint", "alone", ""], ids=lambda value: value or "*"
)
def test_ranks_see_data_as_mpi_guarantees(two_ranks: Sharing, options: str, library: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.mkdir()
    settings = {
        "LD_PRELOAD": str(library),
        "IOBUF_PARAMS": f"{tmp_path}/files/*:{options}",
        "SONDE_IOBUF_LINES": str(lines),
    }
    assert run_in_new_folder(two_ranks.command, tmp_path / "files", settings) == two_ranks.without
    file_reports = reports(lines)
    files = {Path(report.path).name for report in file_reports} & set(two_ranks.without.files)
    assert len(files) == len(two_ranks.without.files), file_reports
    for report in file_reports:
        name = Path(report.path).name
        if name in files and "disjoint" in options:
            assert RELEASE_REASONS.get(name, "") in (report.release_reason or ""), report
            assert (report.release_reason is None) == (name not in RELEASE_REASONS), report
        elif name == "read_only" and (not report.calls or "another process" in (report.release_reason or "")):
            continue  # both ranks open it to write, one writes: whether they notice each other is chance
        elif name in files and options == "alone":
            assert (report.release_reason is None) == (name in ONE_RANKS), report
