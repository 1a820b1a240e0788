# SPDX-License-Identifier: Apache-2.0
"""Libraries that a program loads later and keeps to itself, as packages of Python and MPI modules are loaded, find
their functions although ours of the same name stands in front.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import Preload

SOURCES = {
    "mpi.c": "int MPI_File_open(int a, const char* b, int c, int d, int* e) { *e = a + c + d; return 41; }\n",
    "module.c": """
int MPI_File_open(int, const char*, int, int, int*);
int run(void) { int got = 0; return MPI_File_open(1, "x", 2, 3, &got) + got; }
""",
    "main.c": """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void* module = dlopen("./libmodule.so", RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = (int (*)(void))dlsym(module, "run");
    printf("%d\\n", run());
    return 0;
}
""",
}


@pytest.mark.parametrize("variable", ["IOBUF_PARAMS", "SONDE_TRACE"])
def test_later_loaded_module_uses_its_linked_mpi(preload: Preload, tmp_path: Path, variable: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for arguments in (
        "-shared -fPIC -o libfakempi.so mpi.c",
        "-shared -fPIC -o libmodule.so module.c -L. -lfakempi -Wl,-rpath,$ORIGIN",
        "-o main main.c -ldl",
    ):
        subprocess.run([compiler, *arguments.split()], cwd=tmp_path, check=True)
    done = preload.run(
        [tmp_path / "main"], tmp_path, **{variable: "*:alone" if variable == "IOBUF_PARAMS" else str(tmp_path)}
    )
    assert done.stdout == "47\n", done.stderr


@pytest.mark.parametrize("mode", ["buffer", "trace"])
def test_library_that_patches_mmap_still_works(
    preload: Preload, compile_program: Callable[[str], Path], tmp_path: Path, mode: str
) -> None:
    """UCX under an MPI does: its code makes the system call by syscall(), which is ours too."""
    settings = {"IOBUF_PARAMS": "*:alone"} if mode == "buffer" else {"SONDE_TRACE": str(tmp_path)}
    done = preload.run([compile_program("patcher")], tmp_path, **settings)
    if done.returncode == 77:
        pytest.skip("code cannot be overwritten here")
    assert (done.returncode, done.stdout) == (0, "written in between\n")
