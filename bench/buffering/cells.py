# SPDX-License-Identifier: Apache-2.0
"""What is measured: programs, files, and the settings that they are compared under."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from buffering.programs import HERE, MissingProgramError, Workshop

Command = Sequence[str | Path]
#: As job scripts of the Cray X1 had it: assign -F cachea:4096:8:8, with blocks of 512 bytes, and with -B on.
FFIO = "*:size=2M:count=8:prefetch=8"
USUAL_SETTINGS = {"as is": None, "auto": "*:auto", "named": "*", "direct": "*:size=4M:direct"}
AS_FFIO = {"as is": None, "auto": "*:auto", "named": FFIO, "direct": f"{FFIO}:direct"}
STDIO_SETTINGS = {"as is": None, "named": "*", "stdio": "*:stdio=alone"}
SETTINGS_WITHOUT_DIRECT = {"as is": None, "auto": "*:auto", "named": "*"}
AUTO_SETTINGS = {"as is": None, "auto": "*:auto"}
SETTINGS_WITHOUT_GAIN = {"as is": None, "no setting": "", "auto": "*:auto"}

VOLUME_BYTES = 256_000_000
LARGE_CALL_BYTES = 128_000  #: bytes; larger ones gain nothing, and fall out of the processor's cache
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
    ways: Mapping[str, str | None] = field(default_factory=lambda: USUAL_SETTINGS)
    least: float = 0.0  #: times faster than as is, promised for the ways `by`
    by: tuple[str, ...] = ("named",)
    bound: Callable[[Workshop, Path], Command] | None = None  #: the same bytes in large calls: no buffer is quicker


def make_loop_command(mode: str, record: int, records: int) -> Callable[[Workshop, Path], Command]:
    return lambda workshop, file: (workshop.c("loops"), mode, file, str(record), str(records))


def make_fortran_command(program: str, *arguments: int) -> Callable[[Workshop, Path], Command]:
    return lambda workshop, file: (workshop.fortran(program), file, *(str(word) for word in arguments))


def make_netcdf_command(program: str, steps: int) -> Callable[[Workshop, Path], Command]:
    def command(_: Workshop, file: Path) -> Command:
        tried = subprocess.run([sys.executable, "-c", "import netCDF4"], capture_output=True, check=False)
        if tried.returncode != 0:
            raise MissingProgramError(f"the package netCDF4 is not installed for {sys.executable}")
        return (sys.executable, HERE / "netcdf3.py", program, file, str(steps))

    return command


def make_sequential_cell(mode: str, size: int) -> Cell:
    prepare = make_loop_command("write", size, VOLUME_BYTES // size) if mode == "read" else None
    return Cell(
        f"{mode}.{size}",
        make_loop_command(mode, size, VOLUME_BYTES // size),
        prepare,
        bound=make_loop_command(mode, LARGE_CALL_BYTES, VOLUME_BYTES // LARGE_CALL_BYTES)
        if size < LARGE_CALL_BYTES
        else None,
    )


def make_netcdf_cells(steps: int) -> tuple[Cell, ...]:
    write, read = make_netcdf_command("write", steps), make_netcdf_command("read", steps)
    return Cell("netcdf3.write", write, None, SETTINGS_WITHOUT_DIRECT), Cell(
        "netcdf3.read", read, write, SETTINGS_WITHOUT_DIRECT
    )


_records = VOLUME_BYTES // BACKWARD_BYTES
FILE_CELLS = (
    *(make_sequential_cell(mode, size) for mode in ("write", "read") for size in SIZES),
    Cell("fortran.write", make_fortran_command("records", FORTRAN_THOUSANDS), None, AS_FFIO),
    Cell(
        "fortran.backward",
        make_fortran_command("backward", BACKWARD_BYTES, _records),
        make_fortran_command("forward", BACKWARD_BYTES, _records),
    ),
    *make_netcdf_cells(NETCDF_STEPS),
)
LARGE = {"as is": None, "auto": "*:auto", "named": "*", "large": "*:count=2:size=32m"}
#: A code that reads its 50 MB in kilobytes, as QLUA did on Edison through two buffers of 32 MB, and others beside it.
BUFFER_CELLS = tuple(
    Cell(
        f"read.{size}.of.{volume}",
        make_loop_command("read", size, volume // size),
        make_loop_command("write", 100_000, volume // 100_000),
        LARGE,
        0.97,
        ("large",),
        make_loop_command("read", LARGE_CALL_BYTES, volume // LARGE_CALL_BYTES),
    )
    for volume, size in ((50_000_000, 1_000), (50_000_000, 10_000), (32_000_000, 1_000), (200_000_000, 1_000))
)
#: Nothing to gain: the buffer must notice, and cost nothing. On a file in memory, where a call is cheapest.
SCATTERED_CELLS = tuple(
    Cell(
        f"{mode}.4096",
        make_loop_command(mode, 4_096, 500_000),
        make_loop_command("write", 4_096, VOLUME_BYTES // 4_096),
        AUTO_SETTINGS,
        0.97,
        ("auto",),
    )
    for mode in ("random", "random_write")
)
#: Where each call costs a fifth of a millisecond.
EXPENSIVE_CALL_CELLS = (
    Cell("write.1000", make_loop_command("write", 1_000, 3_000), None, SETTINGS_WITHOUT_DIRECT, 50.0),
    Cell(
        "read.1000",
        make_loop_command("read", 1_000, 3_000),
        make_loop_command("write", 1_000, 3_000),
        SETTINGS_WITHOUT_DIRECT,
        50.0,
    ),
    Cell(
        "backward.1000",
        make_loop_command("backward", 1_000, 3_000),
        make_loop_command("write", 1_000, 3_000),
        SETTINGS_WITHOUT_DIRECT,
        20.0,
    ),
    Cell("write.10000", make_loop_command("write", 10_000, 3_000), None, SETTINGS_WITHOUT_DIRECT),
    Cell(
        "read.10000",
        make_loop_command("read", 10_000, 3_000),
        make_loop_command("write", 10_000, 3_000),
        SETTINGS_WITHOUT_DIRECT,
    ),
    Cell(
        "fortran.backward",
        make_fortran_command("backward", 8_000, 1_000),
        make_fortran_command("forward", 8_000, 1_000),
        SETTINGS_WITHOUT_DIRECT,
    ),
    Cell(
        "random.4096",
        make_loop_command("random", 4_096, 3_000),
        make_loop_command("write", 4_096, 20_000),
        AUTO_SETTINGS,
        0.97,
        ("auto",),
    ),
    Cell("fwrite.1000", make_loop_command("fwrite", 1_000, 30_000), None, STDIO_SETTINGS, 10.0, ("stdio",)),
    Cell(
        "fread.1000",
        make_loop_command("fread", 1_000, 30_000),
        make_loop_command("write", 1_000, 30_000),
        STDIO_SETTINGS,
        10.0,
        ("stdio",),
    ),
    *make_netcdf_cells(100),
)
MAX_COST_RATIO = 1.05  #: times the bare run, where there is nothing to gain
BOTH = ("no setting", "auto")


def make_few_calls_command(mode: str, files: int, calls: int, rounds: int) -> Callable[[Workshop, Path], Command]:
    return lambda workshop, file: (workshop.c("few_calls"), mode, file, str(files), str(calls), str(rounds))


def make_few_calls_cells(rounds: int) -> tuple[Cell, ...]:
    """Forty files, each opened `rounds` times for 5 to 30 small calls."""
    modes = [("read", calls) for calls in (5, 17, 20, 30)] + [("read_access", 5)]
    modes += [("write", calls) for calls in (5, 17, 20)]
    return tuple(
        Cell(
            f"{mode}.{calls}",
            make_few_calls_command(mode, 40, calls, rounds),
            make_few_calls_command("fill", 40, calls, 1),
            SETTINGS_WITHOUT_GAIN,
            1 / MAX_COST_RATIO,
            BOTH,
        )
        for mode, calls in modes
    )


def make_random_read_cell(calls: int) -> Cell:
    """Scattered reads of 100 bytes of a file of 4 MB."""
    prepare = make_few_calls_command("fill", 1, 40_000, 1)
    return Cell(
        "random.100",
        make_few_calls_command("random", 1, calls, 1),
        prepare,
        SETTINGS_WITHOUT_GAIN,
        1 / MAX_COST_RATIO,
        BOTH,
    )


MANY_FILES = Cell(
    "write.10000_files",
    make_few_calls_command("write", 10_000, 3, 1),
    make_few_calls_command("fill", 10_000, 3, 1),
    SETTINGS_WITHOUT_GAIN,
    1 / MAX_COST_RATIO,
    BOTH,
)
