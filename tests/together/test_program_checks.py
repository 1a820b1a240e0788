# SPDX-License-Identifier: Apache-2.0
"""What tools/release.py refuses to release: programs of another machine, for a newer glibc, with other libraries, or
that do not work. The programs are linked here with a libc of known symbol versions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sonde.launch.preload import find_iobuf_starter, find_preload_library
from sonde.launch.simulator import find_simulator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from program_checks import (  # noqa: E402
    PROGRAMS,
    ProgramError,
    ProgramRule,
    check_program,
    check_wheel,
    find_emulator,
    run_programs,
)
from release import read_version  # noqa: E402

RULE = ProgramRule("bin/program")
MACHINE = os.uname().machine


def link(folder: Path, source: str, name: str, *options: str) -> Path:
    """Links a shared object without any library of this system."""
    (folder / f"{name}.c").write_text(source, encoding="utf-8")
    command = ["c++", "-x", "c", "-fPIC", "-fno-builtin", "-shared", "-nostdlib", f"{name}.c", "-x", "none", *options]
    subprocess.run([*command, "-o", name], cwd=folder, check=True)
    return folder / name


def link_program(folder: Path, version: str, *, soname: str = "libc.so.6", definitions: str = "") -> Path:
    """Links a program that takes memcpy of GLIBC_2.28 and one function of the version from a library."""
    script = "GLIBC_2.28 { global: memcpy; local: *; };\n" if version != "GLIBC_2.28" else ""
    names = "extra;" if script else "memcpy; extra;"
    (folder / "versions").write_text(f"{script}{version} {{ global: {names} }};\n", encoding="utf-8")
    functions = "void memcpy(void) {}\nvoid extra(void) {}\n"
    library = link(folder, functions, "library.so", f"-Wl,-soname,{soname},--version-script,versions")
    source = f"void memcpy(void);\nvoid extra(void);\n{definitions}void run(void) {{ memcpy(); extra(); }}\n"
    return link(folder, source, "program", library.name)


def test_newest_allowed_glibc_is_accepted(tmp_path: Path) -> None:
    check_program(link_program(tmp_path, "GLIBC_2.28"), RULE, MACHINE, "2.28")


@pytest.mark.parametrize("version", ["GLIBC_2.29", "GLIBC_2.100", "GLIBC_3.0", "GLIBC_ABI_DT_RELR", "GLIBC_PRIVATE"])
def test_newer_glibc_is_rejected(tmp_path: Path, version: str) -> None:
    with pytest.raises(ProgramError, match=rf"bin/program of {MACHINE} needs {version} of libc.so.6; 2.28 is"):
        check_program(link_program(tmp_path, version), RULE, MACHINE, "2.28")


def test_program_of_another_machine_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=f"is a program of {MACHINE}, not of riscv64"):
        check_program(link_program(tmp_path, "GLIBC_2.28"), RULE, "riscv64", "2.28")


def test_other_library_is_rejected_unless_the_rule_has_it(tmp_path: Path) -> None:
    program = link_program(tmp_path, "GLIBCXX_3.4.30", soname="libstdc++.so.6")
    with pytest.raises(ProgramError, match=r"needs libstdc\+\+.so.6; link it statically"):
        check_program(program, RULE, MACHINE, "2.28")
    check_program(program, ProgramRule("bin/program", frozenset({"libstdc++.so.6"})), MACHINE, "2.28")


def test_library_linked_statically_against_the_rule_is_rejected(tmp_path: Path) -> None:
    program = link_program(tmp_path, "GLIBC_2.28")
    with pytest.raises(ProgramError, match=r"does not need libfuse3.so.3; link it dynamically"):
        check_program(program, ProgramRule("bin/program", frozenset({"libfuse3.so.3"})), MACHINE, "2.28")


def test_program_with_a_custom_memcpy_is_rejected(tmp_path: Path) -> None:
    program = link_program(tmp_path, "GLIBC_2.28", definitions="void memcpy(void) {}\n")
    with pytest.raises(ProgramError, match="does not take memcpy from glibc"):
        check_program(program, RULE, MACHINE, "2.28")


def test_text_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n", encoding="utf-8")
    with pytest.raises(ProgramError, match="program is not a program"):
        check_program(tmp_path / "program", RULE, MACHINE, "2.28")


@pytest.mark.parametrize("absent", [rule.path for rule in PROGRAMS])
def test_wheel_without_a_program_is_rejected(tmp_path: Path, absent: str) -> None:
    functions = "void memcpy(void);\nvoid exp(void);\nvoid log(void);\nvoid run(void) { memcpy(); exp(); log(); }\n"
    wheel = tmp_path / "sonde.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for rule in PROGRAMS:
            libraries = [link(tmp_path, "", name, f"-Wl,-soname,{name}").name for name in rule.libraries]
            program = link(tmp_path, functions, "program", "-Wl,--no-as-needed", *libraries)
            archive.write(program, rule.path if rule.path != absent else "sonde/other")
    with pytest.raises(ProgramError, match=f"sonde.whl lacks {absent}"):
        check_wheel(wheel, MACHINE, "2.28", tmp_path / "programs")


@pytest.fixture
def programs(engine: Path, tmp_path: Path) -> Path:
    """The programs of this checkout, laid out as in a wheel."""
    backends = subprocess.run([engine, "backends"], capture_output=True, text=True, check=True).stdout
    if "built without" in backends:
        pytest.skip("the engine was built without liburing")
    library, folder = find_preload_library(), tmp_path / "programs" / "sonde"
    for part in ("bin", "lib"):
        (folder / part).mkdir(parents=True)
    for program in (engine, find_simulator(), find_iobuf_starter()):
        shutil.copy(program, folder / "bin")
    shutil.copy(library, folder / "lib")
    return folder.parent


def test_working_programs_are_accepted(programs: Path) -> None:
    run_programs(programs, [], read_version())


def test_engine_of_another_version_is_rejected(programs: Path) -> None:
    with pytest.raises(ProgramError, match=r"without 'sonde-engine 99\.1'"):
        run_programs(programs, [], "99.1")


def test_preload_library_without_effect_is_rejected(programs: Path, tmp_path: Path) -> None:
    (programs / "sonde" / "lib" / "libsonde-preload.so").unlink()
    link(programs / "sonde" / "lib", "void nothing(void) {}\n", "libsonde-preload.so")
    with pytest.raises(ProgramError, match="without '15 calls saved'"):
        run_programs(programs, [], read_version())


def test_machine_without_emulator_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_emulator(MACHINE, tmp_path) == []
    assert find_emulator("riscv64", tmp_path) is None
    emulator = tmp_path / "qemu-riscv64-static"
    emulator.touch(0o755)
    assert find_emulator("riscv64", tmp_path) == [str(emulator), "-L", str(tmp_path)]
