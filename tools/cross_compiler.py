# SPDX-License-Identifier: Apache-2.0
"""The compiler of a release: zig from PyPI, for one machine and the oldest glibc that Sonde supports.

Headers and static libraries come from Debian's packages for that machine, and the standard ABI of MPI from the
`mpich` wheel for that machine. Both are unpacked into a folder; nothing is installed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = ("x86_64", "aarch64")
MIN_GLIBC_VERSION = "2.28"
_DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
_LIBRARIES = ("liburing-dev", "libfuse3-dev", "libfuse3-3", "nlohmann-json3-dev", "libcli11-dev")


class CompilerError(Exception):
    """Something that the build needs is missing. The message states what to do."""


@dataclass(frozen=True)
class CrossCompiler:
    """Builds programs for one machine; `folder` holds the compiler's script and all libraries."""

    machine: str
    folder: Path

    @property
    def system(self) -> Path:
        """A root folder with glibc, for programs of that machine in an emulator; the compiler does not see it."""
        return self.folder / "system"

    def fetch_libraries_and_write_scripts(self) -> None:
        """Fetches the libraries and writes the scripts that CMake calls."""
        self.folder.mkdir(parents=True)
        self._unpack_debian_packages()
        self._unpack_mpi()
        outline = " -mno-outline-atomics" if self.machine == "aarch64" else ""
        target = f"{self.machine}-linux-gnu.{MIN_GLIBC_VERSION}"
        command = f"{shlex.quote(sys.executable)} -m ziglang c++ -target {target}{outline}"
        _write_script(self.get_script_path("clang++"), f'exec {command} "$@"')
        mpi = shlex.quote(str(self.folder / "mpi"))
        _write_script(self.get_script_path("mpicxx"), f"echo c++ -DMPI_ABI -I{mpi}/include -L{mpi}/lib -lmpi_abi")

    def find_variables(self) -> dict[str, str]:
        """Returns the environment variables that cmake/cross_compiler.cmake and pkg-config read."""
        libraries = self.folder / "debian"
        (libgcc,) = libraries.glob("usr/lib/gcc/*/*/libgcc.a")
        return {
            "SONDE_RELEASE_MACHINE": self.machine,
            "SONDE_RELEASE_COMPILER": str(self.get_script_path("clang++")),
            "SONDE_RELEASE_LIBRARIES": str(libraries),
            "SONDE_RELEASE_LIBGCC": str(libgcc),
            "PKG_CONFIG_LIBDIR": str(libraries / f"usr/lib/{self.machine}-linux-gnu/pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(libraries),
            "_PYTHON_HOST_PLATFORM": f"linux-{self.machine}",
        }

    def list_definitions(self) -> dict[str, str]:
        """Returns the CMake variables that select this compiler and its libraries."""
        return {
            "CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake" / "cross_compiler.cmake"),
            "SONDE_PORTABLE": "ON",
            "SONDE_FETCH": "OFF",
            "SONDE_MPICXX_ABI": str(self.get_script_path("mpicxx")),
            "SONDE_MPICXX_SITE": "OFF",
        }

    def get_script_path(self, program_name: str) -> Path:
        return self.folder / f"{self.machine}-{program_name}"

    def _unpack_debian_packages(self) -> None:
        """Downloads the packages with a state of apt's own, so that no architecture is added to this system."""
        apt, target = self.folder / "apt", self.folder / "debian"
        for part in ("state/lists/partial", "cache/archives/partial", "packages"):
            (apt / part).mkdir(parents=True)
        (apt / "status").touch()
        name = _DEBIAN_NAMES[self.machine]
        settings = {
            "APT::Architecture": name,
            "APT::Architectures": name,
            "APT::Sandbox::User": "root",
            "Dir::State": f"{apt}/state",
            "Dir::State::status": f"{apt}/status",
            "Dir::Cache": f"{apt}/cache",
        }
        options = [f"-o{key}={value}" for key, value in settings.items()]
        _run_command(["apt-get", "-qq", *options, "update"], apt)
        listing = _run_command(["apt-cache", *options, "search", "--names-only", "^libgcc-[0-9]+-dev$"], apt)
        versions = sorted(int(number) for number in re.findall(r"^libgcc-(\d+)-dev", listing, re.MULTILINE))
        if not versions:
            raise CompilerError(
                f"apt knows no libgcc-*-dev for {name}. Give it a source of Debian or Ubuntu for {name}."
            )
        packages = [*_LIBRARIES, f"libgcc-{versions[-1]}-dev"]
        _run_command(["apt-get", "-qq", *options, "download", *packages, "libc6"], apt / "packages")
        for package in sorted((apt / "packages").glob("*.deb")):
            folder = self.system if package.name.startswith("libc6_") else target
            _run_command(["dpkg-deb", "-x", str(package), str(folder)], apt)
        # An absolute link: it would lead to the library of this system, or to none, and glob() leaves out such links.
        for link in (folder / "libfuse3.so" for folder in target.glob("usr/lib/*-linux-gnu")):
            library = target / str(link.readlink()).lstrip("/") if link.readlink().is_absolute() else link.resolve()
            link.unlink()
            link.symlink_to(library)

    def _unpack_mpi(self) -> None:
        """Unpacks headers and library of the `mpich` wheel for the machine."""
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--platform", f"manylinux_2_28_{self.machine}"]
        command += ["-d", str(self.folder), "mpich>=5.0.2"]
        _run_command(command, self.folder)
        (wheel,) = self.folder.glob("mpich-*.whl")
        target = self.folder / "mpi"
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                part = name.partition(".data/data/")[2]
                if (part.startswith("include/") and not part.endswith("/")) or part == "lib/libmpi_abi.so.1":
                    path = target / part
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(name))
        (target / "lib" / "libmpi_abi.so").symlink_to("libmpi_abi.so.1")


def _run_command(command: list[str], folder: Path) -> str:
    """Runs a command in the folder; returns its output."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except FileNotFoundError as error:
        raise CompilerError(
            f"{command[0]} is missing, which fetches the libraries of a release. Build releases on Debian or Ubuntu."
        ) from error
    if done.returncode:
        raise CompilerError(f"{shlex.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def _write_script(path: Path, command_line: str) -> None:
    path.write_text(f"#!/bin/sh\n{command_line}\n", encoding="utf-8")
    path.chmod(0o755)
