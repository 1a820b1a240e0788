# SPDX-License-Identifier: Apache-2.0
"""Where a tool works: a new folder, or a new file system of its own that is gone afterwards.

Creating files after many have been removed is slow on ext4 for a while (it looks for free inodes near by), so in one
file system each tool pays for what the one before it did, or does not. A file system for each turn has no past.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from overhead.contestants import RunError


def run_command(*arguments: str) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"{' '.join(arguments)} failed: {done.stderr.strip()}")


@contextlib.contextmanager
def open_new_folder(base: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir=base) as folder:
        yield Path(folder)


@contextlib.contextmanager
def open_new_file_system(base: Path, kind: str, size: int) -> Iterator[Path]:
    """mkfs.`kind` on a loop device over a sparse file of `size` bytes in `base`, mounted. Needs root."""
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as point, tempfile.NamedTemporaryFile(dir=base) as image:
        image.truncate(size)
        run_command(f"mkfs.{kind}", "-q", image.name)
        run_command("mount", "-o", "loop", image.name, point)
        try:
            yield Path(point)
        finally:
            run_command("umount", point)
