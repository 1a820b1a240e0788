# SPDX-License-Identifier: Apache-2.0
"""Adds to the predictions of a fault how unevenly it slows nodes that are not faulty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.measurements import NODES
from sonde.diagnose.predictions import VECTOR_SD, Prediction, SimulatedEffect
from sonde.diagnose.uneven_nodes import predict_uneven_nodes


def add_uneven_nodes(prediction: Prediction, strongest_effect: SimulatedEffect, hypothesis: Hypothesis) -> Prediction:
    """Returns the prediction with runs that have uneven nodes, for a fault that is at no node. A fault at a part can
    make nodes uneven even if they were not in any simulated run."""
    changed = dict(prediction.vectors)
    for key, vector in prediction.vectors.items():
        uneven_runs, all_runs = strongest_effect.uneven_runs.get(key, (0, 0))
        if key[1] != NODES or not all_runs or not (hypothesis.group or uneven_runs):
            continue
        effect = prediction.rates[key[0]][0]
        changed[key] = replace(
            vector,
            outside_sd=np.full_like(vector.outside_sd, VECTOR_SD),
            uneven=predict_uneven_nodes(uneven_runs, all_runs, vector.outside_sd, effect),
        )
    return replace(prediction, vectors=changed)
