# SPDX-License-Identifier: Apache-2.0
"""Where the preload library is, and whether a program can be started under it.

The loader puts the library in front of libc in programs that are linked dynamically. Programs that are linked
statically have no loader, programs with more rights than their caller ignore it, and programs of Go make their system
calls without libc: for these a sentence says so before anything is started.
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

from sonde.launch.parts import Part, find
from sonde.model.errors import MachineError, UserError

NAME = "libsonde-preload.so"
LIBRARY = Part(
    NAME,
    "SONDE_PRELOAD",
    "preload",
    f"The library {NAME} is not part of this installation;",
    packaged_in="lib",
    program=False,
)
STARTER = "sonde-iobuf"
_MACHINES = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv64", 21: "ppc64"}
_DYNAMIC_LOADER = 3  # PT_INTERP
_DEEPEST_SCRIPT = 4  # as in the kernel


@dataclass(frozen=True)
class Elf:
    """What the head of a program says about it."""

    bits: int
    machine: int
    has_loader: bool
    go: bool

    @property
    def name(self) -> str:
        return f"{_MACHINES.get(self.machine, f'machine {self.machine}')}, {self.bits} bit"


def find_library() -> Path:
    return find(LIBRARY).path


def find_starter() -> Path:
    """The program sonde-iobuf: in the package, or beside the library in a build tree."""
    library = find_library()
    for place in (library.parent / STARTER, library.parent.parent / "bin" / STARTER):
        if place.is_file():
            return place
    raise MachineError(f"The program {STARTER} is not part of this installation; install sonde again.")


def environment(library: Path, **variables: str) -> dict[str, str]:
    """The environment of a program under the library. What is preloaded already stays, behind ours."""
    before = os.environ.get("LD_PRELOAD", "").split()
    preloaded = [str(library), *(one for one in before if Path(one).name != NAME)]
    return {**os.environ, "LD_PRELOAD": " ".join(preloaded), **variables}


def check_program(name: str, library: Path) -> Path:
    """The program that will run, when it can be intercepted; raises UserError with the reason when it cannot."""
    found = shutil.which(name)
    if found is None:
        raise UserError(f'There is no program "{name}" that can be run.')
    _check(Path(found), name, library, _DEEPEST_SCRIPT)
    return Path(found)


def check_settings(library: Path, variables: Mapping[str, str]) -> None:
    """Raises UserError when the library does not understand its settings. In a job script it warns and goes on, like
    IOBUF; who types them now can correct them. The library itself is asked, in front of a program that does nothing."""
    nothing = shutil.which("true")
    if nothing is None:
        return
    try:
        said = subprocess.run(
            [nothing], env=environment(library, **variables), capture_output=True, text=True, check=False, timeout=30
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in said.splitlines():
        if line.startswith("sonde: IOBUF_PARAMS: ") and not line.endswith("the nearest possible one is taken."):
            raise UserError(line.removeprefix("sonde: ").replace(" and is ignored", ""))


def _check(path: Path, name: str, library: Path, depth: int) -> None:
    interpreter = _script_interpreter(path)
    if interpreter is not None and depth > 0:
        target = shutil.which(interpreter)
        if target is not None:
            _check(Path(target), f"{name} (run by {interpreter})", library, depth - 1)
        return
    program, ours = read_elf(path), read_elf(library)
    if program is None:
        return  # a script without a first line: the shell runs it
    if ours is not None and (program.bits, program.machine) != (ours.bits, ours.machine):
        raise UserError(f"{name} is a program for {program.name}, and the library is for {ours.name}.")
    if program.go:
        raise UserError(
            f"{name} is written in Go, which makes system calls without the C library: they cannot be intercepted."
        )
    if not program.has_loader:
        raise UserError(
            f"{name} is linked statically: it never asks for a library, so its calls cannot be intercepted. Link it"
            " dynamically."
        )
    mode = path.stat()
    gains = (mode.st_mode & stat.S_ISUID and mode.st_uid != os.geteuid()) or (
        mode.st_mode & stat.S_ISGID and mode.st_gid != os.getegid()
    )
    if gains or _has_capabilities(path):
        raise UserError(
            f"{name} runs with more rights than you have (setuid, setgid or capabilities): the loader then ignores"
            " preloaded libraries."
        )


def _script_interpreter(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = line[2:].decode("utf-8", "replace").split()
    if len(words) > 1 and Path(words[0]).name == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return rest[0] if rest else words[0]
    return words[0] if words else None


def _has_capabilities(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def read_elf(path: Path) -> Elf | None:
    """The head of an ELF file; None for anything else."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF" or len(head) < 52:
                return None
            wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
            machine = struct.unpack_from(f"{order}H", head, 18)[0]
            table, sections = struct.unpack_from(f"{order}{'QQ' if wide else 'II'}", head, 32 if wide else 28)
            sizes = struct.unpack_from(f"{order}HHHHH", head, 54 if wide else 42)
            file.seek(table)
            segments = file.read(sizes[0] * sizes[1])
            kinds = [struct.unpack_from(f"{order}I", segments, i * sizes[0])[0] for i in range(sizes[1])]
            file.seek(sections)
            heads = file.read(sizes[2] * sizes[3])
            names = b""
            if sizes[3] > sizes[4] > 0:
                at = sizes[4] * sizes[2] + (24 if wide else 16)
                offset, length = struct.unpack_from(f"{order}{'QQ' if wide else 'II'}", heads, at)
                file.seek(offset)
                names = file.read(min(length, 1 << 20))
    except (OSError, struct.error):
        return None
    go = b".note.go.buildid" in names or b".go.buildinfo" in names
    return Elf(64 if wide else 32, machine, _DYNAMIC_LOADER in kinds, go)
