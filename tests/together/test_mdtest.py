# SPDX-License-Identifier: Apache-2.0
"""`sonde mdtest`: the words reach the engine, the table reaches the user, and the run is kept."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


Sonde = Callable[..., "subprocess.CompletedProcess[str]"]
Runs = Callable[[], list[dict[str, Any]]]


def test_mdtest_table_is_printed_and_the_run_is_archived(sonde: Sonde, runs: Runs, tmp_path: Path) -> None:
    result = sonde("mdtest", "--tasks", "2", "-n", "50", "-i", "2", "-w", "100", "-e", "100", "-X", "-d", "d")
    assert result.returncode == 0, result.stderr
    assert "2 tasks, 100 files/directories" in result.stdout
    assert re.search(r"^   File creation +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$", result.stdout, re.MULTILINE)
    (run,) = runs()
    assert run["status"] == "done"
    (folder,) = tmp_path.glob("sonde-archive/*/*/")
    assert {"record.ndjson", "plan.json", "report.html"} <= {path.name for path in folder.iterdir()}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Create files" in page
    assert "Create directories" in page
    assert not (tmp_path / "d").exists()


def test_archived_plan_can_be_explained_and_run_again(sonde: Sonde, tmp_path: Path) -> None:
    assert sonde("mdtest", "--no-report", "-n", "12", "-z", "1", "-b", "2", "-L", "-d", "d").returncode == 0
    (plan,) = tmp_path.glob("sonde-archive/*/*/plan.json")
    result = sonde("plan", str(plan))
    assert result.returncode == 0, result.stderr
    assert re.search(r"0-file-create +create, null|0-file-create +create, posix, files, creation", result.stdout)
    again = sonde("run", "--no-report", str(plan))
    assert again.returncode == 0, again.stderr


def test_invalid_arguments_get_one_sentence_and_no_run(sonde: Sonde, runs: Runs) -> None:
    result = sonde("mdtest", "-n", "many", "-d", "d")
    assert result.returncode == 2
    assert (
        result.stderr == 'sonde: -n is "many", but must be a whole number, with k, m, g, t or p for powers of 1024.\n'
    )
    assert runs() == []


def test_every_option_is_in_the_documentation() -> None:
    table = (ROOT / "engine" / "dialects" / "mdtest" / "options.cpp").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "reference" / "mdtest.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    entries = re.findall(r"\{('.'|0),\s*\"([^\"]*)\",\s*(?:true|false),", table)
    assert len(entries) == 56
    for letter, word in entries:
        assert letter == "0" or f"`-{letter[1]}`" in rows, letter
        assert not word or f"`--{word}`" in rows, word
    for refused in re.findall(r"^        \{\"([\w.]+)\",", table, re.MULTILINE):
        text = f"`-{refused}`" if len(refused) == 1 else f"`--{refused}`"
        assert text in rows, refused
