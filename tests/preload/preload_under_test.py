# SPDX-License-Identifier: Apache-2.0
"""Runs programs with and without the preload library.

Also on another machine or libc than this one: $SONDE_TEST_CC and $SONDE_TEST_CXX compile for it and $SONDE_TEST_RUNNER
runs the result, for example an emulator ("qemu-aarch64-static -L /usr/aarch64-linux-gnu") or the loader of an older
glibc.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "libsonde-preload.so"
LIMIT_S = 300  # only there so that a hang fails instead of hanging the tests
RUNNER = os.environ.get("SONDE_TEST_RUNNER", "").split()
OURS = (
    "LD_PRELOAD",
    "IOBUF_PARAMS",
    "IOBUF_VERBOSE",
    "SONDE_IOBUF_FILE",
    "SONDE_IOBUF_LINES",
    "SONDE_TRACE",
    "SONDE_IOBUF",
    "SONDE_IOBUF_SUMMARY",
)


def find_library() -> Path | None:
    """$SONDE_PRELOAD, else the newest library in build/*/preload."""
    library_path = os.environ.get("SONDE_PRELOAD")
    if library_path:
        return Path(library_path)
    built = list(ROOT.glob(f"build/*/preload/{NAME}"))
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


@dataclass(frozen=True)
class Outcome:
    """Observable result of one run: it must be equal with and without the library."""

    code: int
    out: str
    files: dict[str, bytes]


@dataclass(frozen=True)
class Preload:
    """The library under test."""

    library: Path

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment of this process with the library preloaded."""
        plain = {name: value for name, value in os.environ.items() if name not in OURS}
        return {**plain, "LD_PRELOAD": str(self.library), **variables}

    def run(self, command: Sequence[str | Path], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """One run under the library; what it prints is text."""
        return subprocess.run(
            [*RUNNER, *(str(word) for word in command)],
            cwd=cwd,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )

    def outcome(self, command: Sequence[str | Path], cwd: Path, **variables: str) -> Outcome:
        """The same in a new folder, with all that it leaves there. Without `variables`: without the library."""
        cwd.mkdir()
        if variables:
            done = self.run(command, cwd, **variables)
        else:
            plain = {name: value for name, value in os.environ.items() if name not in OURS}
            done = subprocess.run(
                [*RUNNER, *(str(word) for word in command)],
                cwd=cwd,
                env=plain,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        files = {path.relative_to(cwd).as_posix(): path.read_bytes() for path in cwd.rglob("*") if path.is_file()}
        return Outcome(done.returncode, done.stdout, files)


Plain = Callable[[Sequence[str | Path], Path], Outcome]  # the fixture `run_bare`
