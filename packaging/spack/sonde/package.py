# SPDX-License-Identifier: Apache-2.0
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Sonde(PythonPackage):
    """Measures, explains and improves the I/O of parallel file systems."""

    homepage = "https://sonde.example.org"
    git = "https://sonde.example.org/sonde.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="MPI module for the MPI of this Spack installation")
    variant("mount", default=False, description="Mount simulated machines with FUSE")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("liburing@2.2:")
    depends_on("libfuse@3.12:", when="+mount")
    depends_on("mpi", when="+mpi")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-scikit-build-core@1.0:", type="build")
    with default_args(type=("build", "run")):
        depends_on("py-click@8.1:")
        depends_on("py-duckdb@1.2:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-jsonschema@4.20:")
        depends_on("py-numpy@1.26:")
        depends_on("py-psij-python@0.9.11:")
        depends_on("py-pyarrow@15:")
        depends_on("py-pyroute2@0.7:")
        depends_on("py-pyyaml@6:")
        depends_on("py-rich@13.7:")
        depends_on("py-tomli-w@1:")

    conflicts("%gcc@:11", msg="Sonde needs a C++20 compiler: GCC 12 or Clang 14")
    conflicts("platform=darwin", msg="The engine runs on Linux; install the pure wheel elsewhere")

    def setup_build_environment(self, env):
        # The wheel's own MPI is for machines without one.
        env.set("SONDE_NO_MPI", "1")
        if self.spec.satisfies("+mpi"):
            env.append_flags("CMAKE_ARGS", f"-DSONDE_MPICXX_SITE={self.spec['mpi'].mpicxx}")

    @run_after("install")
    def install_man_pages(self):
        python = self.spec["python"].command
        python.add_default_env("PYTHONPATH", join_path(self.prefix, python_platlib(self)))
        python(join_path(self.stage.source_path, "tools", "man-pages"), self.prefix)


def python_platlib(package):
    """Returns the folder of installed modules, relative to the prefix."""
    return package.spec["python"].package.platlib
