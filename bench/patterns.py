#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random access by distribution, in mixed sizes and in both directions: Sonde beside fio, the same job in turn.

Each round runs every job once with each tool on one file that both read, for --seconds. Prints the median of the ratios
Sonde / fio of operations per second over the rounds, with the least and the largest. A file in memory (/dev/shm) shows
the cost of the tools, because storage costs least there. Needs fio on PATH. Build first: cmake --preset dev && cmake
--build --preset dev.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from beside.places import open_new_folder
from beside.tools import read_phase_end_lines
from overhead.contestants import run_command

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"4KiB": 60, "16KiB": 30, "64KiB": 10}

# Name: members of `access`, and the same as options of fio.
JOBS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "uniform": ({}, {"random_distribution": "random"}),
    "zipf": ({"distribution": {"kind": "zipf", "theta": 1.2}}, {"random_distribution": "zipf:1.2"}),
    "pareto": ({"distribution": {"kind": "pareto", "share": 0.2}}, {"random_distribution": "pareto:0.2"}),
    "normal": ({"distribution": {"kind": "normal", "deviation": 0.1}}, {"random_distribution": "normal:10"}),
    "sizes": (
        {"transfer": "64KiB", "block": "64KiB", "sizes": [{"size": s, "percent": p} for s, p in SIZES.items()]},
        {"bssplit": ":".join(f"{size.removesuffix('iB').lower()}/{percent}" for size, percent in SIZES.items())},
    ),
    "mixed": ({"read_ratio": 0.7}, {"rw": "randrw", "rwmixread": "70"}),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where the file is (default: %(default)s)")
    parser.add_argument("--engine", type=Path, default=ROOT / "build/dev/engine/sonde-engine", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each job (default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="MiB of the file (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    return parser.parse_args()


def run_sonde(engine: Path, access: dict[str, Any], folder: Path, size: int, seconds: float) -> float:
    """Operations per second of a plan that fills a file and then runs the job."""
    volume = {"transfer": "4KiB", "block": "4KiB", "volume": f"{size}MiB", "order": "random_replace"}
    op = "mixed" if "read_ratio" in access else "read"
    job = {"id": "job", "op": op, "access": {**volume, **access}, "stop": {"time": f"{seconds}s"}}
    fill = {"transfer": "1MiB", "block": "1MiB", "volume": f"{size}MiB"}
    plan = {
        "schema": "sonde-plan/2",
        "id": "patterns",
        "target": {"path": str(folder), "min_free": 0},
        "data": {"access": fill},
        "phases": [{"id": "fill", "op": "write"}, job],
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    record = folder / "record.ndjson"
    record.unlink(missing_ok=True)
    run_command([str(engine), "run", str(folder / "plan.json"), "--record", str(record)], folder)
    return float(read_phase_end_lines(record)[-1]["rates"]["transfer"]["ops_per_s"])


def run_fio(program: str, options: dict[str, str], folder: Path, size: int, seconds: float) -> float:
    """Operations per second of the same job; fio fills its file before the job."""
    job = {"name": "job", "filename": folder / "fio", "size": f"{size}m", "bs": "4k", "ioengine": "psync"}
    job |= {"rw": "randread", "norandommap": 1, "time_based": 1, "runtime": seconds, "invalidate": 0, **options}
    text = run_command([program, *(f"--{name}={value}" for name, value in job.items()), "--output-format=json"], folder)
    result = json.loads(text[text.index("{") :])["jobs"][0]
    return float(result["read"]["iops"] + result["write"]["iops"])


def main() -> None:
    options = parse_arguments()
    fio = shutil.which("fio")
    if fio is None:
        raise SystemExit("fio is not on PATH: install it, or add its folder to PATH")
    ratios: dict[str, list[float]] = {name: [] for name in JOBS}
    for number in range(options.rounds):
        for name, (access, fio_options) in JOBS.items():
            with open_new_folder(options.dir) as folder:
                tools = [
                    partial(run_sonde, options.engine.resolve(), access, folder, options.size, options.seconds),
                    partial(run_fio, fio, fio_options, folder, options.size, options.seconds),
                ]
                rates = [tool() for tool in (tools if number % 2 == 0 else tools[::-1])]
                sonde, peer = rates if number % 2 == 0 else rates[::-1]
                ratios[name].append(sonde / peer)
    figures = {
        name: {"ratio": statistics.median(values), "least": min(values), "largest": max(values)}
        for name, values in ratios.items()
    }
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name:8} {figure['ratio']:.2f} ({figure['least']:.2f} to {figure['largest']:.2f})")


if __name__ == "__main__":
    main()
