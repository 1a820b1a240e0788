# SPDX-License-Identifier: Apache-2.0
"""Runs all tests and ends with one line that counts them.

Usage: .venv/bin/python tools/test.py BUILD_TREE [pytest arguments]. The C++ tests are those of a built CMake tree, the
Python tests those of tests/. Both run even when the first fails. Exit code 0 when every test passed or was skipped with
a reason, 1 when one failed or when one of the two halves ran nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Count:
    """What one JUnit file says."""

    passed: int
    failed: int
    skipped: int

    @property
    def good(self) -> bool:
        """Something ran and nothing failed."""
        return self.failed == 0 and self.passed > 0

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count(junit: Path) -> Count:
    """Adds up all suites of a JUnit file; a file that is missing or broken counts as one failure."""
    try:
        root = ElementTree.parse(junit).getroot()
    except (OSError, ElementTree.ParseError):
        return Count(0, 1, 0)
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")

    # One program of C++ tests holds many cases, and says at its end how many.
    cases = re.compile(r"\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed(?: \| +(\d+) skipped)?")
    inner = [found for text in root.itertext() for found in cases.findall(text)]
    if inner:
        good, bad, left = (sum(int(one[place] or 0) for one in inner) for place in (1, 2, 3))
        return Count(good, bad, left)

    def total(*names: str) -> int:
        return sum(int(suite.get(name, 0)) for suite in suites for name in names)

    failed, skipped = total("failures", "errors"), total("skipped", "disabled")
    return Count(total("tests") - failed - skipped, failed, skipped)


def run(command: list[str], junit: Path) -> Count:
    """Runs one half without a terminal to read from; its exit code counts even when its file shows no failure."""
    junit.unlink(missing_ok=True)
    print("+", " ".join(command), flush=True)
    code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode
    result = count(junit)
    return result if code == 0 or result.failed else Count(result.passed, 1, result.skipped)


def main() -> int:
    """Both halves, then the line that counts."""
    tree = Path(sys.argv[1]).resolve()
    reports = ROOT / "build" / "test-results"
    reports.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    cpp_file, python_file = reports / "cpp.xml", reports / "python.xml"
    jobs = str(os.cpu_count() or 1)
    ctest = ["ctest", "--test-dir", str(tree), "--output-on-failure", "--no-tests=error", "-j", jobs]
    ctest += ["--test-output-size-passed", "1000000", "--test-output-size-failed", "1000000"]
    cpp = run([*ctest, "--output-junit", str(cpp_file)], cpp_file)
    python = run([sys.executable, "-m", "pytest", f"--junitxml={python_file}", *sys.argv[2:]], python_file)
    good = cpp.good and python.good
    seconds = time.monotonic() - begin
    print(f"{'ok' if good else 'FAILED'}: C++ tests {cpp}; Python tests {python}; {seconds:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
