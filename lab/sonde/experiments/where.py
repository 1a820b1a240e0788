# SPDX-License-Identifier: Apache-2.0
"""What somebody said about where an experiment is to be measured, in words that can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sonde.experiments.directories import Directories


@dataclass(frozen=True)
class Where:
    """Directories by name, the system file, the launcher; empty where nothing was said."""

    default: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    system: str = ""  # file, or name of a described one: this machine
    launcher: str = ""
    launcher_args: str = ""

    def directories(self) -> Directories:
        """With the system file read. Raises UserError."""
        from sonde.experiments.directories import Directories
        from sonde.model.shipped import system_source
        from sonde.model.system import read_system

        system = read_system(system_source(self.system)) if self.system else None
        return Directories(self.default, self.named, self.pools, system)

    @property
    def said(self) -> bool:
        """Whether anything was said."""
        return self != Where()
