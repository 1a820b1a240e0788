# SPDX-License-Identifier: Apache-2.0
"""In a narrow terminal names of runs, rates and percentages stand whole; what gives way is ornament and explanation."""

from __future__ import annotations

import io
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from archive_builders import NOISY, store_run
from record_scene import Scene, Work, steady
from rich.console import Console
from rich.text import Text

from sonde.store.tags import change_tags
from sonde.terminal.screen import make_plain_table

LONG_PLAN_NAME = "a-plan-with-a-name-that-somebody-thought-about-for-long"
UNITS = r"(?:[kMGT]i?B/s|[kMGT]?i?B|op/s|files/s|%|ms|µs|ns)"
# "1.23 GB/s", "-42 %", "1.23 million op/s": a number and its unit are one word
QUANTITY = re.compile(rf"(?<![\w.])[-+−]?\d[\d,.]*(?: million)? {UNITS}(?!\w)")
WORKS = (
    Work("a-phase-with-a-name-of-its-own", "write", steady(1.68e9), seconds=2.0, findings=(NOISY,)),
    Work("read", "read", steady(2.13e9), seconds=2.0, cache="cold", residency=0.0, fsync=0),
)
VERBS = {
    "list": ["list"],
    "show": ["show", "last"],
    "compare": ["compare", "tag:before", "tag:after"],
    "trend": ["trend"],
    "baseline": ["baseline", "show", "acceptance"],
    "gate": ["gate", "last", "--baseline", "acceptance", "--retests", "0"],
    "tag": ["tag"],
    "rm": ["rm", "--tag", "before", "--dry-run"],
    "plan": ["plan", "quick", "--on", "."],
    "doctor": ["doctor", "."],
}


@pytest.fixture(scope="module")
def history_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dozen runs, half of them slower."""
    root = tmp_path_factory.mktemp("long-names")
    for day in range(1, 25):
        works = [
            Work(work.id, work.op, steady(1e9 / (1 + (day > 12)) * (1 + day / 500)), seconds=2.0) for work in WORKS
        ]
        started = f"2026-11-{day:02d}T12:00:00Z"
        scene = Scene(
            works=works if day < 24 else WORKS,
            plan=LONG_PLAN_NAME,
            started=started,
            path=f"/scratch/{LONG_PLAN_NAME}",
            seed=day,
        )
        folder = store_run(root, f"202611{day:02d}T120000Z-{LONG_PLAN_NAME}-{day:08x}", scene)
        change_tags(folder, ["before", "baseline:acceptance"] if day < 13 else ["after"])
    return root


@pytest.fixture
def archive_with_long_names(archive: Path, history_archive: Path) -> Path:
    shutil.copytree(history_archive, archive, dirs_exist_ok=True)
    return archive


def count_quantities(text: str) -> Counter[str]:
    """All of them; space that is available is one, whatever it is at that moment."""
    return Counter(QUANTITY.findall(re.sub(r"[\d.]+(?=[\s\xa0]+[KMGTP]iB[\s\xa0]+available)", "1", text)))


@pytest.mark.parametrize("verb", VERBS)
def test_names_and_numbers_are_not_cut(
    sonde: Any, archive_with_long_names: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def list_runs(columns: int) -> str:
        monkeypatch.setattr("sonde.terminal.screen._FILE_OUTPUT_COLUMNS", columns)
        return str(sonde(*VERBS[verb]).out)

    wide = list_runs(400)
    assert count_quantities(wide) or verb in ("tag", "rm"), "nothing was said that could be cut"
    for width in (80, 60):
        narrow = list_runs(width)
        # titles of columns may be said with every row
        assert not count_quantities(wide) - count_quantities(narrow), "a number was cut, or parted from its unit"
        for folder in archive_with_long_names.glob("20*/*"):
            assert (folder.name in wide) == (folder.name in narrow)
        assert narrow.count("…") <= wide.count("…")


@pytest.mark.parametrize("columns", range(20, 200, 7))
def test_table_fits_terminal_except_names(columns: int) -> None:
    table = make_plain_table()
    for title, right in (("run", False), ("rate", True), ("what was found", False), ("share", True)):
        table.add_column(title, justify="right" if right else "left", no_wrap=title == "run")
    name = "20261122T132912Z-check-small-files-durable-1c55f71b"
    text = "other processes used 1.4 cores of this node during the phase"
    table.add_row(name, "1.23 million op/s", Text(text, style="red"), "-42 %", style="bold")
    table.add_row("short", "5 GB/s", "doubtful:\nnoisy_node", "3 %")
    screen = io.StringIO()
    Console(file=screen, width=columns).print(table, crop=False)
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert max(len(line) for line in lines if name not in line) <= columns
    for cell_text in (name, "1.23 million op/s", "1.4 cores", "-42 %", "5 GB/s", "3 %"):
        assert any(cell_text in line for line in lines), cell_text
    for word in text.split():
        assert any(word in line for line in lines)


def test_piped_output_has_no_trailing_blanks(sonde: Any, archive_with_long_names: Path) -> None:
    for arguments in VERBS.values():
        assert not [line for line in sonde(*arguments).out.splitlines() if line != line.rstrip()], arguments
