# SPDX-License-Identifier: Apache-2.0
"""Names of axes and phases in an experiment, and errors about unknown names."""

from __future__ import annotations

from collections.abc import Iterable

from sonde.model.errors import ExperimentError, suggest_close_name
from sonde.model.experiment.axes import SweepAxis
from sonde.model.experiment.experiment import Experiment


def make_experiment_error(experiment: Experiment, member_path: str, problem_clause: str) -> ExperimentError:
    return ExperimentError(f"{experiment.origin}: {member_path} {problem_clause}")


def describe_unknown_name(name_kind: str, unknown_name: str, candidate_names: Iterable[str]) -> str:
    names = [candidate for candidate in candidate_names if candidate]
    others = f" There is {', '.join(names)}." if names else ""
    return (
        f'names the {name_kind} "{unknown_name}", which is not '
        f"there.{suggest_close_name(unknown_name, names) or others}"
    )


def list_phase_ids(experiment: Experiment, plan_id: str | None = None) -> list[str]:
    plans = [document for name, document in experiment.plans.items() if plan_id is None or name == plan_id]
    return [phase["id"] for document in plans for phase in document["phases"]]


def map_axes_by_name(experiment: Experiment) -> dict[str, SweepAxis | None]:
    axes: dict[str, SweepAxis | None] = {axis.name: axis for axis in experiment.axes}
    return axes | ({"plan": None} if experiment.file.plans else {})
