# SPDX-License-Identifier: Apache-2.0
"""`sonde-engine mdtest` leaves the trees that mdtest 4.1 leaves, and prints the same rows and counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import mdtest_cases
import pytest
from mdtest_cases import CASES, Case, run_case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tree_and_table_equal_the_recorded_output_of_mdtest(case: Case, engine_path: Path, tmp_path: Path) -> None:
    recorded_facts = mdtest_cases.read_recorded_facts()
    if case.name not in recorded_facts:
        pytest.skip("mdtest itself does not do this")
    options = [f"--sonde-processes={case.tasks}"]
    assert run_case(case, [str(engine_path), "mdtest"], tmp_path / "ours", options) == recorded_facts[case.name]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recording_equals_output_of_the_installed_mdtest(case: Case, tmp_path: Path) -> None:
    if shutil.which("mdtest") is None:
        pytest.skip("there is no mdtest on PATH to compare with")
    real = mdtest_cases.run_real(case, tmp_path / "real")
    if real is None:
        pytest.skip("the mdtest on PATH does not run this here")
    assert real == mdtest_cases.read_recorded_facts()[case.name]


def test_recordings_have_enough_distinct_cases() -> None:
    recorded_facts = mdtest_cases.read_recorded_facts()
    assert len(recorded_facts) >= 40
    assert sum(facts["files"] > 0 for facts in recorded_facts.values()) >= 25
    assert len({facts["digest"] for facts in recorded_facts.values()}) >= 25


@pytest.mark.parametrize("tasks", [2, 8])
def test_a_launcher_needs_no_python(tasks: int, engine_path: Path, tmp_path: Path) -> None:
    """The same command under mpiexec: ranks are tasks."""
    launcher = mdtest_cases.make_launcher_command(tasks)
    if launcher is None:
        pytest.skip("there is no mpirun or mpiexec")
    result = mdtest_cases.run([*launcher, str(engine_path), *["mdtest", "-n", "10", "-d", "d", "-C", "-u"]], tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"launched with {tasks} total task(s)" in result.stdout
    assert mdtest_cases.digest_tree(tmp_path)["files"] == 10 * tasks
