# SPDX-License-Identifier: Apache-2.0
"""Tasks of IBM's Job Step Manager, and Livermore's shorter way to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher, Mark


@dataclass(frozen=True)
class JsrunLauncher(Launcher):
    """``jsrun`` with a resource set for each task."""

    name = "jsrun"
    marks = (Mark("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),)
    ranks: int
    extra: Sequence[str] = ()

    def arguments(self, engine: Sequence[str]) -> list[str]:
        sets = [] if any(one in ("--nrs", "-n", "--np", "-p") for one in self.extra) else ["--np", str(self.ranks)]
        return ["jsrun", *sets, *self.extra, *engine]


@dataclass(frozen=True)
class LrunLauncher(Launcher):
    """``lrun``, which makes the resource sets itself."""

    name = "lrun"
    ranks: int
    extra: Sequence[str] = ()

    def arguments(self, engine: Sequence[str]) -> list[str]:
        return ["lrun", "-n", str(self.ranks), *self.extra, *engine]
