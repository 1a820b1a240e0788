# SPDX-License-Identifier: Apache-2.0
"""Every byte on a mounted machine is the one that was written: fsx of crates.io changes a file in every way and looks
at it, while the kernel caches nothing and while it keeps pages."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# Operations by weight. Files can only be mapped where the kernel keeps pages.
SETTINGS = """
flen = 262144
[opsize]
min = 1
max = 65536
[weights]
close_open = 1
read = 20
write = 20
mapread = {maps}
mapwrite = {maps}
invalidate = {maps}
truncate = 5
fsync = 0.5
fdatasync = 0.5
posix_fallocate = 2
punch_hole = 3
sendfile = 2
posix_fadvise = 1
copy_file_range = 3
"""
NIGHTLY = 1_000_000


@pytest.mark.parametrize("operations", [500, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("maps", "options"),
    [(0, ("--no-cost",)), (2, ("--no-cost", "--kernel-cache")), (0, ("--speed", "1000"))],
    ids=["no cache", "pages of the kernel", "in the machine's time"],
)
def test_fsx_finds_no_wrong_byte(
    mount_model: Callable[..., Path], fsx: str, tmp_path: Path, maps: int, options: tuple[str, ...], operations: int
) -> None:
    directory = mount_model(*options)
    settings = tmp_path / "fsx.toml"
    settings.write_text(SETTINGS.format(maps=maps), encoding="ascii")
    command: list[str | Path] = [
        fsx,
        "-q",
        "-N",
        str(operations),
        "-S",
        "14",
        "-f",
        settings,
        "-P",
        tmp_path,
        directory / "file",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (directory / "file").read_bytes() == (tmp_path / "store" / "file").read_bytes()
