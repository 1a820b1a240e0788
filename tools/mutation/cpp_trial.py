# SPDX-License-Identifier: Apache-2.0
"""Unit tests of C++, built with one change and run: the changed file is compiled without optimization and linked with
the objects of everything else. A change that the test program does not detect is also linked into its library, if it
belongs to one, and tested by the programs that load the library.

A changed header is compiled into the sources and the tests of its own folder, and these are linked first: a function in
a header is then the changed one everywhere, because the linker takes the first of equal ones.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mutation.change import BROKEN, KILLED, SURVIVED, TIMEOUT, SourceChange
from mutation.limits import run_tests_with_limits
from mutation.modules import ROOT, Module

# The tree of the inner loop: most often it is built already.
BUILD_TREE = ROOT / "build" / "dev"
# Processor time of one process, in seconds: of a compiler at most, and of the tests without any change.
MAX_BUILD_CPU_S = 300
MAX_UNCHANGED_CPU_S = 300
# What pytest prints when a program that a test started went on for too long.
_TIMEOUT_MARKS = ("TimeoutExpired", "SIGXCPU")


@dataclass(frozen=True)
class ProgramBuild:
    """Commands that compile and link the objects of a test program."""

    compile: dict[str, list[str]]
    """Source below the root -> the command of its object, without `-o` and what follows."""
    objects: dict[str, str]
    link: list[str]
    link_library: list[str]
    """Empty for modules without one."""


@dataclass(frozen=True)
class AllowedProcessorTime:
    """Processor time that a process of the tests may take, in seconds."""

    program_s: float
    library_s: float


def build_test_program(module: Module) -> ProgramBuild:
    """Builds the test program as it is, and asks how. Raises CalledProcessError when it does not build."""
    targets = [module.program, *([module.library] if module.library else [])]
    if not (BUILD_TREE / "build.ninja").is_file():
        subprocess.run(["cmake", "--preset", "dev"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(BUILD_TREE), "--target", *targets], check=True, capture_output=True)
    compile_, objects = {}, {}
    for entry in json.loads((BUILD_TREE / "compile_commands.json").read_text(encoding="utf-8")):
        arguments = shlex.split(entry["command"])
        if arguments[0].endswith("ccache"):
            arguments = arguments[1:]
        source = Path(entry["file"]).relative_to(ROOT).as_posix() if Path(entry["file"]).is_relative_to(ROOT) else ""
        position = arguments.index("-o")
        objects[source], compile_[source] = arguments[position + 1], arguments[:position]
    return ProgramBuild(
        compile_,
        objects,
        _read_link_command(module.program),
        _read_link_command(module.library) if module.library else [],
    )


def _read_link_command(ninja_target: str) -> list[str]:
    """The command that joins the objects of a target."""
    command = ["ninja", "-C", str(BUILD_TREE), "-t", "commands", ninja_target]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return shlex.split(output.split("&&")[1] if "&&" in output else output)


def _find_changed_sources(change: SourceChange, module: Module, build: ProgramBuild) -> list[str]:
    """The sources whose objects hold the change."""
    if change.file.endswith(".cpp"):
        return [change.file]
    name = Path(change.file).relative_to(Path(change.file).parts[0]).as_posix()
    near = [file.relative_to(ROOT).as_posix() for file in module.list_source_files() if file.suffix == ".cpp"]
    near += [file.relative_to(ROOT).as_posix() for file in module.list_test_files()]
    command = [
        "ninja",
        "-C",
        str(BUILD_TREE),
        "-t",
        "deps",
        *(build.objects[unit] for unit in near if unit in build.objects),
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    users, unit = set(), ""
    for line in output.splitlines():
        if not line.startswith(" ") and ":" in line:
            unit = line.split(":")[0]
        elif line.strip().endswith(f"/{name}"):
            users.add(unit)
    return [unit for unit in near if build.objects.get(unit) in users]


def try_cpp_change(
    change: SourceChange, module: Module, build: ProgramBuild, folder: Path, allowed: AllowedProcessorTime
) -> str:
    """Outcome of the tests for a change. `folder` receives the build products."""
    shutil.rmtree(folder, ignore_errors=True)
    text = change.apply_to((ROOT / change.file).read_text(encoding="utf-8"))
    top = Path(change.file).parts[0]
    copy = folder / change.file
    copy.parent.mkdir(parents=True)
    copy.write_text(text, encoding="utf-8")
    changed: dict[str, str] = {}
    for number, unit in enumerate(_find_changed_sources(change, module, build)):
        source = copy if unit == change.file else ROOT / unit
        arguments = [
            build.compile[unit][0],
            "-I",
            str(folder / top),
            *build.compile[unit][1:],
            "-iquote",
            str((ROOT / unit).parent),
        ]
        arguments = [word for word in arguments if word != "-Werror"]
        done = subprocess.run(
            [*arguments, "-O0", "-g0", "-w", "-o", f"{folder}/{number}.o", "-c", str(source)],
            cwd=BUILD_TREE,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            (folder / "compiler.txt").write_text(done.stderr, encoding="utf-8")
            return BROKEN
        changed[build.objects[unit]] = f"{folder}/{number}.o"
    if not _link_with_changed_objects(build.link, changed, folder / "tests", folder):
        return BROKEN
    became = run_test_program(folder / "tests", module, folder, allowed.program_s)
    if became != SURVIVED or not module.library:
        return became
    so = folder / "library.so"
    return (
        run_library_tests(so, module, folder, allowed.library_s)
        if _link_with_changed_objects(build.link_library, changed, so, folder)
        else BROKEN
    )


def _link_with_changed_objects(
    link_command: list[str], changed_object_by_object: dict[str, str], output_file: Path, folder: Path
) -> bool:
    """Links the objects of a target, the changed ones first; returns false if linking fails."""
    arguments = [word for word in link_command if word not in changed_object_by_object]
    position = next(index for index, word in enumerate(arguments) if word.endswith(".o"))
    arguments[position:position] = [
        changed_object_by_object[word] for word in link_command if word in changed_object_by_object
    ]
    arguments[arguments.index("-o") + 1] = str(output_file)
    done = subprocess.run(arguments, cwd=BUILD_TREE, capture_output=True, text=True)
    if done.returncode != 0:
        (folder / "linker.txt").write_text(done.stderr, encoding="utf-8")
    return done.returncode == 0


def get_unchanged_program(build: ProgramBuild) -> Path:
    """The test program with no change."""
    return BUILD_TREE / build.link[build.link.index("-o") + 1]


def get_unchanged_library(build: ProgramBuild) -> Path | None:
    """The library with no change; None for modules without one."""
    return BUILD_TREE / build.link_library[build.link_library.index("-o") + 1] if build.link_library else None


def run_test_program(test_program: Path, module: Module, folder: Path, cpu_s: float) -> str:
    """Runs the module's tests of a test program, stopping at the first that fails."""
    sources = ",".join(f"*{folder}/*" for folder in module.tests)
    command = [str(test_program), f"--source-file={sources}", "--abort-after=1"]
    for variables in module.environments:
        became = run_tests_with_limits(command, folder, folder / "output.txt", variables, cpu_s)
        if became != SURVIVED:
            return became
    return SURVIVED


def run_library_tests(library_file: Path, module: Module, folder: Path, cpu_s: float) -> str:
    """Runs the tests that load the library into other programs, stopping at the first that fails. They end a program
    that hangs by a time limit of their own, which is none of ours: it counts as one."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly",
               "-m", "not nightly", f"--basetemp={folder}/pytest", *module.by_library]  # fmt: skip
    variables = {"SONDE_PRELOAD": str(library_file), "PYTHONPATH": str(ROOT / "lab"), "PYTHONDONTWRITEBYTECODE": "1"}
    output = folder / "by-library.txt"
    became = run_tests_with_limits(command, ROOT, output, variables, cpu_s)
    output_text = output.read_text(encoding="utf-8", errors="replace")
    return TIMEOUT if became == KILLED and any(word in output_text for word in _TIMEOUT_MARKS) else became
