# SPDX-License-Identifier: Apache-2.0
"""Engine and simulator have one run loop: lines added to it in a scratch copy are in the records of both.

The copies of two files are compiled with the options of the build tree, and both programs are linked with them.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_machine import resolved, small_machine

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("engine/sonde-engine", "simulate/sonde-simulate")
# File of the engine, a text in it, and the lines that the copy has before that text.
ADDITIONS = {
    "engine/runs/execute.cpp": (
        "        const std::unique_ptr<phases::PhaseSteps> steps = venue.begin_phase(i);\n",
        "        if (context.is_root()) {\n"
        '            context.root_state.record->line("scratch", {{"added_to", "loop"}, {"phase", phase.id}});\n'
        "        }\n",
    ),
    "engine/phases/phase.cpp": (
        "    const TimedResult result = steps.collect();\n",
        "    if (context.is_root()) {\n"
        '        context.root_state.record->line("scratch", {{"added_to", "phase"}, {"phase", phase.id}});\n'
        "    }\n",
    ),
}
PLAN = {
    "schema": "sonde-plan/2",
    "id": "scratch",
    "tasks": {"processes": 2},
    "data": {"access": {"transfer": "64KiB", "block": "64KiB", "segments": 4}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}


def find_build() -> Path:
    """The newest build tree with both programs. Skips the test when there is none or ninja is missing."""
    trees = [
        path.parent for path in ROOT.glob("build/*/build.ninja") if all((path.parent / p).is_file() for p in PROGRAMS)
    ]
    if not trees or shutil.which("ninja") is None:
        pytest.skip("no build tree of engine and simulator that ninja has built")
    return max(trees, key=lambda tree: (tree / PROGRAMS[0]).stat().st_mtime)


def compile_addition(build: Path, folder: Path, file: str) -> Path:
    """The object of a copy of the file with its addition, compiled as another file of its folder."""
    before, addition = ADDITIONS[file]
    text = (ROOT / file).read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{file} has {before!r} {text.count(before)} times"
    copy = folder / Path(file).name
    copy.write_text(text.replace(before, addition + before), encoding="utf-8")
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    of_engine = [entry for entry in commands if "sonde_around.dir" in entry["command"]]
    command = next(entry["command"] for entry in of_engine if "cmake_pch" not in entry["file"])
    options = shlex.split(command)
    options = options[: options.index("-o")]
    result = copy.with_suffix(".o")
    subprocess.run([*options, "-o", str(result), "-c", str(copy)], cwd=build, check=True)
    return result


def link_program(build: Path, folder: Path, program: str, objects: list[Path]) -> Path:
    """The program with `objects` in front of the others: their functions replace those of the same names."""
    listing = subprocess.run(
        ["ninja", "-t", "commands", program], cwd=build, check=True, capture_output=True, text=True
    ).stdout
    result = folder / Path(program).name
    command, count = re.subn(
        rf" -o {re.escape(program)} ", f" -o {shlex.quote(str(result))} ", listing.splitlines()[-1]
    )
    assert count == 1, f"ninja links {program} in another way: {listing.splitlines()[-1]}"
    first = re.search(r" \S+\.o ", command)
    assert first is not None
    added = " -Wl,-z,muldefs " + " ".join(shlex.quote(str(path)) for path in objects)
    command = command[: first.start()] + added + command[first.start() :]
    subprocess.run(["bash", "-c", command], cwd=build, check=True)
    return result


def read_added_lines(folder: Path, program: Path, target: str, *arguments: str) -> list[tuple[str, str]]:
    """The content of the added lines of the record, in order."""
    (folder / "plan.json").write_text(json.dumps({**PLAN, "target": {"path": target, "min_free": 0}}), encoding="utf-8")
    record = folder / f"{program.name}.ndjson"
    command = [str(program), "run", str(folder / "plan.json"), "--record", str(record), *arguments]
    subprocess.run(command, check=True, capture_output=True)
    lines: list[dict[str, Any]] = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["type"] == "end"
    return [(line["added_to"], line["phase"]) for line in lines if line["type"] == "scratch"]


@pytest.mark.nightly  # 15 s of compiling and linking
def test_line_added_to_the_loop_is_in_records_of_both(tmp_path: Path) -> None:
    build = find_build()
    objects = [compile_addition(build, tmp_path, file) for file in ADDITIONS]
    engine, simulator = (link_program(build, tmp_path, program, objects) for program in PROGRAMS)
    system = resolved(tmp_path, small_machine(targets=2, nodes=1, server_threads=4))
    target = tmp_path / "target"
    target.mkdir()

    expected = [("loop", "write"), ("phase", "write"), ("loop", "read"), ("phase", "read")]
    assert read_added_lines(tmp_path, engine, str(target)) == expected
    assert read_added_lines(tmp_path, simulator, "/scratch", "--system", str(system)) == expected
