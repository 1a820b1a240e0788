#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How faithful replays are: our own programs are traced and replayed in turn on the same storage.

    bench/replay.py --on DIR [--pairs 7] [--only python]

The replay is traced too, so that one instrument times both. Prints, for each program, whether reads and writes and
their bytes are exact, and the time in calls of the replay by that of the original, in two ways: the sum over calls of
the median over pairs (a call that another program interrupts in a few pairs does not count), and the sums of single
pairs (lowest, median and highest).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sonde.advise.call_log import CallKind, Calls
from sonde.advise.call_sources import read_call_log

PYTHON_PROGRAM = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    for number in range(4000):
        file.write(bytes(10000))
    os.fsync(file.fileno())
with open(sys.argv[1], "rb", buffering=0) as file:
    for number in range(4000):
        file.seek(number * 7919 % 4000 * 10000)
        file.read(10000)
"""
HDF5_PROGRAM = """
import sys, h5py, numpy
with h5py.File(sys.argv[1], "w") as file:
    data = file.create_dataset("a", (400, 1 << 14), dtype="f8", chunks=(1, 1 << 14))
    for number in range(400):
        data[number] = numpy.random.rand(1 << 14)
    for number in range(50):
        file.create_group(f"g{number}").attrs["n"] = number
with h5py.File(sys.argv[1], "r") as file:
    print(sum(float(file["a"][number].sum()) for number in range(0, 400, 3)))
"""
FORTRAN_PROGRAM = """
program records
  real(8) :: a(1250)
  integer :: i
  character(len=256) :: path
  call get_command_argument(1, path)
  call random_number(a)
  open(10, file=trim(path), access='stream', form='unformatted', status='replace')
  do i = 1, 4000
    write(10) a
  end do
  close(10)
  open(10, file=trim(path), access='direct', form='unformatted', recl=10000, status='old')
  do i = 1, 2000
    read(10, rec=mod(i*7919, 4000)+1) a
  end do
  close(10)
end program
"""
MPI_PROGRAM = """
#include <mpi.h>
#include <string.h>
int main(int argc, char** argv) {
    static char data[65536];
    int rank, number;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(data, rank + 1, sizeof data);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (number = 0; number < 400; ++number)
        MPI_File_write_at_all(file, (MPI_Offset)(number * 2 + rank) * sizeof data, data, sizeof data, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    for (number = 0; number < 400; ++number)
        MPI_File_read_at_all(file, (MPI_Offset)(number * 2 + 1 - rank) * sizeof data, data, sizeof data, MPI_BYTE,
                             MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
"""


def make_programs(folder: Path) -> dict[str, list[str]]:
    """Command lines by name; compilers that are missing leave their program out."""
    (folder / "python.py").write_text(PYTHON_PROGRAM)
    (folder / "hdf5.py").write_text(HDF5_PROGRAM)
    programs = {
        "python": [sys.executable, str(folder / "python.py")],
        "hdf5": [sys.executable, str(folder / "hdf5.py")],
    }
    for name, text, suffix, compiler in (
        ("fortran", FORTRAN_PROGRAM, ".f90", "gfortran"),
        ("mpi-io", MPI_PROGRAM, ".c", "/usr/bin/mpicc"),
    ):
        if shutil.which(compiler):
            (folder / f"{name}{suffix}").write_text(text)
            subprocess.run([compiler, "-O2", "-o", folder / name, folder / f"{name}{suffix}"], check=True)
            programs[name] = [str(folder / name)]
    if "mpi-io" in programs:
        launcher = ["/usr/bin/mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        programs["mpi-io"] = [*launcher, *programs["mpi-io"]]
    return programs


def run_sonde(arguments: Sequence[str]) -> str:
    """Standard output of one command."""
    command = [sys.executable, "-m", "sonde", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Pair:
    """A program and its replay: the calls of both in the same order, and what the replay says."""

    original: Calls
    replayed: Calls
    document: dict[str, Any]

    @property
    def ratio(self) -> float:
        return float(self.replayed["seconds"].sum() / self.original["seconds"].sum())


def read_calls(traces: Path, data: Path, count: int | None = None) -> Calls:
    """Reads, writes and fsyncs below `data`; of each kind the last ones, so that prepared files do not count. Calls of
    several tasks are in the order of their bytes, because tasks have no common order."""
    calls = np.concatenate(read_call_log(traces, str(data)).tasks)
    calls = calls[np.isin(calls["kind"], (CallKind.READ, CallKind.WRITE, CallKind.FSYNC))]
    calls = calls[np.argsort(calls["begin"], kind="stable")]
    calls = calls if count is None else calls[calls.size - count :]
    return calls[np.lexsort((calls["length"], calls["offset"], calls["kind"]))]


def measure_pair(program: Sequence[str], folder: Path, name: str) -> Pair:
    """Traces the program, then its replay."""
    traces, again, data = folder / f"{name}-original", folder / f"{name}-replay", folder / "data"
    data.mkdir(exist_ok=True)
    run_sonde(["trace", "-o", str(traces), "--events", "1000000", "--", *program, str(data / "out")])
    replay = [sys.executable, "-m", "sonde", "replay", str(traces), "--on", str(data), "--below", str(data),
              "--archive", str(folder / "archive"), "--json"]  # fmt: skip
    text = run_sonde(["trace", "-o", str(again), "--events", "1000000", "--", *replay])
    original = read_calls(traces, data)
    (data / "out").unlink()
    return Pair(original, read_calls(again, data, original.size), json.loads(text))


def format_row(program: str, pairs: Sequence[Pair]) -> str:
    """One row of the table."""
    rows = [row for row in pairs[0].document["kinds"] if row["kind"] in ("read", "write")]
    exact = "exact" if all(pair.document["is_exact"] for pair in pairs) else "not exact"
    medians = [np.median([getattr(pair, side)["seconds"] for pair in pairs], axis=0).sum()
               for side in ("original", "replayed")]  # fmt: skip
    ratios = sorted(pair.ratio for pair in pairs)
    return (
        f"| {program} | {pairs[0].document['tasks']} | {sum(row['calls'] for row in rows):,}"
        f" | {sum(row['bytes'] for row in rows):,} | {exact} | {medians[1] / medians[0]:.2f}"
        f" | {ratios[0]:.2f}, {statistics.median(ratios):.2f}, {ratios[-1]:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", required=True, type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.on.resolve()) as name:
        folder = Path(name)
        print("| program | tasks | reads and writes | bytes | calls and bytes | ratio, call by call | ratio of sums |")
        print("|---|---|---|---|---|---|---|")
        for program, command in make_programs(folder).items():
            if not options.only or program in options.only:
                pairs = [measure_pair(command, folder, f"{program}-{number}") for number in range(options.pairs)]
                print(format_row(program, pairs), flush=True)


if __name__ == "__main__":
    main()
