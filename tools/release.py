# SPDX-License-Identifier: Apache-2.0
"""Builds everything that a release consists of, into build/release (docs/develop/release.md).

* sonde-VERSION-py3-none-any.whl: the lab without programs, for any laptop
* sonde-VERSION-py3-none-manylinux_2_28_MACHINE.whl: the lab, engine, preload library and simulator
* sonde-engine-VERSION-linux-MACHINE.tar.gz: one engine that needs libc only, for nodes without Python
* sonde-VERSION.tar.gz: the sources
* sonde-VERSION.cdx.json: CycloneDX list of what the lab needs; SHA256SUMS: checksums of all of these

The same commit gives the same bytes: times are those of the commit ($SOURCE_DATE_EPOCH). Programs are built for each
machine of cross_compiler.py, whatever this machine is. program_checks.py checks them, and tries those of another
machine where qemu-user-static is installed.

Usage: tools/release.py [MACHINE...]      x86_64, aarch64; default: both
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from cross_compiler import ARCHITECTURES, MIN_GLIBC_VERSION, CompilerError, CrossCompiler
from program_checks import ProgramError, check_wheel, find_emulator, run_programs
from progress import run_with_progress

ROOT = Path(__file__).resolve().parents[1]
RELEASE_FOLDER = ROOT / "build" / "release"
WORK_FOLDER = ROOT / "build" / "release-work"


def read_version() -> str:
    """Returns the version of CMakeLists.txt, the only place where it is written."""
    match = re.search(r"project\(sonde\s+VERSION\s+([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert match is not None
    return match[1]


def find_commit_time() -> int:
    """Returns $SOURCE_DATE_EPOCH, else the time of the commit."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(stated or subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def build_wheel(title: str, variables: Mapping[str, str], folder: Path, *options: str) -> Path:
    """Builds one wheel into the folder."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-v", "--no-build-isolation"]
    run_step(title, [*command, "--no-deps", "-w", str(folder), *options, str(ROOT)], variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


def run_step(title: str, command: list[str], variables: Mapping[str, str]) -> None:
    """Runs one command with progress and these variables; ends the program if it fails."""
    log = WORK_FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.txt"
    code = run_with_progress(title, log, ["env", *(f"{name}={value}" for name, value in variables.items()), *command])
    if code:
        raise SystemExit(code)


def add_files(wheel: Path, prefix: Path, commit_time_s: int) -> None:
    """Adds files below a prefix to a wheel, as data that is installed below the environment's prefix; rewrites its
    RECORD and gives every entry the time of the commit."""
    with zipfile.ZipFile(wheel) as archive:
        files = [info for info in archive.infolist() if not info.is_dir()]  # RECORD must list files only
        entries = {info.filename: (archive.read(info), info.external_attr) for info in files}
    record = next(name for name in entries if name.endswith(".dist-info/RECORD"))
    data = record.replace(".dist-info/RECORD", ".data/data")
    for path in sorted(prefix.rglob("*")):
        if path.is_file():
            entries[f"{data}/{path.relative_to(prefix)}"] = (path.read_bytes(), 0o100644 << 16)
    lines = [
        f"{name},{_record_hash(content)},{len(content)}\n" for name, (content, _) in entries.items() if name != record
    ]
    entries[record] = ("".join([*sorted(lines), f"{record},,\n"]).encode(), entries[record][1])
    moment = convert_epoch_to_time_tuple(commit_time_s)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(entries, key=lambda entry: (".dist-info/" in entry, entry)):
            info = zipfile.ZipInfo(name, moment)
            info.external_attr = entries[name][1]
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entries[name][0])


def _record_hash(file_content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(file_content).digest()).rstrip(b"=").decode()


def convert_epoch_to_time_tuple(epoch_s: int) -> tuple[int, int, int, int, int, int]:
    """Returns the time as a ZIP file stores it."""
    moment = time.gmtime(max(epoch_s, 315_532_800))
    return moment.tm_year, moment.tm_mon, moment.tm_mday, moment.tm_hour, moment.tm_min, moment.tm_sec


def build_platform_wheel(architecture: str, version: str, variables: Mapping[str, str]) -> Path:
    """Builds the wheel with programs for a machine, checks what they need and tries them.

    The MPI of the environment and libfuse stay outside: users have theirs.
    """
    compiler = CrossCompiler(architecture, WORK_FOLDER / f"compiler-{architecture}")
    print(f"Fetching libraries for {architecture}", flush=True)
    compiler.fetch_libraries_and_write_scripts()
    definitions = [
        f"--config-settings=cmake.define.{key}={value}" for key, value in compiler.list_definitions().items()
    ]
    # One folder deeper than other trees: the lab and the tests take the newest program of build/*.
    options = [*definitions, f"--config-settings=build-dir=build/release-tree/{architecture}"]
    options.append("--config-settings=install.strip=false")  # the strip of this machine knows no other
    title = f"Building the platform wheel for {architecture}"
    wheel = build_wheel(title, {**variables, **compiler.find_variables()}, WORK_FOLDER / architecture, *options)
    folder = WORK_FOLDER / architecture / "repaired"
    platform = f"manylinux_{MIN_GLIBC_VERSION.replace('.', '_')}_{architecture}"
    # auto: it knows the names of this machine's platforms only, but finds that of the wheel.
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "--only-plat", "-w", str(folder)]
    outside = [option for name in ("libmpi_abi.so.1", "libfuse3.so.3") for option in ("--exclude", name)]
    run_step(f"Checking the platform wheel for {architecture}", [*command, *outside, str(wheel)], variables)
    (repaired,) = folder.glob("*.whl")
    if not repaired.stem.endswith(f"-{platform}"):
        raise ProgramError(f"{repaired.name} is not a wheel for {platform}.")
    programs = WORK_FOLDER / architecture / "programs"
    check_wheel(repaired, architecture, MIN_GLIBC_VERSION, programs)
    emulator = find_emulator(architecture, compiler.system)
    if emulator is None:
        print(f"Programs of {architecture} are not tried: qemu-user-static is not installed", flush=True)
    else:
        print(f"Trying the programs of {architecture}", flush=True)
        run_programs(programs, emulator, version)
    return repaired


def pack_engine(wheel: Path, architecture: str, version: str, commit_time_s: int) -> Path:
    """Packs the engine of the platform wheel with its license and formats into a tarball."""
    name = f"sonde-engine-{version}-linux-{architecture}"
    with zipfile.ZipFile(wheel) as archive:
        members = {
            "bin/sonde-engine": archive.read("sonde/bin/sonde-engine"),
            "LICENSE": (ROOT / "LICENSE").read_bytes(),
            "README.md": (ROOT / "packaging" / "engine-README.md").read_bytes(),
        }
    path = RELEASE_FOLDER / f"{name}.tar.gz"
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member, content in sorted(members.items()):
            info = tarfile.TarInfo(f"{name}/{member}")
            info.size, info.mtime = len(content), commit_time_s
            info.mode = 0o755 if member.startswith("bin/") else 0o644
            archive.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(tar.getvalue(), 9, mtime=commit_time_s))
    return path


def pack_sources(version: str) -> Path:
    """Packs the committed files."""
    path = RELEASE_FOLDER / f"sonde-{version}.tar.gz"
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", f"--prefix=sonde-{version}/", "HEAD"]
    tar = subprocess.run(command, capture_output=True, check=True).stdout
    path.write_bytes(gzip.compress(tar, 9, mtime=0))
    return path


def write_component_list(version: str, variables: Mapping[str, str]) -> None:
    """Writes the CycloneDX list of the lab's requirements, as pyproject.toml states them."""
    requirements = WORK_FOLDER / "requirements.txt"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements.write_text("\n".join(project["dependencies"]) + "\n", encoding="utf-8")
    output = RELEASE_FOLDER / f"sonde-{version}.cdx.json"
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible", "--of", "JSON"]
    run_step("Listing components", [*command, "-o", str(output), str(requirements)], variables)


