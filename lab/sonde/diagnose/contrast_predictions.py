# SPDX-License-Identifier: Apache-2.0
"""Predictions of faults of the model for contrasts, which compare a side with the fault and one without."""

from __future__ import annotations

import numpy as np

from sonde.diagnose.chance_effects import ChanceEffect
from sonde.diagnose.description import DiagnosisExperiment, MeasuredPhase
from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.lost_segments import loses_segments, make_stream_effect
from sonde.diagnose.network_streams import compute_stream_change, is_stream
from sonde.diagnose.predictions import (
    CAUSE_SD,
    MODEL_SD,
    RELATIVE_SD,
    Prediction,
    count_strengths,
    interpolate_amounts,
)
from sonde.stats.ranks import Floats


def predict_fault_in_contrast(
    hypothesis: Hypothesis, experiment: DiagnosisExperiment, like: Prediction | None
) -> Prediction:
    """The prediction of a fault of the model for a contrast: its effect where one side is without the fault.

    `like` is the prediction for the experiment that the contrast names.
    """
    strengths = count_strengths(hypothesis)
    rates: dict[str, tuple[Floats, Floats]] = {}
    chance_rates: dict[str, ChanceEffect] = {}
    for phase in experiment.rate_phases:
        mean, sd = np.zeros(strengths), np.full(strengths, MODEL_SD)
        if set(phase.against or ()) & set(hypothesis.strength_grid.absent_with):
            if is_stream(phase) and loses_segments(hypothesis):
                chance_rates[phase.id] = make_stream_effect(strengths, CAUSE_SD)
                mean, sd = chance_rates[phase.id].mean, chance_rates[phase.id].sd
            elif (stream := _predict_stream(hypothesis, phase)) is not None:
                mean, sd = stream
            elif like is not None:
                mean, sd = like.rates.get(phase.like.partition(".")[2], (mean, sd))
            sd = np.sqrt(sd**2 + CAUSE_SD**2)
        rates[phase.id] = mean, sd
    return Prediction(rates, chance_rates=chance_rates)


def _predict_stream(hypothesis: Hypothesis, phase: MeasuredPhase) -> tuple[Floats, Floats] | None:
    """Change of the rate of a stream, with its error; None for faults that change it as they change files."""
    if not is_stream(phase) or "" in hypothesis.strength_grid.amounts:
        return None
    changes = [compute_stream_change(hypothesis.fault, str(amount)) for amount in interpolate_amounts(hypothesis)]
    if None in changes:
        return None
    mean = np.array(changes, dtype=float)
    return mean, np.hypot(MODEL_SD, RELATIVE_SD * mean)
