# SPDX-License-Identifier: Apache-2.0
"""Runs all tests, says why some were skipped and ends with one line that counts them.

Usage: .venv/bin/python tools/test.py BUILD_TREE [pytest arguments]. The C++ tests are those of a built CMake tree, the
Python tests those of tests/: first those that may run side by side, then those that compare times, one at a time, next
to those of them that wait for a network (tests/conftest.py). All run even when some fail. Exit code 0 when every test
passed or was skipped with a reason, 1 when one failed or when C++ or Python ran nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree  # nosec B405 # reads what our own tests wrote
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXIT_NO_TESTS_COLLECTED = 5  # pytest's exit code where no test fits what was asked for


@dataclass(frozen=True)
class SuiteCount:
    """What one JUnit file says."""

    passed: int
    failed: int
    skipped: int

    @property
    def good(self) -> bool:
        """Something ran and nothing failed."""
        return self.failed == 0 and self.passed > 0

    def __add__(self, other: SuiteCount) -> SuiteCount:
        return SuiteCount(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_tests(junit_file: Path) -> SuiteCount:
    """Adds up all suites of a JUnit file; a file that is missing or broken counts as one failure."""
    try:
        root = ElementTree.parse(junit_file).getroot()  # nosec B314 # written by our own tests
    except (OSError, ElementTree.ParseError):
        return SuiteCount(0, 1, 0)
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")

    # One program of C++ tests holds many cases, and says at its end how many.
    cases = re.compile(r"\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed(?: \| +(\d+) skipped)?")
    inner = [match for text in root.itertext() for match in cases.findall(text)]
    if inner:
        good, bad, ignored = (sum(int(groups[position] or 0) for groups in inner) for position in (1, 2, 3))
        return SuiteCount(good, bad, ignored)

    def sum_counts(*names: str) -> int:
        return sum(int(suite.get(name, 0)) for suite in suites for name in names)

    failed, skipped = sum_counts("failures", "errors"), sum_counts("skipped", "disabled")
    return SuiteCount(sum_counts("tests") - failed - skipped, failed, skipped)


def count_skip_reasons(junit_file: Path) -> Counter[str]:
    """Why tests were skipped, and how many for each reason."""
    try:
        root = ElementTree.parse(junit_file).getroot()  # nosec B314 # written by our own tests
    except (OSError, ElementTree.ParseError):
        return Counter()
    return Counter(skipped.get("message", "no reason given") for skipped in root.iter("skipped"))


def make_test_environment() -> dict[str, str]:
    """Returns the environment of the tests, in which Python stores compiled files regardless of the caller's settings.
    Each worker reads all files of tests, and to compile them with their asserts rewritten takes it ten times as long as
    to read them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def compile_tests_in_background(pytest_command: list[str]) -> Iterator[None]:
    """Meanwhile the files of tests are compiled once; workers that start together would each do it."""
    nobody = subprocess.DEVNULL
    reading = subprocess.Popen(
        [*pytest_command, "--collect-only"],
        cwd=ROOT,
        stdin=nobody,
        stdout=nobody,
        stderr=nobody,
        env=make_test_environment(),
    )
    try:
        yield
    finally:
        reading.wait()


def run_tests(command: list[str], junit_file: Path) -> SuiteCount:
    """Runs one half without a terminal to read from; its exit code counts even when its file shows no failure."""
    junit_file.unlink(missing_ok=True)
    print("+", " ".join(command), flush=True)
    code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env=make_test_environment()).returncode
    if code == EXIT_NO_TESTS_COLLECTED and "pytest" in command:
        return SuiteCount(0, 0, 0)
    result = count_tests(junit_file)
    return result if code == 0 or result.failed else SuiteCount(result.passed, 1, result.skipped)


def main() -> int:
    """Both halves, then the line that counts."""
    tree = Path(sys.argv[1]).resolve()
    reports = ROOT / "build" / "test-results"
    reports.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    cpp_file, beside_file, alone_file = (reports / f"{name}.xml" for name in ("cpp", "python", "python-alone"))
    jobs = str(os.cpu_count() or 1)
    ctest = ["ctest", "--test-dir", str(tree), "--output-on-failure", "--no-tests=error", "-j", jobs]
    ctest += ["--test-output-size-passed", "1000000", "--test-output-size-failed", "1000000"]
    pytest = [sys.executable, "-m", "pytest", "-q", *sys.argv[2:]]
    with compile_tests_in_background(pytest):
        cpp = run_tests([*ctest, "--output-junit", str(cpp_file)], cpp_file)
    # More workers than cores: many of these tests wait for a process or a disk.
    in_our_order = ["--dist", "loadfile", "--no-loadscope-reorder"]  # that of tests/conftest.py
    cores = os.cpu_count() or 1
    parallel = ["-m", "not serial", "-n", str(2 * cores), *in_our_order, f"--junitxml={beside_file}"]
    python = run_tests([*pytest, *parallel], beside_file)
    serial = ["-m", "serial", "-n", str(min(2, cores)), *in_our_order, f"--junitxml={alone_file}"]
    python += run_tests([*pytest, *serial], alone_file)
    for reason, times in (count_skip_reasons(beside_file) + count_skip_reasons(alone_file)).most_common():
        print(f"skipped {times:4d}: {reason}")
    good = cpp.good and python.good
    seconds = time.monotonic() - begin
    print(f"{'ok' if good else 'FAILED'}: C++ tests {cpp}; Python tests {python}; {seconds:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
