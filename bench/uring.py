#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options of io_uring on a raw block device, beside fio with the same options.

The device is a loop device over a file in --dir, by default in memory, where the device costs least. Each round lets
both rewrite and read it in random order, 4 KiB each, with direct I/O and 32 operations in flight; fio draws its order
without repetition, as the plan does. See `--help` of bench/hdf5.py for what is printed: "of N ns" is fio's time of an
operation. Polled completions (iopoll) are left out where the device has no queues for them, which no loop device has;
--device names another device, whose content is destroyed. Do not raise its priority as other benches allow: a
polling thread would take the processors from the loop device. Needs root, fio and losetup, and a build: cmake --preset
dev && cmake --build --preset dev.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from beside.library_loop import Figures, compare, make_parser, make_phases, run_engine
from beside.places import open_new_folder
from overhead.cells import KIB, MIB
from overhead.contestants import Turn, run_command

SIZE = 256 * MIB
TRANSFER = 4 * KIB
DEPTH = 32


@dataclass(frozen=True)
class Options:
    """Options of io_uring, by the engine's names."""

    name: str
    registered: bool = True
    sqpoll: bool = False
    iopoll: bool = False

    def plan(self, device: Path, seconds: float) -> dict[str, Any]:
        flags = {"registered": self.registered, "sqpoll": self.sqpoll, "iopoll": self.iopoll}
        return {
            "target": {"path": str(device), "device": True},
            "data": {
                "backend": "io_uring",
                "files": {"mapping": "shared"},
                "access": {"transfer": TRANSFER, "block": SIZE, "segments": 1, "order": "random_permute"},
                "io": {"direct": True, "queue_depth": DEPTH, **flags},
            },
            "phases": make_phases(seconds, rewrite="rewrite"),
        }

    def make_fio_arguments(self, device: Path, kind: str, seconds: float) -> dict[str, object]:
        return {
            "name": self.name, "filename": device, "rw": kind, "bs": TRANSFER, "size": SIZE, "direct": 1,
            "ioengine": "io_uring", "iodepth": DEPTH, "time_based": 1, "runtime": f"{round(seconds * 1000)}ms",
            "fixedbufs": int(self.registered), "registerfiles": int(self.registered),
            "sqthread_poll": int(self.sqpoll), "hipri": int(self.iopoll), "output-format": "json",
        }  # fmt: skip


OPTION_CELLS = (
    Options("unregistered", registered=False),
    Options("registered"),
    Options("sqpoll", sqpoll=True),
    Options("iopoll", iopoll=True),
    Options("sqpoll_iopoll", sqpoll=True, iopoll=True),
)


def run_fio(program: str, options: Options, device: Path, folder: Path, seconds: float) -> dict[str, Turn]:
    """What fio gave, by the names of our phases."""
    turns = {}
    for phase, kind, direction in (("rewrite", "randwrite", "write"), ("read", "randread", "read")):
        arguments = options.make_fio_arguments(device, kind, seconds)
        text = run_command([program, *(f"--{name}={value}" for name, value in arguments.items())], folder)
        job = json.loads(text[text.index("{") :])["jobs"][0]
        busy = (float(job["usr_cpu"]) + float(job["sys_cpu"])) / 100
        rate = float(job[direction]["iops"])
        turns[phase] = Turn(rate, busy / rate * 1e9)
    return turns


@contextlib.contextmanager
def open_loop_device(folder: Path) -> Iterator[Path]:
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(SIZE)
    setup = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=off", str(image)], capture_output=True, text=True, check=False
    )
    if setup.returncode != 0:
        raise SystemExit(f"bench/uring.py: no loop device can be made: {setup.stderr.strip()}.")
    device = setup.stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def has_poll_queues(device: Path) -> bool:
    return Path(f"/sys/class/block/{device.name}/queue/io_poll").read_text(encoding="ascii").strip() == "1"


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="of the image (default: %(default)s)")
    parser.add_argument("--device", type=Path, help="use this device, whose content is destroyed")
    arguments = parser.parse_args()
    fio = shutil.which("fio")
    if fio is None:
        raise SystemExit("bench/uring.py: fio is not on PATH: install fio.")
    figures = Figures(arguments.json)
    with open_new_folder(arguments.dir) as folder, contextlib.ExitStack() as devices:
        device = arguments.device or devices.enter_context(open_loop_device(folder))
        allowed = ("--allow-device", str(device), *(["--destroy"] if arguments.device else []))
        for options in OPTION_CELLS:
            if arguments.only not in (None, options.name):
                continue
            if options.iopoll and not has_poll_queues(device):
                print(f"{options.name}: left out: {device} has no queues that can be polled", file=sys.stderr)
                continue
            plan = options.plan(device, arguments.seconds)
            ratios = compare(
                partial(run_engine, arguments.engine.resolve(), plan, folder, {}, allowed),
                partial(run_fio, fio, options, device, folder, arguments.seconds),
                arguments.rounds,
            )
            figures.add(options.name, ratios)
    return figures.finish(arguments.check)


if __name__ == "__main__":
    sys.exit(main())
