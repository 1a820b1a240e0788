# SPDX-License-Identifier: Apache-2.0
"""What is measured: programs, files, and the settings that they are compared under."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from buffering.programs import HERE, NotHereError, Workshop

Command = Sequence[str | Path]
#: As job scripts of the Cray X1 had it: assign -F cachea:4096:8:8, with blocks of 512 bytes, and with -B on.
FFIO = "*:size=2M:count=8:prefetch=8"
USUAL = {"as is": None, "auto": "*:auto", "named": "*", "direct": "*:size=4M:direct"}
AS_FFIO = {"as is": None, "auto": "*:auto", "named": FFIO, "direct": f"{FFIO}:direct"}
STDIO = {"as is": None, "named": "*", "stdio": "*:stdio=alone"}
NO_DIRECT = {"as is": None, "auto": "*:auto", "named": "*"}
ONLY_AUTO = {"as is": None, "auto": "*:auto"}
NO_GAIN = {"as is": None, "no setting": "", "auto": "*:auto"}

VOLUME = 256_000_000
LARGE_CALL = 128_000  #: bytes; larger ones gain nothing, and fall out of the processor's cache
SIZES = (1_000, 10_000, 100_000)
FORTRAN_THOUSANDS = 6  #: 240 MB of the 40 GB of the model
BACKWARD_BYTES = 8_000
NETCDF_STEPS = 3_000


@dataclass(frozen=True)
class Cell:
    """One program on one file. `prepare` makes the file that it reads. `ways` are settings by name: "" is the library
    without a setting, None no library.
    """

    name: str
    command: Callable[[Workshop, Path], Command]
    prepare: Callable[[Workshop, Path], Command] | None = None
    ways: Mapping[str, str | None] = field(default_factory=lambda: USUAL)
    least: float = 0.0  #: times faster than as is, promised for the ways `by`
    by: tuple[str, ...] = ("named",)
    bound: Callable[[Workshop, Path], Command] | None = None  #: the same bytes in large calls: no buffer is quicker


def loops(mode: str, record: int, records: int) -> Callable[[Workshop, Path], Command]:
    return lambda workshop, file: (workshop.c("loops"), mode, file, str(record), str(records))


def fortran(program: str, *arguments: int) -> Callable[[Workshop, Path], Command]:
    return lambda workshop, file: (workshop.fortran(program), file, *(str(word) for word in arguments))


def netcdf(program: str, steps: int) -> Callable[[Workshop, Path], Command]:
    def command(_: Workshop, file: Path) -> Command:
        tried = subprocess.run([sys.executable, "-c", "import netCDF4"], capture_output=True, check=False)
        if tried.returncode != 0:
            raise NotHereError(f"the package netCDF4 is not installed for {sys.executable}")
        return (sys.executable, HERE / "netcdf3.py", program, file, str(steps))

    return command


def sequential(mode: str, size: int) -> Cell:
    prepare = loops("write", size, VOLUME // size) if mode == "read" else None
    return Cell(
        f"{mode}.{size}",
        loops(mode, size, VOLUME // size),
        prepare,
        bound=loops(mode, LARGE_CALL, VOLUME // LARGE_CALL) if size < LARGE_CALL else None,
    )


def netcdf_cells(steps: int) -> tuple[Cell, ...]:
    write, read = netcdf("write", steps), netcdf("read", steps)
    return Cell("netcdf3.write", write, None, NO_DIRECT), Cell("netcdf3.read", read, write, NO_DIRECT)


_records = VOLUME // BACKWARD_BYTES
FILES = (
    *(sequential(mode, size) for mode in ("write", "read") for size in SIZES),
    Cell("fortran.write", fortran("records", FORTRAN_THOUSANDS), None, AS_FFIO),
    Cell(
        "fortran.backward",
        fortran("backward", BACKWARD_BYTES, _records),
        fortran("forward", BACKWARD_BYTES, _records),
    ),
    *netcdf_cells(NETCDF_STEPS),
)
LARGE = {"as is": None, "auto": "*:auto", "named": "*", "large": "*:count=2:size=32m"}
#: A code that reads its 50 MB in kilobytes, as QLUA did on Edison through two buffers of 32 MB, and others beside it.
BUFFERS = tuple(
    Cell(
        f"read.{size}.of.{volume}",
        loops("read", size, volume // size),
        loops("write", 100_000, volume // 100_000),
        LARGE,
        0.97,
        ("large",),
        loops("read", LARGE_CALL, volume // LARGE_CALL),
    )
    for volume, size in ((50_000_000, 1_000), (50_000_000, 10_000), (32_000_000, 1_000), (200_000_000, 1_000))
)
#: Nothing to gain: the buffer must notice, and cost nothing. On a file in memory, where a call is cheapest.
SCATTERED = tuple(
    Cell(
        f"{mode}.4096", loops(mode, 4_096, 500_000), loops("write", 4_096, VOLUME // 4_096), ONLY_AUTO, 0.97, ("auto",)
    )
    for mode in ("random", "random_write")
)
#: Where each call costs a fifth of a millisecond.
DEAR = (
    Cell("write.1000", loops("write", 1_000, 3_000), None, NO_DIRECT, 50.0),
    Cell("read.1000", loops("read", 1_000, 3_000), loops("write", 1_000, 3_000), NO_DIRECT, 50.0),
    Cell("backward.1000", loops("backward", 1_000, 3_000), loops("write", 1_000, 3_000), NO_DIRECT, 20.0),
    Cell("write.10000", loops("write", 10_000, 3_000), None, NO_DIRECT),
    Cell("read.10000", loops("read", 10_000, 3_000), loops("write", 10_000, 3_000), NO_DIRECT),
    Cell("fortran.backward", fortran("backward", 8_000, 1_000), fortran("forward", 8_000, 1_000), NO_DIRECT),
    Cell("random.4096", loops("random", 4_096, 3_000), loops("write", 4_096, 20_000), ONLY_AUTO, 0.97, ("auto",)),
    Cell("fwrite.1000", loops("fwrite", 1_000, 30_000), None, STDIO, 10.0, ("stdio",)),
    Cell("fread.1000", loops("fread", 1_000, 30_000), loops("write", 1_000, 30_000), STDIO, 10.0, ("stdio",)),
    *netcdf_cells(100),
)
MOST_COST = 1.05  #: times the bare run, where there is nothing to gain
BOTH = ("no setting", "auto")


def few_calls(mode: str, files: int, calls: int, rounds: int) -> Callable[[Workshop, Path], Command]:
    return lambda workshop, file: (workshop.c("few_calls"), mode, file, str(files), str(calls), str(rounds))


def few_calls_cells(rounds: int) -> tuple[Cell, ...]:
    """Forty files, each opened `rounds` times for 5 to 30 small calls."""
    modes = [("read", calls) for calls in (5, 17, 20, 30)] + [("read_access", 5)]
    modes += [("write", calls) for calls in (5, 17, 20)]
    return tuple(
        Cell(
            f"{mode}.{calls}",
            few_calls(mode, 40, calls, rounds),
            few_calls("fill", 40, calls, 1),
            NO_GAIN,
            1 / MOST_COST,
            BOTH,
        )
        for mode, calls in modes
    )


def random_reads(calls: int) -> Cell:
    """Scattered reads of 100 bytes of a file of 4 MB."""
    prepare = few_calls("fill", 1, 40_000, 1)
    return Cell("random.100", few_calls("random", 1, calls, 1), prepare, NO_GAIN, 1 / MOST_COST, BOTH)


MANY_FILES = Cell(
    "write.10000_files",
    few_calls("write", 10_000, 3, 1),
    few_calls("fill", 10_000, 3, 1),
    NO_GAIN,
    1 / MOST_COST,
    BOTH,
)
