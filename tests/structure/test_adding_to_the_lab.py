# SPDX-License-Identifier: Apache-2.0
"""What HACKING.md says one must touch to add something to the lab is enough: done in a copy, and then used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LAUNCHER = """
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.launch.launchers.launcher import Launcher


@dataclass(frozen=True)
class RocketLauncher(Launcher):
    name = "rocket"
    ranks: int
    extra: Sequence[str] = ()

    def arguments(self, engine: Sequence[str]) -> list[str]:
        return ["rocket", "-n", str(self.ranks), *self.extra, *engine]
"""
VERB = """
import click


@click.command("greet")
def command() -> int:
    'Say good day.'
    click.echo("good day")
    return 0
"""
SECTION = """
from collections.abc import Iterator

from sonde.charts.markup import Markup

from sonde.findings.phase_summary import AssessedPhase
from sonde.model.run import RecordedRun
from sonde.report.sections.section import PhaseSection, ChartWidth


def _draw(run: RecordedRun, assessed: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    yield "wide", Markup("<p>a section about {}</p>").format(assessed.phase.id)


SECTION = PhaseSection(5, _draw)
"""
SOURCE = """
from datetime import UTC, datetime

from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.import_defaults import ImportDefaults


def matches(text: str) -> bool:
    return text.startswith("rocketbench ")


def read(text: str, about: ImportDefaults) -> list[ImportedRun]:
    phase = ImportedPhase("write", "write", "rocketbench rate", bytes_per_s=float(text.split()[1]))
    return [ImportedRun("rocketbench", "rocket", datetime(2026, 1, 1, tzinfo=UTC), {}, [phase])]
"""


@dataclass(frozen=True)
class Row:
    """A row of the table: the new file (below lab/sonde), its text, and what is put in front of which text where."""

    file: str
    text: str
    lists: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


ROWS = {
    "a launcher": Row(
        "launch/launchers/rocket.py",
        LAUNCHER,
        {
            "launch/launchers/list.py": {
                "from sonde.launch.launchers.srun": "from sonde.launch.launchers.rocket import RocketLauncher\n",
                "    SrunLauncher,\n": "    RocketLauncher,\n",
            }
        },
    ),
    "a verb": Row("cli/greet.py", VERB),
    "a report section": Row("report/sections/greeting.py", SECTION),
    "a format to import": Row(
        "sources/rocketbench.py",
        SOURCE,
        {
            "sources/formats.py": {
                "from sonde.sources.import_defaults": "from sonde.sources import rocketbench\n",
                '    ResultFormat("fio JSON"': (
                    '    ResultFormat("rocketbench", rocketbench.matches, rocketbench.read),\n'
                ),
            }
        },
    ),
}


def hacking(subject: str) -> str:
    """The files that the table "To add something" names."""
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.split("## To add something")[1].split("\n## ")[0].splitlines()]
    (touched,) = (cells[2] for cells in rows if len(cells) == 5 and cells[1].strip() == subject)
    return touched


def added(folder: Path, subject: str) -> Path:
    """A copy of the lab in `folder` in which the row was followed; its path for PYTHONPATH."""
    lab, row, row_text = folder / "lab", ROWS[subject], hacking(subject)
    shutil.copytree(ROOT / "lab", lab, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "schema").symlink_to(ROOT / "schema")
    assert f"`lab/sonde/{Path(row.file).parent}/`" in row_text, "the row does not say where the new file goes"
    assert set(re.findall(r"`(\w+\.py)`", row_text)) == {Path(file).name for file in row.lists}
    (lab / "sonde" / row.file).write_text(row.text, encoding="utf-8")
    for file, insertions in row.lists.items():
        path = lab / "sonde" / file
        text = path.read_text(encoding="utf-8")
        for before, line in insertions.items():
            assert text.count(before) == 1
            text = text.replace(before, line + before)
        path.write_text(text, encoding="utf-8")
    return lab


def python(lab: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(lab), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_new_launcher_appears_and_states_why_it_is_unusable(tmp_path: Path) -> None:
    lab = added(tmp_path, "a launcher")
    code = "from sonde.launch.launchers import list; print(list.list_launcher_names()); list.make_launcher('rocket', 2)"
    done = python(lab, "-c", code)
    assert "'rocket'" in done.stdout
    assert "There is no rocket on PATH." in done.stderr


def test_new_verb_is_discovered(tmp_path: Path) -> None:
    done = python(added(tmp_path, "a verb"), "-m", "sonde", "greet")
    assert (done.stdout, done.stderr) == ("good day\n", "")


def test_a_report_section_is_on_the_page(tmp_path: Path) -> None:
    lab, run = added(tmp_path, "a report section"), tmp_path / "run"
    run.mkdir()
    shutil.copy(ROOT / "schema" / "record" / "example.ndjson", run / "record.ndjson")
    code = (
        "from pathlib import Path; from sonde.report import write_report; write_report([Path('{0}')], Path('{0}.html'))"
    )
    done = python(lab, "-c", code.format(run))
    assert done.stderr == ""
    assert "<p>a section about write</p>" in run.with_suffix(".html").read_text(encoding="utf-8")


def test_a_format_is_imported(tmp_path: Path) -> None:
    lab, result = added(tmp_path, "a format to import"), tmp_path / "result.txt"
    result.write_text("rocketbench 2000000000\n", encoding="utf-8")
    done = python(lab, "-m", "sonde", "import", result, "--archive", tmp_path / "archive", "--json")
    assert done.returncode == 0, done.stderr
    (summary,) = (tmp_path / "archive").glob("2026-01/*rocket*/run.json")
    assert '"bytes_per_s": 2000000000.0' in summary.read_text(encoding="utf-8")


@pytest.mark.parametrize("subject", ROWS)
def test_hacking_rows_have_existing_starting_points(subject: str) -> None:
    folder = (ROOT / "lab" / "sonde" / ROWS[subject].file).parent
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    (start,) = re.findall(rf"^\| {subject} \|.*\| `([^`|]+)` \|$", text, re.MULTILINE)
    assert (folder / start).is_file()
