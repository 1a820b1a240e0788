# SPDX-License-Identifier: Apache-2.0
"""Classifies a rate over time by its form: flat, declining, rising or dips."""

from __future__ import annotations

from sonde.experiments.claims.samples import MissingError, RateCurve
from sonde.findings.variation import MIN_CHANGE_RATIO, RateVariation, analyze_rate_variation
from sonde.model.experiment.claims import (
    SHAPES,
)
from sonde.stats.bins import find_steady_slices
from sonde.stats.shapes import MIN_SLICES, find_rate_shape

# This fraction at the start of a curve is ignored in its classification, since caches and queues fill.
SKIPPED_START_FRACTION = 0.1


_FORM_BY_SHAPE = {
    "steady decline": "declining",
    "cliff": "declining",
    "long tail": "declining",
    "slow start": "rising",
    "stall": "dips",
    "periodic dips": "dips",
}


def classify_form(curve: RateCurve) -> str:
    """Returns the form of a rate over time: flat, declining, rising or dips. Uses the slices in which all tasks were
    active, except the first tenth. Raises MissingError if there are too few."""
    begin, end = find_steady_slices(curve.amounts, curve.active_tasks)
    begin += int(SKIPPED_START_FRACTION * (end - begin))
    amounts = curve.amounts[begin:end]
    if len(amounts) < MIN_SLICES:
        raise MissingError(
            f"a phase with at least {MIN_SLICES} slices in which all tasks work; here are {len(amounts)}"
        )
    variation_found = analyze_rate_variation(amounts, [1] * len(amounts), curve.slice_s)
    if _is_rising(variation_found):
        return "rising"
    shape = find_rate_shape(amounts)
    if shape is not None:
        return _FORM_BY_SHAPE[shape.name]
    if variation_found.kind in ("drift", "steps"):
        return "declining"
    return "dips" if variation_found.kind == "stalls" else SHAPES[0]


def _is_rising(rate_variation: RateVariation) -> bool:
    """Returns whether the rate rose. The named shapes only fall or recover, so levels and trends decide."""
    if rate_variation.kind == "drift":
        return rate_variation.after > rate_variation.before
    return (
        rate_variation.kind == "steps" and rate_variation.parts[-1][1] > MIN_CHANGE_RATIO * rate_variation.parts[0][1]
    )
