# SPDX-License-Identifier: Apache-2.0
import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # Spack before 1.0: spack.package has it
    pass


class Sonde(CMakePackage):
    """The programs of Sonde: an engine that measures storage, a simulator of described
    systems, and a library that buffers the small I/O of other programs. The command sonde,
    a Python package, finds them on PATH."""

    homepage = "https://sonde.example.org"
    git = "https://sonde.example.org/sonde.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="MPI module for the MPI of this Spack installation")
    variant("mount", default=False, description="Mount simulated machines with FUSE")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("liburing@2.2:")
    depends_on("libfuse@3.12:", when="+mount")
    depends_on("mpi", when="+mpi")

    conflicts("%gcc@:11", msg="Sonde needs a C++20 compiler: GCC 12 or Clang 14")
    conflicts("platform=darwin", msg="The engine runs on Linux; install the pure wheel elsewhere")

    def cmake_args(self):
        site = self.spec["mpi"].mpicxx if self.spec.satisfies("+mpi") else "OFF"
        return [
            self.define("SONDE_FETCH", False),
            self.define("SONDE_UNITY", True),
            self.define("SONDE_MPICXX_SITE", site),
            self.define_from_variant("SONDE_MOUNT", "mount"),
        ]

    @run_after("install")
    def link_programs(self):
        mkdirp(self.prefix.bin)
        for name in ("sonde-engine", "sonde-simulate", "sonde-mount", "sonde-iobuf"):
            program = join_path(self.prefix, "sonde", "bin", name)
            if os.path.exists(program):
                symlink(program, join_path(self.prefix.bin, name))

    def setup_run_environment(self, env):
        env.set("SONDE_PRELOAD", join_path(self.prefix, "sonde", "lib", "libsonde-preload.so"))

    def test_checked_run(self):
        """write a file and compare what is read back"""
        engine = which(join_path(self.prefix.bin, "sonde-engine"))
        run = ["ior", "-a", "POSIX", "-F", "-t", "64k", "-b", "1m", "-w", "-r", "-R", "-o", "file"]
        assert "Summary of all tests:" in engine(*run, output=str.split, error=str.split)
