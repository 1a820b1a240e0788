# SPDX-License-Identifier: Apache-2.0
"""Launches tasks of IBM's Job Step Manager: ``jsrun``, and ``lrun``, Livermore's wrapper of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher, RankVariables


@dataclass(frozen=True)
class JsrunLauncher(Launcher):
    """``jsrun`` with one resource set per task."""

    name = "jsrun"
    rank_variables = (RankVariables("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),)
    ranks: int
    extra: Sequence[str] = ()

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        has_count = any(argument in ("--nrs", "-n", "--np", "-p") for argument in self.extra)
        count = [] if has_count else ["--np", str(self.ranks)]
        return ["jsrun", *count, *self.extra, *engine_command]


@dataclass(frozen=True)
class LrunLauncher(Launcher):
    """``lrun``, which creates the resource sets itself."""

    name = "lrun"
    ranks: int
    extra: Sequence[str] = ()

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        return ["lrun", "-n", str(self.ranks), *self.extra, *engine_command]
