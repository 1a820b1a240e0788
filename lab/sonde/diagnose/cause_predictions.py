# SPDX-License-Identifier: Apache-2.0
"""Predictions of causes outside the model, which state them in their files."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from sonde.diagnose.description import CauseEffect, CauseFile, DiagnosisExperiment
from sonde.diagnose.experiment_plan import combine_reference_traits, combine_traits
from sonde.diagnose.predictions import CAUSE_STRENGTHS, MODEL_SD, VECTOR_SD, Prediction, VectorPrediction
from sonde.stats.ranks import Floats


def predict_cause(
    cause: CauseFile, experiment: DiagnosisExperiment, vector_keys: Sequence[tuple[str, str]]
) -> Prediction:
    """The prediction that a cause states, at strengths from its largest to its smallest factor."""
    rates: dict[str, tuple[Floats, Floats]] = {}
    for phase in experiment.rate_phases:
        sides = _find_effects(cause, experiment, phase.id)
        # The same effect on both sides cancels. One that leaves the rate as it is on average may still spread.
        errors = [effect.spread or 0.0 for effect in sides if effect is not None and sides[0] != sides[1]]
        change = compute_cause_change(cause, experiment, phase.id)
        rates[phase.id] = change, np.full(CAUSE_STRENGTHS, max([MODEL_SD, *errors]))
    zeros, sd = np.zeros(CAUSE_STRENGTHS), np.full(CAUSE_STRENGTHS, VECTOR_SD)
    return Prediction(rates, dict.fromkeys(vector_keys, VectorPrediction(zeros, zeros, sd, sd)))


def compute_cause_change(cause: CauseFile, experiment: DiagnosisExperiment, phase_id: str) -> Floats:
    """Returns the log factor on the result of a phase, for each strength; in a contrast relative to its other side."""
    here, reference = (_list_log_factors(effect) for effect in _find_effects(cause, experiment, phase_id))
    return here - reference


def _list_log_factors(effect: CauseEffect | None) -> Floats:
    if effect is None:
        return np.zeros(CAUSE_STRENGTHS)
    return np.linspace(log(effect.most or 1.0), log(effect.least or 1.0), CAUSE_STRENGTHS)


def _find_effects(
    cause: CauseFile, experiment: DiagnosisExperiment, phase_id: str
) -> tuple[CauseEffect | None, CauseEffect | None]:
    """Effects on the measurement of a phase, and on the other side of a contrast."""
    reference = combine_reference_traits(experiment, phase_id)
    return (
        cause.find_effect(combine_traits(experiment, phase_id)),
        None if reference is None else cause.find_effect(reference),
    )
