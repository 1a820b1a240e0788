# SPDX-License-Identifier: Apache-2.0
"""Locates the preload library and checks whether it can intercept a program.

The dynamic loader puts the library in front of libc. Statically linked programs have no loader, setuid programs ignore
preloaded libraries, and Go programs make system calls without libc: these are rejected before anything starts.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from sonde.launch.components import Component, locate_component
from sonde.launch.elf import list_file_system_calls_in_code, read_elf_header
from sonde.model.errors import MachineError, UserError

LIBRARY_NAME = "libsonde-preload.so"
LIBRARY_COMPONENT = Component(
    LIBRARY_NAME,
    "SONDE_PRELOAD",
    "preload",
    f"The library {LIBRARY_NAME} is not part of this installation;",
    package_folder="lib",
    is_program=False,
)
STARTER_NAME = "sonde-iobuf"
_MAX_INTERPRETER_DEPTH = 4  # as in the kernel
#: The C library, and libraries whose functions are intercepted or make no calls on files.
_INTERCEPTED_LIBRARIES_PATTERN = re.compile(
    r"(ld-linux.*|ld-2.*|lib(c|pthread|dl|rt|m|uring|asan|tsan|ubsan|gcc_s)[-.].*)$"
)


def find_preload_library() -> Path:
    return locate_component(LIBRARY_COMPONENT).path


def find_iobuf_starter() -> Path:
    """The program sonde-iobuf: in the package, or next to the library in a build tree."""
    library = find_preload_library()
    for path in (library.parent / STARTER_NAME, library.parent.parent / "bin" / STARTER_NAME):
        if path.is_file():
            return path
    raise MachineError(f"The program {STARTER_NAME} is not part of this installation; install sonde again.")


def find_iobuf_include_folder() -> Path:
    """The folder with ffio.h: in the package, or in the source tree. Raises MachineError."""
    packaged = Path(str(resources.files("sonde").joinpath("include")))
    for folder in (packaged, Path(__file__).resolve().parents[3] / "preload" / "include"):
        if (folder / "ffio.h").is_file():
            return folder
    raise MachineError("The header ffio.h is not part of this installation; install sonde again.")


def make_preload_environment(library_file: Path, **variables: str) -> dict[str, str]:
    """The environment of a program under the library. Libraries that are preloaded already come after ours."""
    preloaded = os.environ.get("LD_PRELOAD", "").split()
    others = [path for path in preloaded if Path(path).name != LIBRARY_NAME]
    return {**os.environ, "LD_PRELOAD": " ".join([str(library_file), *others]), **variables}


def find_interceptable_program(program_name: str, preload_library: Path) -> Path:
    """Returns the path of the program that will run. Raises UserError with the reason when the library cannot intercept
    it."""
    path = shutil.which(program_name)
    if path is None:
        raise UserError(f'There is no program "{program_name}" that can be run.')
    _check_interceptable(Path(path), program_name, preload_library, _MAX_INTERPRETER_DEPTH)
    return Path(path)


def require_interceptable_calls(program_path: Path, program_name: str) -> None:
    """Raises UserError when the program, or a library that it is linked with, contains system calls on files that do
    not go through the C library: the buffer does not see them.

    The loader lists the libraries; nothing of the program runs. The search is for the instructions of x86-64 and
    aarch64, so a number that is computed at run time is not found.
    """
    interpreter = _find_script_interpreter(program_path)
    target = program_path if interpreter is None else Path(shutil.which(interpreter) or program_path)
    for file in [target, *_list_libraries(target)]:
        calls = list_file_system_calls_in_code(file)
        if calls and not _INTERCEPTED_LIBRARIES_PATTERN.match(file.name):
            subject = program_name if file == target else f"{program_name} loads {file.name}, which"
            raise UserError(
                f"{subject} makes system calls without the C library ({', '.join(calls)}): the buffer does not see"
                " them. Leave out the files that they use (PATTERN:off), or run it without the buffer."
            )


def _list_libraries(program_file: Path) -> list[Path]:
    header = read_elf_header(program_file)
    if header is None or not header.interpreter:
        return []
    try:
        listing = subprocess.run(
            [header.interpreter, "--list", program_file], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [Path(path).resolve() for path in re.findall(r"=> (/\S+) \(0x", listing)]


def validate_iobuf_settings(library_file: Path, variables: Mapping[str, str]) -> None:
    """Raises UserError when the library does not understand its settings. In a job script the library warns and
    continues, like IOBUF; a user who types the settings can correct them. The check runs `true` under the library and
    reads its warnings."""
    program = shutil.which("true")
    if program is None:
        return
    environment = make_preload_environment(library_file, **variables)
    try:
        messages = subprocess.run(
            [program], env=environment, capture_output=True, text=True, check=False, timeout=30
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in messages.splitlines():
        if line.startswith(("sonde: IOBUF_PARAMS: ", "sonde: the settings file ")) and not line.endswith(
            "the nearest possible one is taken."
        ):
            raise UserError(line.removeprefix("sonde: ").replace(" and is ignored", ""))


def _check_interceptable(program_path: Path, program_name: str, preload_library: Path, interpreter_depth: int) -> None:
    interpreter = _find_script_interpreter(program_path)
    if interpreter is not None and interpreter_depth > 0:
        target = shutil.which(interpreter)
        if target is not None:
            _check_interceptable(
                Path(target), f"{program_name} (run by {interpreter})", preload_library, interpreter_depth - 1
            )
        return
    program, ours = read_elf_header(program_path), read_elf_header(preload_library)
    if program is None:
        return  # a script without an interpreter line: the shell runs it
    if ours is not None and (program.bits, program.machine) != (ours.bits, ours.machine):
        raise UserError(
            f"{program_name} is a program for {program.architecture_name}, and the library is for "
            f"{ours.architecture_name}."
        )
    if program.is_go_program:
        raise UserError(
            f"{program_name} is written in Go, which makes system calls without the C library: they cannot be "
            "intercepted."
        )
    if not program.has_loader:
        raise UserError(
            f"{program_name} is linked statically: it loads no library, so its calls cannot be intercepted. Link it"
            " dynamically."
        )
    if "musl" in program.interpreter:
        raise UserError(
            f"{program_name} is linked with musl, and the library is for glibc: its calls are passed on unchanged."
        )
    status = program_path.stat()
    gains_rights = (status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()) or (
        status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    )
    if gains_rights or _has_file_capabilities(program_path):
        raise UserError(
            f"{program_name} runs with more rights than you have (setuid, setgid or capabilities): the loader then "
            "ignores"
            " preloaded libraries."
        )


def _find_script_interpreter(program_path: Path) -> str | None:
    try:
        with program_path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    arguments = line[2:].decode("utf-8", "replace").split()
    if len(arguments) > 1 and Path(arguments[0]).name == "env":
        programs = [argument for argument in arguments[1:] if not argument.startswith("-") and "=" not in argument]
        return programs[0] if programs else arguments[0]
    return arguments[0] if arguments else None


def _has_file_capabilities(program_path: Path) -> bool:
    try:
        return bool(os.getxattr(program_path, "security.capability"))
    except OSError:
        return False
