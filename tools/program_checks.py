# SPDX-License-Identifier: Apache-2.0
"""Checks each program of a release: its architecture, glibc version and libraries by its bytes, and by a trial that it
starts and transfers data correctly.

A compiler or a library that is missing changes these silently: a program is left out, or needs a newer glibc, and the
wheel is still a valid wheel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

_MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
_GLIBC_LIBRARIES = frozenset(
    f"{name}.so.{number}" for name, number in (("libc", 6), ("libm", 6), ("libpthread", 0), ("libdl", 2), ("librt", 1))
) | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@dataclass(frozen=True)
class ProgramRule:
    """The libraries that a program needs besides glibc's, and the functions that it must import from glibc."""

    path: str
    libraries: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset({"memcpy"})


# memcpy, exp and log: zig's own are slower, and another exp changes results of the simulator's model.
PROGRAMS = (
    ProgramRule("sonde/bin/sonde-engine"),
    ProgramRule("sonde/bin/sonde-iobuf"),
    ProgramRule("sonde/bin/sonde-mount", frozenset({"libfuse3.so.3"}), frozenset({"memcpy", "log"})),
    ProgramRule("sonde/bin/sonde-mpi-abi.so", frozenset({"libmpi_abi.so.1"})),
    ProgramRule("sonde/bin/sonde-simulate", imports=frozenset({"memcpy", "exp", "log"})),
    ProgramRule("sonde/lib/libsonde-preload.so"),
)
# -W and -R compare all data.
_CHECKED_RUN = ("ior", "-a", "POSIX", "-F", "-t", "64k", "-b", "1m", "-w", "-W", "-r", "-R", "-o")


class ProgramError(Exception):
    """The first thing that is wrong with a program of the release."""


@dataclass(frozen=True)
class ProgramFacts:
    """Machine, needed libraries, needed versions of symbols by library, and imported functions of one ELF file."""

    machine: str
    libraries: frozenset[str]
    versions: frozenset[tuple[str, str]]
    imports: frozenset[str]


def read_program(path: Path) -> ProgramFacts:
    """Reads an ELF file of any machine with readelf."""
    command = ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", "--dyn-syms", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError as error:
        raise ProgramError("readelf is missing, which checks programs. Install the package binutils.") from error
    machine = re.search(r"^\s*Machine:\s+(.+?)\s*$", done.stdout, re.MULTILINE)
    if done.returncode or machine is None:
        raise ProgramError(f"{path.name} is not a program: {done.stderr.strip()}")
    versions, library = set(), ""
    for line in done.stdout.partition("Version needs section")[2].splitlines():
        if file := re.search(r"Version: 1\s+File: (\S+)", line):
            library = file[1]
        elif name := re.search(r"^\s+0x[0-9a-f]+:\s+Name: (\S+)", line):
            versions.add((library, name[1]))
    return ProgramFacts(
        machine=_MACHINES.get(machine[1], machine[1]),
        libraries=frozenset(re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", done.stdout)),
        versions=frozenset(versions),
        imports=frozenset(re.findall(r"\sUND\s+(\w+)", done.stdout)),
    )


def check_program(path: Path, rule: ProgramRule, architecture: str, newest_glibc: str) -> None:
    """Raises ProgramError unless the program is of that machine and runs with that glibc."""
    facts = read_program(path)
    if facts.machine != architecture:
        raise ProgramError(f"{rule.path} is a program of {facts.machine}, not of {architecture}.")
    foreign = sorted(facts.libraries - _GLIBC_LIBRARIES - rule.libraries)
    if foreign:
        raise ProgramError(f"{rule.path} of {architecture} needs {', '.join(foreign)}; link it statically.")
    contained = sorted(rule.libraries - facts.libraries)
    if contained:
        raise ProgramError(f"{rule.path} of {architecture} does not need {', '.join(contained)}; link it dynamically.")
    for library, version in sorted(facts.versions):
        if library in _GLIBC_LIBRARIES and not _is_old_enough(version, newest_glibc):
            raise ProgramError(
                f"{rule.path} of {architecture} needs {version} of {library}; {newest_glibc} is the newest allowed."
            )
    replaced = sorted(rule.imports - facts.imports)
    if replaced:
        raise ProgramError(f"{rule.path} of {architecture} does not take {', '.join(replaced)} from glibc.")


def _is_old_enough(symbol_version: str, newest_glibc: str) -> bool:
    """Whether a version of symbols is at most that glibc; GLIBC_ABI_… and GLIBC_PRIVATE belong to one glibc only."""
    number = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", symbol_version)
    return number is not None and _read_number(number[1]) <= _read_number(newest_glibc)


def _read_number(version_text: str) -> list[int]:
    return [int(part) for part in version_text.split(".")]


def check_wheel(wheel: Path, architecture: str, newest_glibc: str, folder: Path) -> None:
    """Unpacks the programs of a wheel into the folder and checks each; raises ProgramError."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for rule in PROGRAMS:
            if rule.path not in names:
                raise ProgramError(f"{wheel.name} lacks {rule.path}.")
            path = Path(archive.extract(rule.path, folder))
            path.chmod(0o755)
            check_program(path, rule, architecture, newest_glibc)


def find_emulator(architecture: str, library_folder: Path) -> list[str] | None:
    """Returns what a command of that machine begins with here: nothing on that machine, else qemu; None without it."""
    if os.uname().machine == architecture:
        return []
    emulator = shutil.which(f"qemu-{architecture}-static") or shutil.which(f"qemu-{architecture}")
    return [emulator, "-L", str(library_folder)] if emulator else None


def run_programs(folder: Path, emulator: list[str], version: str) -> None:
    """Starts the programs of check_wheel and lets the engine write and compare data through the preload library; raises
    ProgramError."""
    programs = folder / "sonde" / "bin"
    engine = str(programs / "sonde-engine")
    _require_output(f"sonde-engine {version}", [*emulator, engine, "--version"])
    _require_output("simulate a plan", [*emulator, str(programs / "sonde-simulate"), "--help"])
    _require_output("Runs PROGRAM with a buffer", [*emulator, str(programs / "sonde-iobuf"), "--help"])
    if "built without" in _require_output("io_uring", [*emulator, engine, "backends"]):
        raise ProgramError(f"{engine} was built without a backend; see `sonde-engine backends`.")
    preload = {"LD_PRELOAD": str(folder / "sonde" / "lib" / "libsonde-preload.so"), "IOBUF_PARAMS": "*:verbose"}
    # The emulator itself must not load a library of another machine.
    options = [option for name, value in preload.items() for option in ("-E", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as scratch:
        command = [engine, *_CHECKED_RUN, f"{scratch}/file"]
        _require_output("Summary of all tests:", [*emulator, *command])
        loaded = [*emulator, *options, *command] if emulator else ["env", *options[1::2], *command]
        _require_output("15 calls saved", loaded)


def _require_output(expected_text: str, command: list[str]) -> str:
    """Runs a command, which must succeed and print the text; returns its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode or expected_text not in done.stdout:
        raise ProgramError(
            f"{' '.join(command)} ended with {done.returncode} and without {expected_text!r}: {done.stdout}"
        )
    return done.stdout
