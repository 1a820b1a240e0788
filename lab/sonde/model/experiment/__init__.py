# SPDX-License-Identifier: Apache-2.0
"""Experiments (``schema/experiment``): plans, a sweep, repeats, and what is expected of the results.

``read_experiment(path)`` gives an `Experiment`: its `cells`, the plan of each (`plan_of`), its `claims`, its `file`.
"""

from sonde.model.experiment.against import contradictions
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.model.experiment.loading import experiment_from_document, read_experiment, with_settings
from sonde.model.experiment.outcomes import Outcome

__all__ = [
    "Cell",
    "Experiment",
    "Outcome",
    "contradictions",
    "experiment_from_document",
    "read_experiment",
    "with_settings",
]