def main() -> None:
    """Builds all files of the release."""
    machines = sys.argv[1:] or list(ARCHITECTURES)
    unknown = [name for name in machines if name not in ARCHITECTURES]
    if unknown:
        sys.stderr.write(f"tools/release.py: unknown machine {unknown[0]!r}; use {' or '.join(ARCHITECTURES)}.\n")
        raise SystemExit(2)
    version, epoch = read_version(), find_commit_time()
    for folder in (RELEASE_FOLDER, WORK_FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    environment = {"SOURCE_DATE_EPOCH": str(epoch), "PYTHONPATH": str(ROOT / "lab")}
    prefix = WORK_FOLDER / "prefix"
    run_step("Writing man pages", [sys.executable, str(ROOT / "tools" / "man-pages"), str(prefix)], environment)
    pure = build_wheel(
        "Building the pure wheel", {**environment, "SONDE_PURE": "1", "SONDE_NO_MPI": "1"}, WORK_FOLDER / "pure"
    )
    add_files(pure, prefix, epoch)
    shutil.copy(pure, RELEASE_FOLDER)
    for machine in machines:
        wheel = build_platform_wheel(machine, version, environment)
        add_files(wheel, prefix, epoch)
        shutil.copy(wheel, RELEASE_FOLDER)
        pack_engine(wheel, machine, version, epoch)
    pack_sources(version)
    write_component_list(version, environment)
    files = sorted(RELEASE_FOLDER.iterdir())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (RELEASE_FOLDER / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")


if __name__ == "__main__":
    try:
        main()
    except CompilerError as error:
        sys.stderr.write(f"tools/release.py: {error}\n")
        raise SystemExit(3) from error
    except ProgramError as error:
        sys.stderr.write(f"tools/release.py: {error}\n")
        raise SystemExit(1) from error
