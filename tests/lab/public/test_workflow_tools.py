# SPDX-License-Identifier: Apache-2.0
"""The files for ReFrame and Ramble: ReFrame runs its mixin; Ramble's regular expressions read what Sonde prints."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGING = ROOT / "packaging"
REFRAME = ROOT / "build" / "reframe"  # made by tools/environment.py reframe
PLAN = {
    "schema": "sonde-plan/2",
    "id": "small",
    "data": {"access": {"transfer": "64KiB", "volume": "1MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}
REFRAME_TEST = """
import reframe as rfm
from sonde_mixin import SondeMixin


@rfm.simple_test
class StorageTest(rfm.RunOnlyRegressionTest, SondeMixin):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    sonde_plan = '{plan}'
    sonde_directory = '{target}'
    sonde_classifications = {classifications}
    reference = {{'*': {{'write': ({reference}, -0.15, None, 'B/s')}}}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN), encoding="utf-8")
    return path


def run_reframe(folder: Path, plan: Path, target: Path, reference: float, classifications: list[str]) -> str:
    """Runs a test that uses the mixin, and returns what ReFrame printed."""
    folder.mkdir()
    text = REFRAME_TEST.format(plan=plan, target=target, reference=reference, classifications=classifications)
    (folder / "check.py").write_text(text, encoding="utf-8")
    command = folder / "sonde"
    lab = f"PYTHONPATH={shlex.quote(str(ROOT / 'lab'))}"
    command.write_text(f'#!/bin/sh\n{lab} exec {sys.executable} -m sonde "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PACKAGING / 'reframe'}:{REFRAME}",
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    environment |= {"HOME": str(folder), "TMPDIR": str(folder)}
    main = "import sys; from reframe.frontend.cli import main; sys.exit(main())"
    arguments = [sys.executable, "-c", main, "-c", "check.py", "-r", "--prefix", str(folder / "out")]
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def test_reframe_compares_rates_with_references(
    fake_engine: Callable[..., Path], target: Path, plan: Path, tmp_path: Path
) -> None:
    if not (REFRAME / "reframe").is_dir():
        pytest.skip("ReFrame is not installed: tools/environment.py reframe")
    fake_engine(rate=2e9)
    good = run_reframe(tmp_path / "good", plan, target, 2e9, ["cache", "short", "unknown", "storage", "burst"])
    assert "Ran 1/1 test case(s)" in good
    assert "(0 failure(s)" in good, good
    slow = run_reframe(tmp_path / "slow", plan, target, 4e9, ["cache", "short", "unknown", "storage", "burst"])
    assert "(1 failure(s)" in slow
    assert "performance error" in slow


def test_ramble_reads_the_rates_that_sonde_prints(
    sonde: Any,
    fake_engine: Callable[..., Path],
    target: Path,
    plan: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {}
    appkit = types.ModuleType("ramble.appkit")
    directives = ["tags", "executable", "workload", "workload_variable", "figure_of_merit_context", "figure_of_merit"]
    for name in [*directives, "success_criteria"]:
        records = calls.setdefault(name, [])
        setattr(appkit, name, lambda *values, _records=records, **options: _records.append((values, options)))
    appkit.ExecutableApplication = object  # type: ignore[attr-defined]
    appkit.__all__ = [*calls, "ExecutableApplication"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ramble", types.ModuleType("ramble"))
    monkeypatch.setitem(sys.modules, "ramble.appkit", appkit)
    runpy.run_path(str(PACKAGING / "ramble" / "sonde" / "application.py"))

    fake_engine(rate=2e9)
    values = {values[0]: options["default"] for values, options in calls["workload_variable"]}
    values |= {"plan": str(plan), "target_directory": str(target), "experiment_run_dir": str(tmp_path)}
    printed = ""
    for (_, command), _options in calls["executable"]:
        done = sonde(*shlex.split(command.format(**values))[1:])
        assert done.code == 0, done.err
        printed = done.out
    for _, options in calls["figure_of_merit"]:
        matches = [match for line in printed.splitlines() if (match := re.match(options["fom_regex"], line))]
        assert [match["phase"] for match in matches] == ["write", "read"]
        assert all(float(match[options["group_name"]]) > 0 for match in matches)
    rates = [float(match["bytes_per_s"]) for match in matches]
    assert rates == pytest.approx([2e9, 2e9], rel=0.01)
