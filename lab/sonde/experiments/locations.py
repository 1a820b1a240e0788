# SPDX-License-Identifier: Apache-2.0
"""The locations that the user gave for an experiment, as texts that the archive stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.model.errors import MachineError, UserError
from sonde.model.target_names import is_object_store_target

if TYPE_CHECKING:
    from sonde.experiments.directories import Directories


@dataclass(frozen=True)
class RunLocations:
    """Directories by name, the system file and the launcher; empty if not given."""

    default: str = ""
    by_name: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    system: str = ""  # file or name of the description of this machine
    launcher: str = ""
    launcher_args: str = ""

    def load_directories_with_system(self) -> Directories:
        """Returns the directories with the system file read. Raises UserError."""
        from sonde.experiments.directories import Directories
        from sonde.model.bundled_files import find_system_file
        from sonde.model.system import read_system

        system = read_system(find_system_file(self.system)) if self.system else None
        return Directories(self.default, self.by_name, self.pools, system)

    @property
    def is_given(self) -> bool:
        """Whether the user gave any location."""
        return self != RunLocations()


def require_existing_directory(directory_name: str) -> Path:
    """Returns the directory of that name. Raises UserError if there is none."""
    path = Path(directory_name)
    if not directory_name or "\0" in directory_name:
        raise UserError("The name of the directory is empty; name the directory to measure.")
    try:
        if path.is_block_device() or is_object_store_target(directory_name):
            kind = "bucket" if is_object_store_target(directory_name) else "block device"
            raise UserError(
                f"{directory_name} is a {kind}, but files are written into a directory here; a plan measures the "
                f"{kind}: `sonde run PLAN --on {directory_name}`."
            )
        if not path.exists():
            raise UserError(f"There is no directory {directory_name}; name an existing one.")
        if not path.is_dir():
            raise UserError(f"{directory_name} is not a directory; Sonde writes its files into a directory.")
    except OSError as reason:
        raise MachineError(f"{directory_name} cannot be examined: {reason.strerror}.") from None
    return path
