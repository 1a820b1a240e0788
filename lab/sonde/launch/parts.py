# SPDX-License-Identifier: Apache-2.0
"""Where the compiled parts of Sonde are: each is looked for in the same three places."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sonde.model.errors import MachineError


@dataclass(frozen=True)
class Part:
    """A program or a library that the build makes. `variable` of the environment names another one in its place;
    `missing` begins the sentence that is said when there is none."""

    name: str
    variable: str
    built_in: str  # below build/*/
    missing: str
    packaged_in: str = "bin"  # of the package
    program: bool = True

    def usable(self, path: Path) -> bool:
        return path.is_file() and (not self.program or os.access(path, os.X_OK))


@dataclass(frozen=True)
class Found:
    path: Path
    source: str  # why this one was chosen


def find(part: Part) -> Found:
    """$variable, else the one in this package, else the newest in the build tree around this source. Raises
    MachineError."""
    named = os.environ.get(part.variable)
    if named:
        path = Path(named).expanduser().absolute()
        if not part.usable(path):
            kind = "a program that can be run" if part.program else "a file"
            raise MachineError(f"${part.variable} is {named}, which is not {kind}.")
        return Found(path.resolve() if part.program else path, f"named by ${part.variable}")
    packaged = Path(str(resources.files("sonde").joinpath(part.packaged_in, part.name)))
    if part.usable(packaged):
        return Found(packaged, "part of this installation")
    source = Path(__file__).resolve().parents[3]
    built = [path for path in source.glob(f"build/*/{part.built_in}/{part.name}") if part.usable(path)]
    if built:
        newest = max(built, key=lambda path: path.stat().st_mtime)
        return Found(newest, "newest in the build folder of the source tree")
    raise MachineError(f"{part.missing} install sonde again, or build it and name it in ${part.variable}.")
