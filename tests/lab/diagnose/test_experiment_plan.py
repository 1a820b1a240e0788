# SPDX-License-Identifier: Apache-2.0
"""Plans of experiments on machines whose file systems place files differently."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnosis_machine import SYSTEM, read_small_machine

from sonde.diagnose.experiment_plan import (
    ScaledExperiment,
    combine_traits,
    is_predictable,
    scale_experiment_to_machine,
)
from sonde.diagnose.library import find_diagnosis_experiment


def scale(folder: Path, experiment: str, kind: str) -> ScaledExperiment:
    machine = read_small_machine(folder, SYSTEM.replace('kind = "lustre"', f'kind = "{kind}"'))
    return scale_experiment_to_machine(find_diagnosis_experiment(experiment), machine)


@pytest.mark.parametrize(
    ("kind", "mapping", "tasks", "stripes"), [("lustre", "shared", 16, 8), ("gluster", "per_task", 32, 1)]
)
def test_shared_file_is_divided_where_files_have_one_target(
    tmp_path: Path, kind: str, mapping: str, tasks: int, stripes: int
) -> None:
    scaled = scale(tmp_path, "every-target", kind)
    data = scaled.plan["data"]
    assert (data["files"]["mapping"], scaled.tasks, scaled.stripe_count) == (mapping, tasks, stripes)
    assert data["access"]["volume"] * tasks == 8 * 64 << 20  # 64 MiB for each target
    assert combine_traits(scaled.description, "read")["sharing"] == mapping
    assert ("read", "targets") in scaled.vector_keys


def test_plan_with_a_file_for_each_task_is_unchanged_on_gluster(tmp_path: Path) -> None:
    striped, unstriped = (scale(tmp_path, "warm-cache", kind) for kind in ("lustre", "gluster"))
    assert unstriped.plan == striped.plan
    assert (striped.stripe_count, unstriped.stripe_count) == (8, 1)


def test_names_on_gluster_are_not_predicted(tmp_path: Path) -> None:
    """The model has a metadata server; Gluster has none."""
    names, data = (find_diagnosis_experiment(name) for name in ("names", "every-target"))
    for kind, expected in (("lustre", True), ("gluster", False)):
        machine = read_small_machine(tmp_path, SYSTEM.replace('kind = "lustre"', f'kind = "{kind}"'))
        assert (is_predictable(names, machine), is_predictable(data, machine)) == (expected, True)
