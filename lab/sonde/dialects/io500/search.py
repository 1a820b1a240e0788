# SPDX-License-Identifier: Apache-2.0
"""The search of IO500: a walk of the engine, or a script from the settings."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from sonde.dialects.io500.command_lines import FIND_FILE_BYTES, FIND_NAME, RunDirectories
from sonde.dialects.io500.figures import PhaseFigures
from sonde.dialects.io500.phases import Io500Phase
from sonde.model.errors import MachineError, UserError
from sonde.model.plan import Plan


def build_search_plan(phase: Io500Phase, run_directories: RunDirectories, process_count: int | None) -> Plan:
    """The walk of a search. `process_count`: processes that the engine starts; None when a launcher starts them."""
    tree = Path(run_directories.data).absolute() / {"find-easy": "mdtest-easy", "find-hard": "mdtest-hard"}.get(
        phase.name, ""
    )
    find: dict[str, object] = {"name": FIND_NAME, "type": "file"}
    if phase.name != "find-easy":
        find |= {
            "size": FIND_FILE_BYTES,
            "newer_than_file": str((Path(run_directories.results) / "timestampfile").absolute()),
        }
    walk = {"lookup": {"walk_from": "directory"}, "find": find}
    document = {
        "schema": "sonde-plan/2",
        "id": f"io500-{phase.name}",
        "title": f"IO500 {phase.name}",
        "target": {"path": str(tree.parent), "directory": tree.name, "use_existing": True, "min_free": 0},
        "tasks": {"processes": process_count} if process_count else {},
        "meta": {"tree": {}},
        "phases": [{"id": phase.name, "op": "walk", "meta": walk}],
    }
    return Plan.from_document(document, f"IO500 {phase.name}")


def require_executable_script(script_path: str) -> None:
    """Raises UserError when a script cannot be started."""
    path = Path(script_path)
    if not path.is_file():
        raise UserError(f"external-script is {script_path}, but there is no such file.")
    if not path.stat().st_mode & 0o100:
        raise UserError(f"external-script is {script_path}, which must be a program; chmod +x may fix that.")


def run_external_find_script(find_script: str, report_warning: Callable[[str], None]) -> tuple[PhaseFigures, str]:
    """Runs a script through the shell and counts as IO500 does: `MATCHED n/m` in its last line gives the numbers of
    found and visited files; otherwise each line is one found file. Also returns the last line. Raises UserError when it
    fails."""
    began = time.monotonic()
    try:
        child = subprocess.Popen(  # nosec B602 # a command of the ini file, which is a program as in IO500
            find_script, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
        )
    except OSError as reason:
        raise MachineError(f"The external script cannot be started: {reason.strerror}.") from None
    lines, last_line = 0, ""
    assert child.stdout is not None
    try:
        for line in child.stdout:
            lines, last_line = lines + 1, line.rstrip("\n")
        code = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    seconds = time.monotonic() - began
    if code != 0:
        raise UserError(f'Exit code {code} != 0 from find command: "{find_script}"')
    matched = visited = lines
    if last_line.startswith("MATCHED "):
        matched_text, _, visited_text = last_line.removeprefix("MATCHED ").partition("/")
        if not matched_text.strip().isdigit() or not visited_text.strip().isdigit():
            raise UserError(f'Invalid output from the external script: "{last_line}", expected: MATCHED <NUM>/<NUM>')
        matched, visited = int(matched_text), int(visited_text)
    else:
        report_warning('Couldn\'t find "MATCHED x/y" as last output, badly approximate using hits.')
    return PhaseFigures(visited / seconds / 1000, seconds, matches=matched, visited=visited), last_line
