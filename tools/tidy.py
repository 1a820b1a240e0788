# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over all C++ sources that were not found clean as they are now.

Usage: .venv/bin/python tools/tidy.py [FOLDER]…  (engine preload simulate; a folder inside of them or a file will do)
       .venv/bin/python tools/tidy.py --newest COUNT   (the sources that were changed last: uncommitted, then by commit)
A file is known by its own text, that of all headers of ours that it includes, its compile command and .clang-tidy: who
changes one of them has it looked at again. Clean files are recorded in build/tidy, so an interrupted run can resume.
The program is PyPI's, of the release in pyproject.toml: what is found depends on it. Needs build/dev to be configured.
Exit code 0 when nothing was found, 1 when something was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_TREE = ROOT / "build" / "dev"
CLEAN_MARKERS_FOLDER = ROOT / "build" / "tidy"
FOLDERS = ("engine", "preload", "simulate")
CLANG_TIDY_PROGRAM = Path(sys.executable).with_name("clang-tidy")


def read_compile_commands() -> dict[str, list[str]]:
    """Each source below the root and how it is compiled, without the cache in front of the compiler."""
    arguments_by_file = {}
    for entry in json.loads((BUILD_TREE / "compile_commands.json").read_text(encoding="utf-8")):
        arguments = shlex.split(entry["command"])
        file = Path(entry["file"])
        if file.is_relative_to(ROOT):
            arguments_by_file[file.relative_to(ROOT).as_posix()] = (
                arguments[1:] if arguments[0].endswith("ccache") else arguments
            )
    return arguments_by_file


def list_source_and_headers(compiler_arguments: list[str]) -> list[Path]:
    """The source itself and the headers of ours that it includes."""
    plain = [
        word for index, word in enumerate(compiler_arguments) if word != "-o" and compiler_arguments[index - 1] != "-o"
    ]
    output = subprocess.run([*plain, "-MM"], cwd=BUILD_TREE, check=True, capture_output=True, text=True).stdout
    names = output.replace("\\\n", " ").split(":", 1)[1].split()
    return [path for name in names if (path := (BUILD_TREE / name).resolve()).is_relative_to(ROOT)]


def compute_cache_key(compiler_arguments: list[str], tidy_version: str) -> str:
    """Cache key under which a file without warnings is recorded."""
    sign = hashlib.sha256(tidy_version.encode() + (ROOT / ".clang-tidy").read_bytes())
    sign.update(shlex.join(compiler_arguments).replace(str(ROOT), "").encode())
    for path in list_source_and_headers(compiler_arguments):
        sign.update(path.read_bytes())
    return sign.hexdigest()


def find_tidy_warnings(source_file: str, compiler_arguments: list[str], tidy_version: str) -> str | None:
    """Warnings of clang-tidy about a file; empty without warnings, None if the file was already recorded as clean."""
    marker = CLEAN_MARKERS_FOLDER / compute_cache_key(compiler_arguments, tidy_version)
    if marker.exists():
        return None
    looked = subprocess.run(
        [CLANG_TIDY_PROGRAM, "--quiet", "-p", BUILD_TREE, "--extra-arg=-Wno-unknown-warning-option", source_file],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if looked.returncode == 0:
        marker.write_text(source_file + "\n", encoding="utf-8")
        return ""
    return looked.stdout or looked.stderr


def list_changed_files(repository: Path) -> list[str]:
    """Files of the folders that differ from the last commit, then those of each commit, the newest commit first."""

    def run_git(*arguments: str) -> list[str]:
        command = ["git", *arguments, "--", *FOLDERS]
        return subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout.split()

    uncommitted = run_git("diff", "--name-only", "HEAD")
    committed = run_git("log", "--max-count=200", "--format=", "--name-only")
    return list(dict.fromkeys([*uncommitted, *committed]))


def select_newest_sources(changed_files: list[str], sources: list[str], repository: Path, max_count: int) -> list[str]:
    """The first `max_count` sources of the changed files.

    For a header, the source of the same name is selected, or else the first source that includes it.
    """

    def find_source(header_file: str) -> str | None:
        same_name = Path(header_file).with_suffix(".cpp").as_posix()
        if same_name in sources:
            return same_name
        folder, _, included_name = header_file.partition("/")
        directive = f'#include "{included_name}"'
        in_folder = (source for source in sources if source.startswith(f"{folder}/"))
        return next(
            (source for source in in_folder if directive in (repository / source).read_text(encoding="utf-8")), None
        )

    selected: dict[str, None] = {}
    for file in changed_files:
        if len(selected) == max_count:
            break
        source = find_source(file) if file.endswith(".hpp") else file
        if source in sources:
            selected[source] = None
    return list(selected)


def select_files(command_line_arguments: list[str], sources: list[str]) -> list[str]:
    """The sources that the command line selects."""
    if command_line_arguments[:1] == ["--newest"]:
        if len(command_line_arguments) != 2 or not command_line_arguments[1].isdecimal():
            sys.exit("tidy: --newest needs a number of files, for example --newest 6")
        return select_newest_sources(list_changed_files(ROOT), sources, ROOT, int(command_line_arguments[1]))
    folders = [Path(argument).as_posix() for argument in command_line_arguments] or list(FOLDERS)
    return [file for file in sources if any(Path(file).is_relative_to(folder) for folder in folders)]


def main() -> int:
    """Runs clang-tidy on the selected files; returns the exit code."""
    if not (BUILD_TREE / "compile_commands.json").is_file():
        sys.exit("tidy: there is no build/dev; run `cmake --preset dev` first")
    if not CLANG_TIDY_PROGRAM.is_file():
        sys.exit("tidy: there is no clang-tidy beside this Python; run `make tidy`, which installs it")
    version = subprocess.run([CLANG_TIDY_PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    CLEAN_MARKERS_FOLDER.mkdir(parents=True, exist_ok=True)
    commands = read_compile_commands()
    sources = sorted(file for file in commands if file.split("/")[0] in FOLDERS)
    every = {file: commands[file] for file in select_files(sys.argv[1:], sources)}
    wrong, looked = 0, 0
    with ThreadPoolExecutor(int(os.environ.get("TIDY_JOBS", os.cpu_count() or 1))) as pool:
        answers = pool.map(lambda file: (file, find_tidy_warnings(file, every[file], version)), every)
        for done, (file, output) in enumerate(answers, 1):
            looked += output is not None
            if output:
                wrong += 1
                print(output.rstrip(), flush=True)
            if output is not None:
                print(f"tidy: {done} of {len(every)}: {file}", flush=True)
    print(f"tidy: {wrong} of {len(every)} files have findings; {len(every) - looked} were known to be clean")
    return 1 if wrong or not every else 0


if __name__ == "__main__":
    sys.exit(main())
