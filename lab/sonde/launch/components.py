# SPDX-License-Identifier: Apache-2.0
"""Locates the compiled components of Sonde: each may be in one of the same three directories."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sonde.model.errors import MachineError


@dataclass(frozen=True)
class Component:
    """A program or library that the build makes. The environment variable `variable` names a replacement;
    `missing_message` begins the error message when the component does not exist."""

    name: str
    variable: str
    build_folder: str  # relative to build/*/
    missing_message: str
    package_folder: str = "bin"  # relative to the package
    is_program: bool = True

    def is_usable(self, program_path: Path) -> bool:
        return program_path.is_file() and (not self.is_program or os.access(program_path, os.X_OK))


@dataclass(frozen=True)
class LocatedComponent:
    path: Path
    source: str  # why this file was chosen


def locate_component(component: Component) -> LocatedComponent:
    """The component that $variable names, else the one in this package, else the newest in the build tree of this
    source, else the program on PATH. Raises MachineError."""
    override = os.environ.get(component.variable)
    if override:
        path = Path(override).expanduser().absolute()
        if not component.is_usable(path):
            kind = "a program that can be run" if component.is_program else "a file"
            raise MachineError(f"${component.variable} is {override}, which is not {kind}.")
        return LocatedComponent(path.resolve() if component.is_program else path, f"named by ${component.variable}")
    packaged = Path(str(resources.files("sonde").joinpath(component.package_folder, component.name)))
    if component.is_usable(packaged):
        return LocatedComponent(packaged, "part of this installation")
    source = Path(__file__).resolve().parents[3]
    pattern = f"build/*/{component.build_folder}/{component.name}"
    candidates = [path for path in source.glob(pattern) if component.is_usable(path)]
    if candidates:
        newest = max(candidates, key=lambda path: path.stat().st_mtime)
        return LocatedComponent(newest, "newest in the build folder of the source tree")
    on_path = shutil.which(component.name) if component.is_program else None
    if on_path:
        return LocatedComponent(Path(on_path), "on PATH")
    raise MachineError(
        f"{component.missing_message} install the wheel for Linux with programs (`sonde help release`), put"
        f" {component.name} on PATH, or name it in ${component.variable}."
    )
