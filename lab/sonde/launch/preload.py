# SPDX-License-Identifier: Apache-2.0
"""Locates the preload library and checks whether it can intercept a program.

The dynamic loader puts the library in front of libc. Statically linked programs have no loader, setuid programs ignore
preloaded libraries, and Go programs make system calls without libc: these are rejected before anything starts.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sonde.launch.components import Component, locate_component
from sonde.model.errors import MachineError, UserError

NAME = "libsonde-preload.so"
LIBRARY = Component(
    NAME,
    "SONDE_PRELOAD",
    "preload",
    f"The library {NAME} is not part of this installation;",
    package_folder="lib",
    is_program=False,
)
STARTER = "sonde-iobuf"
_MACHINES = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv64", 21: "ppc64"}
_DYNAMIC_LOADER = 3  # PT_INTERP
_DEEPEST_SCRIPT = 4  # as in the kernel

_MAX_TABLE_BYTES = 1 << 20  # of segments, sections or names that are looked at


@dataclass(frozen=True)
class ElfHeader:
    """What the ELF header of a program states."""

    bits: int
    machine: int
    has_loader: bool
    is_go_program: bool

    @property
    def name(self) -> str:
        return f"{_MACHINES.get(self.machine, f'machine {self.machine}')}, {self.bits} bit"


def find_library() -> Path:
    return locate_component(LIBRARY).path


def find_starter() -> Path:
    """The program sonde-iobuf: in the package, or next to the library in a build tree."""
    library = find_library()
    for path in (library.parent / STARTER, library.parent.parent / "bin" / STARTER):
        if path.is_file():
            return path
    raise MachineError(f"The program {STARTER} is not part of this installation; install sonde again.")


def make_preload_environment(library: Path, **variables: str) -> dict[str, str]:
    """The environment of a program under the library. Libraries that are preloaded already come after ours."""
    preloaded = os.environ.get("LD_PRELOAD", "").split()
    others = [path for path in preloaded if Path(path).name != NAME]
    return {**os.environ, "LD_PRELOAD": " ".join([str(library), *others]), **variables}


def check_program(name: str, library: Path) -> Path:
    """Returns the path of the program that will run. Raises UserError with the reason when the library cannot intercept
    it."""
    path = shutil.which(name)
    if path is None:
        raise UserError(f'There is no program "{name}" that can be run.')
    _check_interceptable(Path(path), name, library, _DEEPEST_SCRIPT)
    return Path(path)


def check_settings(library: Path, variables: Mapping[str, str]) -> None:
    """Raises UserError when the library does not understand its settings. In a job script the library warns and
    continues, like IOBUF; a user who types the settings can correct them. The check runs `true` under the library and
    reads its warnings."""
    program = shutil.which("true")
    if program is None:
        return
    environment = make_preload_environment(library, **variables)
    try:
        messages = subprocess.run(
            [program], env=environment, capture_output=True, text=True, check=False, timeout=30
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in messages.splitlines():
        if line.startswith("sonde: IOBUF_PARAMS: ") and not line.endswith("the nearest possible one is taken."):
            raise UserError(line.removeprefix("sonde: ").replace(" and is ignored", ""))


def _check_interceptable(path: Path, name: str, library: Path, depth: int) -> None:
    interpreter = _find_script_interpreter(path)
    if interpreter is not None and depth > 0:
        target = shutil.which(interpreter)
        if target is not None:
            _check_interceptable(Path(target), f"{name} (run by {interpreter})", library, depth - 1)
        return
    program, ours = read_elf(path), read_elf(library)
    if program is None:
        return  # a script without an interpreter line: the shell runs it
    if ours is not None and (program.bits, program.machine) != (ours.bits, ours.machine):
        raise UserError(f"{name} is a program for {program.name}, and the library is for {ours.name}.")
    if program.is_go_program:
        raise UserError(
            f"{name} is written in Go, which makes system calls without the C library: they cannot be intercepted."
        )
    if not program.has_loader:
        raise UserError(
            f"{name} is linked statically: it loads no library, so its calls cannot be intercepted. Link it"
            " dynamically."
        )
    status = path.stat()
    gains_rights = (status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()) or (
        status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    )
    if gains_rights or _has_capabilities(path):
        raise UserError(
            f"{name} runs with more rights than you have (setuid, setgid or capabilities): the loader then ignores"
            " preloaded libraries."
        )


def _find_script_interpreter(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
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


def _has_capabilities(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def read_elf(path: Path) -> ElfHeader | None:
    """The header of an ELF file; None for any other file."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF" or len(head) < 52:
                return None
            is_64_bit, order = head[4] == 2, "<" if head[5] == 1 else ">"
            word = "Q" if is_64_bit else "I"
            machine = struct.unpack_from(f"{order}H", head, 18)[0]
            segment_table, section_table = struct.unpack_from(f"{order}{word}{word}", head, 32 if is_64_bit else 28)
            sizes = struct.unpack_from(f"{order}HHHHH", head, 54 if is_64_bit else 42)
            segment_size, segment_count, section_size, section_count, names_section = sizes
            file.seek(segment_table)
            segments = file.read(min(segment_size * segment_count, _MAX_TABLE_BYTES))
            kinds = [struct.unpack_from(f"{order}I", segments, i * segment_size)[0] for i in range(segment_count)]
            file.seek(section_table)
            sections = file.read(min(section_size * section_count, _MAX_TABLE_BYTES))
            names = b""
            if section_count > names_section > 0:
                entry = names_section * section_size + (24 if is_64_bit else 16)
                offset, length = struct.unpack_from(f"{order}{word}{word}", sections, entry)
                file.seek(offset)
                names = file.read(min(length, _MAX_TABLE_BYTES))
    except (OSError, ValueError, OverflowError, struct.error):
        return None
    is_go_program = b".note.go.buildid" in names or b".go.buildinfo" in names
    return ElfHeader(64 if is_64_bit else 32, machine, _DYNAMIC_LOADER in kinds, is_go_program)
