# SPDX-License-Identifier: Apache-2.0
"""Sites, and programs that answer like the commands of a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sonde.launch.sites import Site


def make_site(**members: Any) -> Site:
    return Site(**{"name": "made", "scheduler": "slurm", "launcher": "srun", "origin": "here"} | members)


def write_program(folder: Path, name: str, output: str, exit_code: int = 0) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho \"$@\" >>{folder}/{name}.called\ncat <<'X'\n{output}\nX\nexit {exit_code}\n")
    file.chmod(0o755)


SITE_MEMBERS = 'scheduler = "slurm"\nlauncher = "srun"\n'
