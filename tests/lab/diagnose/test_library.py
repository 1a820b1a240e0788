# SPDX-License-Identifier: Apache-2.0
"""Shipped causes and experiments."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from sonde.diagnose.cause_predictions import compute_cause_change
from sonde.diagnose.description import DEFAULT_TRAITS, WITH_TARGETS, CauseFile, DiagnosisExperiment
from sonde.diagnose.hypotheses import FAULT_GRIDS, UNCOVERED_FAULTS
from sonde.diagnose.library import (
    list_causes,
    list_diagnosis_experiments,
    list_experiments_for_machine_kind,
    read_description_file,
)
from sonde.launch.simulator import find_simulator, list_known_faults
from sonde.model.errors import ExperimentError


def test_there_are_thirty_kinds_of_hypotheses() -> None:
    assert len(FAULT_GRIDS) + len(list_causes()) >= 30


def test_every_fault_of_the_simulator_is_a_hypothesis() -> None:
    known_faults = {line.split()[0] for line in list_known_faults(find_simulator()).splitlines() if line}
    assert {fault.split()[0] for fault in FAULT_GRIDS} | UNCOVERED_FAULTS == known_faults


@pytest.mark.parametrize(
    ("cause", "kind"),
    [(cause, kind) for cause in list_causes() for kind in cause.machines or (WITH_TARGETS,)],
    ids=lambda item: item if isinstance(item, str) else item.id,
)
def test_every_cause_changes_the_rate_of_some_experiment(cause: CauseFile, kind: str) -> None:
    changes = []
    for experiment in list_experiments_for_machine_kind(kind):
        for phase in experiment.phases:
            change = compute_cause_change(cause, experiment, phase.id)
            changes.append(float(np.max(np.abs(change))))
    assert max(changes) > 0.3


def test_contrasts_name_existing_phases() -> None:
    phases = {f"{item.id}.{phase.id}" for item in list_diagnosis_experiments() if item.plan for phase in item.phases}
    likes = {phase.like for item in list_diagnosis_experiments() for phase in item.phases if phase.like}
    assert likes
    assert likes <= phases


def test_traits_of_fault_grids_are_default_traits() -> None:
    assert {trait for grid in FAULT_GRIDS.values() for trait in grid.absent_with} <= set(DEFAULT_TRAITS)


def test_wrong_cause_is_refused_with_file_and_member(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text('schema = "sonde-cause/1"\nid = "odd"\n', encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"odd.toml: .*lacks"):
        read_description_file(CauseFile, path)


@pytest.mark.parametrize(
    ("member", "expected_problem"),
    [
        ('rules = ["lustre-router-dwn"]', 'no shipped log rule is "lustre-router-dwn".*lustre-router-down'),
        ('rules = ["lustre-router-down"]\nwhere = { service = "x" }', 'no pattern of its rules has a group "service"'),
        ('rules = ["lustre-router-down"]\nwhere = { nid = "(" }', "where.nid is no regular expression"),
    ],
)
def test_wrong_log_rule_is_refused(tmp_path: Path, member: str, expected_problem: str) -> None:
    path = tmp_path / "odd.toml"
    text = Path(str(resources.files("sonde.diagnose"))) / "experiments" / "server-messages.toml"
    path.write_text(text.read_text(encoding="utf-8").replace('rules = ["lustre-router-down"]', member), "utf-8")
    with pytest.raises(ExperimentError, match=f"odd.toml: phases.router.*{expected_problem}"):
        read_description_file(DiagnosisExperiment, path)
