#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What memory one rank or one thread takes: proportional set size and peak, beside a program that only starts MPI.

    python bench/memory.py [--ranks 64] [--mpiexec PROGRAM] [--mpicc COMPILER] [--ior PROGRAM] [--build build/dev]

Three phases with buffers for writing, reading and checking; looked at in the pause before the last, and IOR in its
pause between two repetitions. Proportional: what ranks share counts once. Private: what this rank alone has.
Anonymous: what no file backs, the heap and buffers of it. The peak is the largest resident set, which counts shared
pages in every rank. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from overhead.contestants import ROOT_MPI
from overhead.scale import find_launcher

ROOT = Path(__file__).resolve().parent.parent
LAUNCHERS = ("mpi", "hydra", "orte", "prte")
ONLY_MPI = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** words) {
    int provided = 0, rank = 0;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { FILE* file = fopen(words[1], "w"); fputs("phase_end phase_end", file); fclose(file); }
    pause();
}
"""


def make_plan(folder: Path, threads: int) -> dict[str, object]:
    return {
        "schema": "sonde-plan/2", "id": "memory", "target": {"path": str(folder), "min_free": 0},
        "tasks": {"threads": threads},
        "data": {"access": {"transfer": "4KiB", "block": "32KiB", "segments": 2}, "verify": "on_read"},
        "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"},
                   {"id": "again", "op": "reread", "before": [{"kind": "sleep", "time": "300s"}]}],
        "observe": {"progress": 0},
    }  # fmt: skip


def find_memory_member(text: str, name: str) -> int:
    """KiB of one line of smaps_rollup or status."""
    match = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else 0


def read_process_sizes(word: str) -> list[tuple[int, int, int, int]]:
    """(proportional, private, anonymous, peak) in KiB of all processes that have a word in their command line, without
    the launchers.
    """
    rows = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
            if word.encode() in arguments and not Path(os.fsdecode(arguments[0])).name.startswith(LAUNCHERS):
                rollup, status = (process / "smaps_rollup").read_text(), (process / "status").read_text()
                private = find_memory_member(rollup, "Private_Clean") + find_memory_member(rollup, "Private_Dirty")
                rows.append(
                    (
                        find_memory_member(rollup, "Pss"),
                        private,
                        find_memory_member(rollup, "Anonymous"),
                        find_memory_member(status, "VmHWM"),
                    )
                )
        except OSError:
            continue
    return rows


def measure_memory(
    command: Sequence[str], record: Path, count: int, pause: tuple[str, int] = ("phase_end", 2), word: str = ""
) -> dict[str, float]:
    """Starts it, waits for the pause, looks, ends it. It pauses when its record, or its output in a file of that name,
    has a word so many times.
    """
    word = word or str(record)
    environment = {**os.environ, **ROOT_MPI}
    with (
        record.with_suffix(".out").open("w") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment) as running,
    ):
        try:
            limit = time.monotonic() + 120
            while not record.exists() or record.read_text().count(pause[0]) < pause[1]:
                if running.poll() is not None or time.monotonic() > limit:
                    sys.exit(f"{command[0]} did not come to its pause")
                time.sleep(0.2)
            rows = read_process_sizes(word)
        finally:
            running.terminate()
    proportional, private, anonymous, peaks = zip(*rows, strict=True)
    return {"processes": len(rows), "proportional_kib_a_task": round(sum(proportional) / count, 1),
            "private_kib_a_process": statistics.median(private),
            "anonymous_kib_a_process": statistics.median(anonymous),
            "peak_mib_a_process": round(statistics.median(peaks) / 1024, 2)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1024)
    parser.add_argument("--mpiexec", default=str(Path(sys.prefix) / "bin" / "mpiexec"))
    parser.add_argument("--mpicc", default=str(Path(sys.prefix) / "bin" / "mpicc_abi"))
    parser.add_argument("--ior", help="an IOR of that MPI, measured beside")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    options = parser.parse_args()
    engine = str(options.build / "engine" / "sonde-engine")
    mpi = find_launcher(options.mpiexec)
    ranks = [options.mpiexec, *(mpi.options if mpi else ()), "-n", str(options.ranks)]
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(label: str, before: Sequence[str], threads: int, count: int, *more: str) -> None:
            (folder / label).mkdir()
            (folder / f"{label}.json").write_text(json.dumps(make_plan(folder / label, threads)))
            record = folder / f"{label}.ndjson"
            arguments = [engine, "run", str(folder / f"{label}.json"), "--record", str(record), *more]
            figures[label] = measure_memory([*before, *arguments], record, count)

        run("threads", [], options.threads, options.threads)
        if shutil.which(options.mpiexec):
            run("ranks_of_one_node", ranks, 1, options.ranks)
            run("ranks_by_mpi", ranks, 1, options.ranks, "--launch", "mpi")
            if shutil.which(options.mpicc):
                (folder / "only.c").write_text(ONLY_MPI)
                program, record = folder / "only", folder / "only.ndjson"
                subprocess.run([options.mpicc, str(folder / "only.c"), "-o", str(program)], check=True)
                figures["only_mpi"] = measure_memory([*ranks, str(program), str(record)], record, options.ranks)
            if options.ior:
                arguments = ["-a", "POSIX", "-F", "-t", "4k", "-b", "32k", "-s", "2", "-w", "-r", "-i", "2", "-d", "10"]
                data, output = folder / "ior", folder / "ior.out"  # it pauses before each writing and reading
                command = [*ranks, options.ior, *arguments, "-o", str(data)]
                figures["ior"] = measure_memory(command, output, options.ranks, ("\nread ", 1), str(data))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
