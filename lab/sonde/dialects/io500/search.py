# SPDX-License-Identifier: Apache-2.0
"""The search of IO500: a walk by the engine, or a script that the settings name."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from sonde.dialects.io500.figures import Figures
from sonde.dialects.io500.phases import Phase
from sonde.dialects.io500.words import FIND_NAME, FIND_SIZE, Places
from sonde.model.errors import MachineError, UserError
from sonde.model.plan import Plan


def plan_of(phase: Phase, places: Places, tasks: int | None) -> Plan:
    """The walk of a search. `tasks`: processes that the engine starts; None when a launcher starts them."""
    where = Path(places.data).absolute() / {"find-easy": "mdtest-easy", "find-hard": "mdtest-hard"}.get(phase.name, "")
    find: dict[str, object] = {"name": FIND_NAME, "type": "file"}
    if phase.name != "find-easy":
        find |= {"size": FIND_SIZE, "newer_than_file": str((Path(places.results) / "timestampfile").absolute())}
    walk = {"lookup": {"walk_from": "directory"}, "find": find}
    document = {
        "schema": "sonde-plan/1",
        "id": f"io500-{phase.name}",
        "title": f"IO500 {phase.name}",
        "target": {"path": str(where.parent), "directory": where.name, "use_existing": True, "min_free": 0},
        "tasks": {"processes": tasks} if tasks else {},
        "meta": {"tree": {}},
        "phases": [{"id": phase.name, "op": "walk", "meta": walk}],
    }
    return Plan.from_document(document, f"IO500 {phase.name}")


def check_script(script: str) -> None:
    """Raises UserError when a script cannot be started."""
    path = Path(script)
    if not path.is_file():
        raise UserError(f"external-script is {script}, but there is no such file.")
    if not path.stat().st_mode & 0o100:
        raise UserError(f"external-script is {script}, which must be a program; chmod +x may mend that.")


def run_script(command: str, warn: Callable[[str], None]) -> tuple[Figures, str]:
    """Runs a script through the shell and counts as IO500 does: `MATCHED n/m` in its last line says how many were found
    and visited, else every line is one that was found. Also returns the last line. Raises UserError when it fails."""
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
        )
    except OSError as reason:
        raise MachineError(f"The external script cannot be started: {reason.strerror}.") from None
    lines, last = 0, ""
    assert child.stdout is not None
    try:
        for line in child.stdout:
            lines, last = lines + 1, line.rstrip("\n")
        code = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    seconds = time.monotonic() - began
    if code != 0:
        raise UserError(f'Exit code {code} != 0 from find command: "{command}"')
    found = visited = lines
    if last.startswith("MATCHED "):
        left, _, right = last.removeprefix("MATCHED ").partition("/")
        if not left.strip().isdigit() or not right.strip().isdigit():
            raise UserError(f'Invalid output from the external script: "{last}", expected: MATCHED <NUM>/<NUM>')
        found, visited = int(left), int(right)
    else:
        warn('Couldn\'t find "MATCHED x/y" as last output, badly approximate using hits.')
    return Figures(visited / seconds / 1000, seconds, found=found, visited=visited), last
