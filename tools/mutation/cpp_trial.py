# SPDX-License-Identifier: Apache-2.0
"""Unit tests of C++, built with one change and run: the changed file is compiled without optimization and linked with
the objects of everything else.

A changed header is compiled into the sources and the tests of its own folder, and these are linked first: a function in
a header is then the changed one everywhere, because the linker takes the first of equal ones.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mutation.change import BROKEN, KILLED, SURVIVED, TIMEOUT, Change
from mutation.modules import ROOT, Module

TREE = ROOT / "build" / "mutants" / "tree"
LONGEST_S = 60


@dataclass(frozen=True)
class Build:
    """How the objects of a test program are made and joined."""

    compile: dict[str, list[str]]
    """Source below the root -> the command of its object, without `-o` and what follows."""
    objects: dict[str, str]
    link: list[str]


def build(program: str) -> Build:
    """Builds the test program as it is, and asks how. Raises CalledProcessError when it does not build."""
    if not (TREE / "build.ninja").is_file():
        configure = ["cmake", "-S", str(ROOT), "-B", str(TREE), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug"]
        subprocess.run([*configure, "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DSONDE_TESTS=ON"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(TREE), "--target", program], check=True, capture_output=True)
    compile_, objects = {}, {}
    for entry in json.loads((TREE / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        if words[0].endswith("ccache"):
            words = words[1:]
        source = Path(entry["file"]).relative_to(ROOT).as_posix() if Path(entry["file"]).is_relative_to(ROOT) else ""
        at = words.index("-o")
        objects[source], compile_[source] = words[at + 1], words[:at]
    asked = ["ninja", "-C", str(TREE), "-t", "commands", program]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    link = said.split("&&")[1] if "&&" in said else said
    return Build(compile_, objects, shlex.split(link))


def _units(change: Change, module: Module, made: Build) -> list[str]:
    """The sources whose objects hold the change."""
    if change.file.endswith(".cpp"):
        return [change.file]
    name = Path(change.file).relative_to(Path(change.file).parts[0]).as_posix()
    near = [file.relative_to(ROOT).as_posix() for file in module.files() if file.suffix == ".cpp"]
    near += [file.relative_to(ROOT).as_posix() for file in module.test_files()]
    asked = ["ninja", "-C", str(TREE), "-t", "deps", *(made.objects[one] for one in near if one in made.objects)]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    users, unit = set(), ""
    for line in told.splitlines():
        if not line.startswith(" ") and ":" in line:
            unit = line.split(":")[0]
        elif line.strip().endswith(f"/{name}"):
            users.add(unit)
    return [one for one in near if made.objects.get(one) in users]


def attempt(change: Change, module: Module, made: Build, folder: Path) -> str:
    """What the tests make of a change; the folder is for what is built."""
    shutil.rmtree(folder, ignore_errors=True)
    text = change.applied((ROOT / change.file).read_text(encoding="utf-8"))
    top = Path(change.file).parts[0]
    copy = folder / change.file
    copy.parent.mkdir(parents=True)
    copy.write_text(text, encoding="utf-8")
    link, first = list(made.link), []
    for number, unit in enumerate(_units(change, module, made)):
        source = copy if unit == change.file else ROOT / unit
        words = [
            made.compile[unit][0],
            "-I",
            str(folder / top),
            *made.compile[unit][1:],
            "-iquote",
            str((ROOT / unit).parent),
        ]
        words = [word for word in words if word != "-Werror"]
        done = subprocess.run(
            [*words, "-w", "-o", f"{folder}/{number}.o", "-c", str(source)], cwd=TREE, capture_output=True, text=True
        )
        if done.returncode != 0:
            (folder / "compiler.txt").write_text(done.stderr, encoding="utf-8")
            return BROKEN
        link.remove(made.objects[unit])
        first.append(f"{folder}/{number}.o")
    at = next(place for place, word in enumerate(link) if word.endswith(".o"))
    link[at:at] = first
    link[link.index("-o") + 1] = f"{folder}/tests"
    done = subprocess.run(link, cwd=TREE, capture_output=True, text=True)
    if done.returncode != 0:
        (folder / "linker.txt").write_text(done.stderr, encoding="utf-8")
        return BROKEN
    return run(folder / "tests", module, folder)


def program(made: Build) -> Path:
    """The test program with no change."""
    return TREE / made.link[made.link.index("-o") + 1]


def run(tests: Path, module: Module, folder: Path) -> str:
    """Runs the module's tests of a test program, stopping at the first that fails."""
    sources = ",".join(f"*{place}/*" for place in module.tests)
    try:
        with (folder / "output.txt").open("w", encoding="utf-8") as output:
            done = subprocess.run(
                [str(tests), f"--source-file={sources}", "--abort-after=1"],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=LONGEST_S,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return TIMEOUT
    return SURVIVED if done.returncode == 0 else KILLED
