# SPDX-License-Identifier: Apache-2.0
"""No launcher: runs the engine on this machine, which forks the processes of the plan itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher
from sonde.model.errors import UserError


@dataclass(frozen=True)
class LocalLauncher(Launcher):
    """The engine alone."""

    name = "local"
    ranks: int | None = None

    @classmethod
    def available(cls) -> str:
        return ""

    @classmethod
    def of(cls, ranks: int, extra: Sequence[str]) -> LocalLauncher:
        if extra:
            raise UserError("--launcher-args needs another --launcher than local.")
        return cls()

    def arguments(self, engine: Sequence[str]) -> list[str]:
        return list(engine)
