# SPDX-License-Identifier: Apache-2.0
"""Experiments (``schema/experiment``): plans, a sweep, repeats, and claims about the results.

``read_experiment(path)`` returns an `Experiment`: its `cells`, the plan of each (`build_plan_of_cell`), its `claims`,
its `file`.
"""

from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.model.experiment.experiment_reader import change_members_by_path, make_experiment, read_experiment
from sonde.model.experiment.system_contradictions import find_contradictions

__all__ = [
    "Cell",
    "ClaimVerdict",
    "Experiment",
    "change_members_by_path",
    "find_contradictions",
    "make_experiment",
    "read_experiment",
]
