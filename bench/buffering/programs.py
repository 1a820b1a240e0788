# SPDX-License-Identifier: Apache-2.0
"""The programs that are run, and what is put in front of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class MissingProgramError(Exception):
    """Something that this machine lacks; the text says what is left out."""


@dataclass(frozen=True)
class Workshop:
    """Compiles into `folder`, each program once."""

    folder: Path

    def c(self, name: str, *options: str) -> Path:
        return self._compiled(name, ["cc", "-O2", "-fno-builtin"], f"{name}.c", options)

    def fortran(self, name: str) -> Path:
        return self._compiled(name, ["gfortran", "-O2"], f"{name}.f90", ())

    def _compiled(self, name: str, compiler: list[str], source: str, options: tuple[str, ...]) -> Path:
        program = self.folder / name
        if not program.exists():
            if shutil.which(compiler[0]) is None:
                raise MissingProgramError(f"{compiler[0]} is not on PATH")
            subprocess.run([*compiler, "-o", str(program), str(HERE / source), *options], check=True)
        return program


def find_preload_library(library_path: Path | None) -> Path:
    """The library under test: the one that was named, or the newest build."""
    built = list(ROOT.glob("build/*/preload/libsonde-preload.so"))
    if library_path is None and not built:
        sys.exit("bench/preload.py: the library is not built: cmake --preset dev && cmake --build --preset dev")
    return (library_path or max(built, key=lambda path: path.stat().st_mtime)).absolute()


def find_darshan_library() -> Path | None:
    """$DARSHAN_LIB, or what the loader finds as libdarshan.so."""
    library_path = os.environ.get("DARSHAN_LIB")
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), "/usr/lib", "/usr/local/lib", "/opt/darshan/lib"]
    candidates = (
        [Path(library_path)] if library_path else [Path(folder) / "libdarshan.so" for folder in folders if folder]
    )
    return next((candidate for candidate in candidates if candidate.exists()), None)


def make_low_noise_prefix() -> list[str]:
    """Command prefix that gives a short measurement real-time priority, where that is permitted; else empty."""
    if shutil.which("chrt") is None:
        return []
    tried = subprocess.run(["chrt", "-f", "2", "true"], capture_output=True, check=False)
    return ["chrt", "-f", "2"] if tried.returncode == 0 else []
