# SPDX-License-Identifier: Apache-2.0
"""The library for aarch64, built with a cross compiler and run in an emulator: a program sees no difference there
either.

An emulator says nothing about how that machine orders its accesses to memory, so this replaces no run on a real one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from preload_under_test import NAME, ROOT

COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = "qemu-aarch64-static"
LIBRARIES = Path("/usr/aarch64-linux-gnu")
# As in preload/CMakeLists.txt, which builds for the machine it runs on.
FLAGS = (
    "-std=c++20 -O1 -fPIC -Wall -Wextra -Werror -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -fno-exceptions -fno-rtti"
    " -fno-threadsafe-statics -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector"
)
LINK = "-shared -nodefaultlibs -Wl,-z,now -Wl,-z,defs -Wl,--no-as-needed"


# One of each: what is hard with small pages, a random list of calls, streams of C++.
CHOICE = "(small and hard) or (list_of_calls and 1-tiny) or (cannot_tell and large)"


def units(folder: Path) -> list[Path]:
    """What is compiled: as in the package the files of one folder together, but for those in front of libc."""
    # the starter is a program of its own
    sources = [source for source in sorted((ROOT / "preload").rglob("*.cpp")) if source.parent.name != "starter"]
    units_found = [source for source in sources if source.parent.name == "intercept"]
    for name in sorted({source.parent.name for source in sources} - {"intercept"}):
        unit = folder / f"{name}.cpp"
        unit.write_text(
            "".join(f'#include "{source}"\n' for source in sources if source.parent.name == name), encoding="utf-8"
        )
        units_found.insert(0, unit)  # they take longest
    return units_found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for needed in (COMPILER, EMULATOR):
        if shutil.which(needed) is None:
            pytest.skip(f"there is no {needed} here")
    folder = tmp_path_factory.mktemp("aarch64")

    def compiled(numbered: tuple[int, Path]) -> str:
        number, source = numbered
        object_file = f"{number}.o"
        command = [COMPILER, *FLAGS.split(), f"-I{ROOT}/preload", "-c", str(source), "-o", object_file]
        subprocess.run(command, cwd=folder, check=True)
        return object_file

    with ThreadPoolExecutor(os.cpu_count()) as several:
        objects = list(several.map(compiled, enumerate(units(folder))))
    old = [str(LIBRARIES / "lib" / name) for name in ("libdl.so.2", "libpthread.so.0")]
    link = [COMPILER, *LINK.split(), "-o", NAME, *objects, *old, "-Wl,--as-needed", "-lc", "-lgcc"]
    subprocess.run(link, cwd=folder, check=True)
    return folder / NAME


@pytest.mark.nightly  # a minute of compiling and emulating
def test_behavior_tests_pass_on_emulated_aarch64(library: Path) -> None:
    tests = [str(Path(__file__).with_name(name)) for name in ("test_transparency.py", "test_cxx_streams.py")]
    environment = {
        **os.environ,
        "SONDE_PRELOAD": str(library),
        "SONDE_TEST_CC": "aarch64-linux-gnu-gcc",
        "SONDE_TEST_CXX": COMPILER,
        "SONDE_TEST_RUNNER": f"{EMULATOR} -L {LIBRARIES}",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", CHOICE]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout
