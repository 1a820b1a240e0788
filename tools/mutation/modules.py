# SPDX-License-Identifier: Apache-2.0
"""Lists the modules whose sources are changed. The tests of a module are in the test folder of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Module:
    """A folder of sources, and the tests that belong to it."""

    name: str
    sources: str
    tests: tuple[str, ...]
    """Folders or files of tests: pytest's for the lab, doctest's sources for C++."""
    program: str = ""
    """The C++ test program; empty for the lab."""
    least: int = 60
    """How many changes a fair sample has."""
    environments: tuple[Mapping[str, str], ...] = ({},)
    """The program runs once with each of these variables, as ctest does."""
    library: str = ""
    """The target that pytest's tests below load into other programs; empty when there is none."""
    by_library: tuple[str, ...] = ()
    """What pytest is to run, for changes that the program does not notice."""

    def list_source_files(self) -> list[Path]:
        endings = ("*.cpp", "*.hpp") if self.program else ("*.py",)
        return sorted(path for ending in endings for path in (ROOT / self.sources).rglob(ending))

    def list_test_files(self) -> list[Path]:
        ending = "*.cpp" if self.program else "test_*.py"
        folders = [ROOT / folder for folder in self.tests]
        return sorted({file for folder in folders for file in (folder.rglob(ending) if folder.is_dir() else [folder])})


MODULES = (
    Module("stats", "lab/sonde/stats", ("tests/lab/stats",)),
    Module("trends", "lab/sonde/trends", ("tests/lab/trends",)),
    Module("model", "lab/sonde/model", ("tests/lab/model", "tests/schema")),
    Module("findings", "lab/sonde/findings", ("tests/lab/findings",)),
    Module("patterns", "engine/patterns", ("tests/engine/patterns",), "sonde-engine-tests", 40),
    Module("meters", "engine/meters", ("tests/engine/meters",), "sonde-engine-tests", 40),
    Module("plan", "engine/plan", ("tests/engine/plan",), "sonde-engine-tests", 40),
    Module("results", "engine/results", ("tests/engine/results",), "sonde-engine-tests", 40),
    Module(
        "cache",
        "preload/cache",
        ("tests/preload/core",),
        "sonde-preload-tests",
        40,
        library="sonde-preload",
        by_library=(
            "tests/preload/test_reports.py",
            "tests/preload/test_killed_processes.py",
            "tests/preload/test_many_files.py",
            "tests/preload/test_planted_files.py",
            "tests/preload/test_transparency_scenarios.py",
            "tests/preload/test_transparency.py",
        ),
    ),
)
