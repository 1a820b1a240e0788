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
    def describe_unavailability(cls) -> str:
        return ""

    @classmethod
    def make_for_ranks(cls, rank_count: int, extra_arguments: Sequence[str]) -> LocalLauncher:
        if extra_arguments:
            raise UserError("--launcher-args needs another --launcher than local.")
        return cls()

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        return list(engine_command)
