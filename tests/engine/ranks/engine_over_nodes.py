# SPDX-License-Identifier: Apache-2.0
"""The engine as its tests know it, with its tasks as ranks on several nodes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine_under_test import Engine, Plan, Result, Running
from many_nodes import ManyNodes
from start_ranks import Launcher, find_built_program

MAX_RANKS = 8


class EngineOverNodes(Engine):
    """Each plan's tasks are spread over nodes: as many ranks as there are tasks, from eight on threads in each."""

    def __init__(self, path: Path, folder: Path, nodes: ManyNodes, launcher: Launcher) -> None:
        super().__init__(path, folder)
        self.nodes = nodes
        self.launcher = launcher

    def start(
        self, plan: Plan | str | bytes, *arguments: str, launch_prefix: Sequence[str] = (), **options: Any
    ) -> Running:
        assert isinstance(plan, dict)
        tasks = plan.get("tasks", {})
        count = tasks.get("processes", 1) * tasks.get("threads", 1)
        ranks = count if count <= MAX_RANKS else MAX_RANKS
        assert count % ranks == 0
        spread = {**plan, "tasks": {**tasks, "processes": 1, "threads": count // ranks}}
        if self.launcher.name == "ssh":
            start = self.nodes.start("ssh", (str(self.path),), ranks)
            script = self.folder / "engine-over-ssh"
            script.write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
            return Engine(script, self.folder).start(spread, *arguments, launch_prefix=launch_prefix, **options)
        start = self.nodes.start(self.launcher.name, self.launcher.start, ranks)
        module = str(find_built_program(self.launcher.module))
        return super().start(
            spread, "--mpi-module", module, *arguments, launch_prefix=[*launch_prefix, *start], **options
        )

    def run(self, plan: Plan | str | bytes, *arguments: str, **options: Any) -> Result:
        result = super().run(plan, *arguments, **options)
        head = result.of("run")[0]
        assert head["nodes"] == min(self.nodes.count, head["processes"]), "the tasks were not where they should be"
        return result
