# SPDX-License-Identifier: Apache-2.0
"""Makes the Python environment `.venv` and fills it with what a group of tasks needs.

Usage: python3 tools/environment.py GROUP, where GROUP is `compile` (to build Sonde without MPI), `build` (to build and
run it), `test`, `docs`, `dev`, `fuzz`, `tidy`, `release` or `reframe`. The lists are those of pyproject.toml; nothing
is named twice. `build` also installs what builds the package, so that the package can be built again and again in one
build tree (pip's isolated builds would start from nothing). `reframe` goes into build/reframe: its requirements differ
from those of .venv.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NoReturn

from progress import run_with_progress

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
SEPARATE_FOLDERS = {"reframe": ROOT / "build" / "reframe"}
# Groups of a hundred packages: pip needs a minute for them, uv ten seconds.
LARGE_GROUPS = ("test", "dev")
# Options of pip that say where packages come from, with the variables and the separators that uv reads them with.
UV_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
}


def exit_with_error(sentence: str) -> NoReturn:
    """Ends with exit code 3: the environment lacks something."""
    sys.stderr.write(sentence + "\n")
    raise SystemExit(3)


def make_venv() -> None:
    """Makes .venv, or makes it anew when its Python no longer runs."""
    python = VENV / "bin" / "python"
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    print("Making the Python environment .venv", flush=True)
    # Debian splits venv: without python3-venv the module is there but cannot install pip.
    ways = [[sys.executable, "-m", "venv", str(VENV)], [sys.executable, "-m", "virtualenv", "-q", str(VENV)]]
    if shutil.which("uv"):
        ways.append(["uv", "venv", "-q", "--seed", "--python", sys.executable, str(VENV)])
    for command in ways:
        if subprocess.run(command, capture_output=True).returncode == 0:
            return
        shutil.rmtree(VENV, ignore_errors=True)
    exit_with_error(
        "No Python environment could be made. Install python3-venv (Debian, Ubuntu), virtualenv or uv, and try again."
    )


def has_mpi_wheel() -> bool:
    """Whether PyPI has an mpich wheel for this machine: glibc Linux on two architectures. Elsewhere the engine works
    without MPI."""
    glibc = sys.platform == "linux" and bool(os.confstr("CS_GNU_LIBC_VERSION"))
    return glibc and os.uname().machine in ("x86_64", "aarch64") and not os.environ.get("SONDE_NO_MPI")


def read_requirements(requirement_group: str) -> list[str]:
    """Requirements of a group in pyproject.toml, as arguments of pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    if requirement_group not in ("compile", "build"):
        if requirement_group not in extras:
            known_groups = ", ".join(("compile", "build", *extras))
            exit_with_error(f"tools/environment.py: unknown group {requirement_group!r}; use {known_groups}.")
        wanted: list[str] = []
        for item in extras[requirement_group]:
            # sonde[test,docs] refers to other lists; Sonde itself is installed by `make build`.
            name, _, inner = item.partition("[")
            nested = inner.rstrip("]").split(",") if name == "sonde" else []
            wanted += [requirement for other in nested for requirement in extras[other]] if nested else [item]
        return wanted
    tools = []
    if not is_new_enough("cmake", (3, 25)):
        tools.append("cmake>=3.25")
    if not shutil.which("ninja"):
        tools.append("ninja")
    if requirement_group == "compile":
        # PSI/J takes no newer one, and pip must not replace it while a build uses it.
        return [*project["build-system"]["requires"], "packaging<=25.0", *tools]
    mpi = extras["mpi"] if has_mpi_wheel() else []
    return [*project["build-system"]["requires"], *project["project"]["dependencies"], *mpi, *tools]


def is_new_enough(program_name: str, min_version: tuple[int, int]) -> bool:
    """True when `program --version` begins with a version of at least `min_version`."""
    if not shutil.which(program_name):
        return False
    text = subprocess.run([program_name, "--version"], capture_output=True, text=True).stdout.split()
    version = next((word for word in text if word[0].isdigit()), "0.0")
    return tuple(int(part) for part in version.split(".")[:2]) >= min_version


def read_uv_variables(pip: list[str]) -> dict[str, str]:
    """Returns the variables with which uv takes packages from where pip is configured to take them."""
    lines = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout.splitlines()
    variables = {}
    for line in lines:  # such as global.index-url='https://…'
        key, _, value = line.partition("=")
        option = key.rpartition(".")[2]
        if option in UV_VARIABLES:
            variable, separator = UV_VARIABLES[option]
            variables[variable] = separator.join(ast.literal_eval(value).split())
    return variables


def install_with_uv(group: str, title: str, pip: list[str], requirements: list[str]) -> bool:
    """Installs into .venv with uv, which pip installs first. Returns False where uv cannot be installed or fails: then
    pip installs the group."""
    if subprocess.run([*pip, "install", "--quiet", "uv"], capture_output=True).returncode != 0:
        return False
    os.environ.update(read_uv_variables(pip) | os.environ)  # not arguments, which other users see: they hold passwords
    python = str(VENV / "bin" / "python")
    command = [python, "-m", "uv", "pip", "install", "--python", python, *requirements]
    return run_with_progress(title, ROOT / "build" / "log" / f"uv-{group}.txt", command) == 0


def main() -> None:
    """Makes the environment and installs one group into it."""
    if len(sys.argv) != 2:
        exit_with_error("Usage: tools/environment.py compile|build|test|docs|dev|fuzz|tidy|release|reframe")
    group = sys.argv[1]
    wanted = read_requirements(group)
    make_venv()
    separate = SEPARATE_FOLDERS.get(group)
    if separate is not None:
        shutil.rmtree(separate, ignore_errors=True)
    # Python compiles a module when it is first imported. pip would compile all, a third of the time of `build`.
    options = ["--progress-bar=off", "--no-compile"]
    if separate is not None:
        options += ["--target", str(separate)]
    title = f"Installing into {(separate or VENV).relative_to(ROOT)} what '{group}' needs: {', '.join(wanted)}"
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    if group in LARGE_GROUPS and install_with_uv(group, title, pip, wanted):
        return
    pip_log = ROOT / "build" / "log" / f"pip-{group}.txt"
    code = run_with_progress(title, pip_log, [*pip, "install", *options, *wanted])
    if code != 0:
        exit_with_error(
            "pip could not install these packages (see above). It needs an index: the internet, or PIP_INDEX_URL."
        )


if __name__ == "__main__":
    main()
