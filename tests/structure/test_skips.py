# SPDX-License-Identifier: Apache-2.0
"""The table of skipped tests on docs/develop/testing.md names skips that the tests have, and no program that is
installed for them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "develop" / "testing.md"
ROW = re.compile(r"^\| (`[^|]+`) \| (\d+(?:, \d+)*) \| ([^|]+) \|$", re.MULTILINE)


def read_rows() -> list[tuple[list[str], str]]:
    """Messages of skips with the reason why their program is not installed."""
    return [(re.findall(r"`([^`]+)`", row[1]), row[3]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def test_skips_of_the_page_are_in_the_tests() -> None:
    messages = [message for row, _ in read_rows() for message in row]
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__).resolve()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(messages) > 6
    assert [message for message in messages if message not in text] == []


def test_skipped_programs_are_not_installed_by_us() -> None:
    groups = (ROOT / "tools" / "system-packages").read_text(encoding="utf-8")
    packages = {name for row in re.findall(r'^\s+"\w+\|([^|"]+)\|', groups, re.MULTILINE) for name in row.split()}
    assert "mariadb-server-core" in packages
    assert packages & {"ior", "mdtest", "network-manager"} == set()


def test_nightly_runs_the_exerciser() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nnightly:")[2].partition("\n\n")[0]
    assert "cargo install --quiet fsx" in recipe
    for file in re.findall(r"tests/\S+\.py", recipe):
        assert (ROOT / file).is_file(), file


def test_each_group_of_packages_can_be_looked_for() -> None:
    script = (ROOT / "tools" / "system-packages").read_text(encoding="utf-8")
    rows = set(re.findall(r'"(\w+)\|[^|"]+\|[^|"]+\|[^|"]*"', script))
    checks = set(re.findall(r"^has_(\w+)\(\)", script, re.MULTILINE))
    assert {"compiler", "simgrid", "collectors"} <= rows
    assert rows - checks == set()
