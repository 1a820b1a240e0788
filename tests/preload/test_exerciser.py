# SPDX-License-Identifier: Apache-2.0
"""One file, changed and seen in every way, always holds what it must: long lists of steps, by a program of ours and by
fsx of crates.io, where that is installed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]

# Pages from less than a record to more than the file; with threads and without.
PARAMS = {
    "tiny": "*:size=512:count=3:alone",
    "ahead": "*:size=4k:count=4:prefetch=2:alone",
    "many": "*:size=1k:count=64:prefetch=4:alone",
    "direct": "*:size=16k:count=4:prefetch=2:direct:alone",
    "no threads": "*:size=8k:count=8:alone,%process:threads=0",
    "large": "*:size=1M:count=4:alone",
    "usual": "*",
    "alone": "*:alone",
    "auto": "*:auto:alone",
}
# Mapped files are let go until they are closed, so most lists are without maps.
SHAPES = {"small": ("65536", "3000"), "large": ("1048576", "9000"), "mapped": ("262144", "65536", "maps")}


def calls_of(lines: Path) -> int:
    """Reads and writes that the buffer has seen."""
    lines_read = [
        json.loads(line) for file in lines.iterdir() for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return sum(line["read"]["calls"] + line["write"]["calls"] for line in lines_read if line["type"] == "buffer")


@pytest.mark.parametrize("operation_mix", SHAPES)
@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())
def test_exerciser_reads_back_all_writes_when_buffered(
    preload: Preload, compile_program: Program, memory_folder: Path, params: str, operation_mix: str
) -> None:
    lines = memory_folder / "lines"
    lines.mkdir()
    for seed in (1, 2, 3):
        command: list[str | Path] = [
            compile_program("exerciser"),
            memory_folder / "file",
            str(seed),
            "4000",
            *SHAPES[operation_mix],
        ]
        done = preload.run(command, memory_folder, IOBUF_PARAMS=params, SONDE_IOBUF_LINES=str(lines))
        assert (done.returncode, done.stdout) == (0, "4000 steps\n"), done.stderr
    least = 0 if "auto" in params else 1000 if operation_mix == "mapped" else 5000  # what is chosen may be: nothing
    assert calls_of(lines) > least


def test_exerciser_reads_back_all_writes_on_a_disk(preload: Preload, compile_program: Program, tmp_path: Path) -> None:
    command: list[str | Path] = [compile_program("exerciser"), tmp_path / "file", "7", "1500", *SHAPES["large"]]
    done = preload.run(command, tmp_path, IOBUF_PARAMS=PARAMS["direct"])
    assert (done.returncode, done.stdout) == (0, "1500 steps\n"), done.stderr


def test_exerciser_detects_a_wrong_byte(compile_program: Program, preload: Preload, tmp_path: Path) -> None:
    """A library between them changes one byte after every 50th write."""
    source = tmp_path / "liar.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <unistd.h>\n"
        "ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {\n"
        "    static int calls;\n"
        '    ssize_t (*next)(int, const void*, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");\n'
        "    const ssize_t got = next(fd, data, bytes, at);\n"
        '    if (++calls % 50 == 0) next(fd, "?", 1, at + (off_t)bytes / 2);\n'
        "    return got;\n}\n",
        encoding="ascii",
    )
    library = tmp_path / "liar.so"
    compiler = shutil.which("cc") or "cc"
    preload.run([compiler, "-shared", "-fPIC", "-o", library, source], tmp_path, IOBUF_PARAMS="*:off")
    command: list[str | Path] = [compile_program("exerciser"), tmp_path / "file", "1", "4000", *SHAPES["small"]]
    done = preload.run(command, tmp_path, LD_PRELOAD=str(library))
    assert done.returncode == 1
    assert "instead of" in done.stderr


FSX = """
flen = {flen}
[opsize]
min = 1
max = {largest}
[weights]
close_open = 2
read = 20
write = 20
mapread = {maps}
mapwrite = {maps}
invalidate = {maps}
truncate = 6
fsync = 0.5
fdatasync = 0.5
posix_fallocate = 2
punch_hole = 2
sendfile = 2
posix_fadvise = 2
copy_file_range = 2
"""


@pytest.mark.parametrize("map_count", [0, 2], ids=["calls", "maps"])
@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())
def test_fsx_finds_no_error_when_buffered(
    preload: Preload, memory_folder: Path, fsx: str, params: str, map_count: int
) -> None:
    settings = memory_folder / "fsx.toml"
    settings.write_text(FSX.format(flen=262144, largest=9000, maps=map_count), encoding="ascii")
    for seed in ("1", "2"):
        command = [fsx, "-q", "-N", "5000", "-S", seed, "-f", settings, "-P", memory_folder, memory_folder / "file"]
        done = preload.run(command, memory_folder, IOBUF_PARAMS=params)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
