# SPDX-License-Identifier: Apache-2.0
"""Other languages, and tools that stand in front of programs: the same bytes, output and exit code as without the
library, also where their calls do not pass the C library.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import ROOT, Plain, Preload

pytestmark = pytest.mark.nightly

SOURCES = ROOT / "tests" / "preload" / "programs" / "languages"
PARAMS = pytest.mark.parametrize("params", ["*:auto", "*", "*:size=64k:count=4"], ids=["auto", "named", "small_pages"])
RECORDS = """
for ((i = 0; i < 2000; i++)); do printf '%099d\\n' $i; done > records
dd if=records of=copy bs=100 status=none
cat copy | tail -n 3
exit 3
"""


def require_tool(tool: str) -> str:
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not on PATH")
    return path


def compile_source(folder: Path, *command: str) -> None:
    require_tool(command[0])
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def build_go(folder: Path) -> list[str]:
    compile_source(folder, "go", "build", "-o", str(folder / "go"), str(SOURCES / "records.go"))
    return [str(folder / "go")]


def build_rust(folder: Path) -> list[str]:
    compile_source(folder, "rustc", "-O", "-o", str(folder / "rust"), str(SOURCES / "records.rs"))
    return [str(folder / "rust")]


def build_java(folder: Path) -> list[str]:
    compile_source(folder, "javac", "-d", str(folder), str(SOURCES / "Records.java"))
    return [require_tool("java"), "-cp", str(folder), "Records"]


def build_musl(folder: Path) -> list[str]:
    compile_source(folder, "musl-gcc", "-O", "-o", str(folder / "musl"), str(SOURCES / "records.c"))
    return [str(folder / "musl")]


def find_node(_: Path) -> list[str]:
    return [require_tool("node"), str(SOURCES / "records.js")]


BUILDERS: dict[str, Callable[[Path], list[str]]] = {
    "go": build_go,
    "musl": build_musl,
    "rust": build_rust,
    "java": build_java,
    "node": find_node,
}


@pytest.fixture(scope="module", params=BUILDERS)
def language_command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Command of a program in one language that writes and reads small records."""
    return BUILDERS[request.param](tmp_path_factory.mktemp(request.param))


def require_same(preload: Preload, run_bare: Plain, folder: Path, command: list[str], params: str) -> None:
    bare = run_bare(command, folder)
    assert bare.code == 3
    assert bare.files["records"]
    assert preload.outcome(command, folder / "with", IOBUF_PARAMS=params) == bare


@PARAMS
def test_language_runtime_sees_no_difference(
    preload: Preload, run_bare: Plain, tmp_path: Path, language_command: list[str], params: str
) -> None:
    require_same(preload, run_bare, tmp_path, language_command, params)


@PARAMS
def test_bubblewrap_sees_no_difference(preload: Preload, run_bare: Plain, tmp_path: Path, params: str) -> None:
    """The library is loaded again in namespaces of its own, with another process number."""
    arguments = ["--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "bash", "-c", RECORDS]
    tried = subprocess.run([require_tool("bwrap"), *arguments], cwd=tmp_path, capture_output=True, check=False)
    if tried.returncode != 3:
        pytest.skip("bwrap may not make namespaces here")
    require_same(preload, run_bare, tmp_path, ["bwrap", *arguments], params)


@PARAMS
def test_eatmydata_sees_no_difference(preload: Preload, run_bare: Plain, tmp_path: Path, params: str) -> None:
    """eatmydata preloads a library too."""
    require_same(preload, run_bare, tmp_path, [require_tool("eatmydata"), "bash", "-c", RECORDS], params)


def test_container_without_the_library_runs_as_before(preload: Preload, tmp_path: Path) -> None:
    """The loader prints one line on the missing library, and the program runs."""
    outer = ["--bind", "/", "/", "--tmpfs", str(preload.library.parent), "--bind", str(tmp_path), str(tmp_path)]
    arguments = [*outer, "--dev", "/dev", "cat", "missing"]
    tried = subprocess.run([require_tool("bwrap"), *arguments], cwd=tmp_path, capture_output=True, check=False)
    if tried.returncode != 1:
        pytest.skip("bwrap may not make namespaces here")
    under = preload.run(["bwrap", *arguments], tmp_path, IOBUF_PARAMS="*")
    loader, message = under.stderr.splitlines()
    assert loader.endswith("from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.")
    assert (under.returncode, f"{message}\n".encode()) == (1, tried.stderr)
