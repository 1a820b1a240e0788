# SPDX-License-Identifier: Apache-2.0
"""Predictions of faults of the model for contrasts, which compare a side with the fault and one without."""

from __future__ import annotations

import numpy as np

from sonde.diagnose.description import DiagnosisExperiment, MeasuredPhase
from sonde.diagnose.hypotheses import Hypothesis
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

# Mean and error of the log rate of a stream that loses segments. By the equation of RFC 5348, section 3.1, losses of
# 0.5 % to 3 % leave between all and a thousandth of the rate of a fast network: it depends on the size of segments, the
# round-trip time, and timeouts of 0.2 s.
_LOST_SEGMENTS_MEAN, _LOST_SEGMENTS_SD = -3.0, 2.5


def predict_fault_in_contrast(
    hypothesis: Hypothesis, experiment: DiagnosisExperiment, like: Prediction | None
) -> Prediction:
    """The prediction of a fault of the model for a contrast: its effect where one side is without the fault.

    `like` is the prediction for the experiment that the contrast names.
    """
    strengths = count_strengths(hypothesis)
    rates: dict[str, tuple[Floats, Floats]] = {}
    for phase in experiment.rate_phases:
        mean, sd = np.zeros(strengths), np.full(strengths, MODEL_SD)
        if set(phase.against or ()) & set(hypothesis.strength_grid.absent_with):
            if (stream := _predict_stream(hypothesis, phase)) is not None:
                mean, sd = stream
            elif like is not None:
                mean, sd = like.rates.get(phase.like.partition(".")[2], (mean, sd))
            sd = np.sqrt(sd**2 + CAUSE_SD**2)
        rates[phase.id] = mean, sd
    return Prediction(rates)


def _predict_stream(hypothesis: Hypothesis, phase: MeasuredPhase) -> tuple[Floats, Floats] | None:
    """Change of the rate of a stream, with its error; None for faults that change it as they change files."""
    if is_stream(phase) and "retransmissions" in hypothesis.counters:
        strengths = count_strengths(hypothesis)
        return np.full(strengths, _LOST_SEGMENTS_MEAN), np.full(strengths, _LOST_SEGMENTS_SD)
    if not is_stream(phase) or "" in hypothesis.strength_grid.amounts:
        return None
    changes = [compute_stream_change(hypothesis.fault, str(amount)) for amount in interpolate_amounts(hypothesis)]
    if None in changes:
        return None
    mean = np.array(changes, dtype=float)
    return mean, np.hypot(MODEL_SD, RELATIVE_SD * mean)
