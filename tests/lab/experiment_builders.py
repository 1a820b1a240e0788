# SPDX-License-Identifier: Apache-2.0
"""Experiments of one and of two plans."""

from __future__ import annotations

from typing import Any

from sonde.model.experiment import make_experiment
from sonde.model.experiment.experiment import Experiment

PHASES = [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]
PLAN: dict[str, Any] = {"data": {"access": {"transfer": "64KiB"}}, "phases": PHASES}
SIZES = {"paths": "data.access.transfer", "values": ["4KiB", "64KiB"]}


def build_experiment(**members: Any) -> Experiment:
    """Builds an experiment of one plan; members that are None are omitted."""
    document = {"schema": "sonde-experiment/2", "plan": PLAN} | members
    return make_experiment({name: value for name, value in document.items() if value is not None}, "x.toml")


def make_experiment_with_plans(**members: Any) -> Experiment:
    """Builds an experiment of two plans; the second has one phase more than the first."""
    two = {"phases": [*PHASES, {"id": "s", "op": "stat"}]}
    document = {"schema": "sonde-experiment/2", "plans": [{"id": "a", "plan": PLAN}, {"id": "b", "plan": two}]}
    return make_experiment(document | members, "x.toml")
