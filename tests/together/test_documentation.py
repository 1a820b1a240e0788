# SPDX-License-Identifier: Apache-2.0
"""Tests of figures and commands in the documentation."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.launch.engine import find_engine

DOCS = Path(__file__).resolve().parents[2] / "docs"
MB = 1e6


def run_engine(plan: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Runs one plan and gives the lines of its record."""
    plan["target"]["path"] = str(folder)
    plan_file, record = folder / "plan.json", folder / "record.ndjson"
    plan_file.write_text(json.dumps(plan), encoding="utf-8")
    command = [str(find_engine().path), "run", str(plan_file), "--record", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


# docs/concepts/rates.md, the example that can be run: name -> MB/s, seconds (task_sum is stated over one second)
TWO_TASKS = {
    "total": (200.0, 10.0),
    "transfer": (200.0, 10.0),
    "stonewall": (266.667, 6.0),
    "steady": (300.0, 5.0),
    "first_done": (300.0, 5.0),
    "task_sum": (300.0, 1.0),
}


@pytest.fixture(scope="module")
def phase_end_line(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The phase_end line of the example."""
    plan = tomllib.loads((DOCS / "concepts" / "two-tasks.toml").read_text(encoding="utf-8"))
    lines = run_engine(plan, tmp_path_factory.mktemp("two-tasks"))
    return next(line for line in lines if line["type"] == "phase_end")


@pytest.mark.parametrize("case_name", TWO_TASKS)
def test_rates_page_example_matches_a_simulated_run(phase_end_line: dict[str, Any], case_name: str) -> None:
    rate, seconds = TWO_TASKS[case_name]
    interval = phase_end_line["rates"][case_name]
    assert interval["bytes_per_s"] == pytest.approx(rate * MB, rel=0.001)
    # A steady window is cut to whole slices; those are wide after ten virtual seconds.
    assert interval["seconds"] == pytest.approx(seconds, rel=0.01 if case_name == "steady" else 0.001)


def test_the_wear_out_ratio_is_total_over_stonewall(phase_end_line: dict[str, Any]) -> None:
    assert phase_end_line["wearout_ratio"] == pytest.approx(200 / 266.667, rel=0.001)


def test_rates_page_prints_the_tested_figures() -> None:
    page = (DOCS / "concepts" / "rates.md").read_text(encoding="utf-8")
    sentence = page[page.index("Here `total` and `transfer`") :].split("\n\n")[0]
    for printed in ("200 MB/s", "1600 MB / 6 s = 266.7 MB/s", "300 MB/s"):
        assert printed in " ".join(sentence.split())


def test_the_arithmetic_of_the_pencil_example() -> None:
    """The first example has open and close times, so no backend plays it; its figures follow from its own table."""
    page = (DOCS / "concepts" / "rates.md").read_text(encoding="utf-8")
    computed = {
        "total": 2000 / 10.4,
        "transfer": 2000 / (10.1 - 0.1),
        "stonewall": (1000 + 5.9 * 100) / 6,
        "steady": (1000 + 500) / (5.1 - 0.1),
        "first_done": (1000 + 500) / 5.1,
        "task_sum": 1000 / 5.2 + 1000 / 10.4,
    }
    for name, rate in computed.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |") and "MB/s" in line)
        assert f"{rate:.1f} MB/s" in row


def test_the_plan_of_the_first_hour_runs(tmp_path: Path) -> None:
    settings = ["data.access.volume=4MiB", "phases.random.access.volume=1MiB", "phases.random.stop.stonewall=0.2s"]
    command = [sys.executable, "-m", "sonde", "run", str(DOCS / "start" / "mine.toml"), "--on", str(tmp_path)]
    command += ["--archive", str(tmp_path / "archive"), *(word for setting in settings for word in ("--set", setting))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_remaining_first_hour_commands_parse(sonde: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    plan_file = str(DOCS / "start" / "mine.toml")
    for settings in (
        ["tasks.threads=8", "data.access.transfer=4MiB"],
        ["data.backend=null", "data.verify=none"],
        ["data.backend=paced", "data.verify=none", "data.paced.rate=1GB/s"],
    ):
        done = sonde("plan", plan_file, "--on", ".", *(word for setting in settings for word in ("--set", setting)))
        assert done.returncode == 0, done.stderr
        backend = next((setting.split("=")[1] for setting in settings if "backend" in setting), "posix")
        assert f"write, {backend}, " in done.stdout
