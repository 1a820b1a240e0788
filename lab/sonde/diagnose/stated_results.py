# SPDX-License-Identifier: Apache-2.0
"""Parses results that a person states: a change for each phase, or whether the servers logged messages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sonde.diagnose.description import DiagnosisExperiment
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import RunMeasurement
from sonde.model.errors import UserError

# Error of a change that a person states, in units of the noise of one run.
_STATED_CHANGE_ERROR = 0.5
_ANSWERS = {"yes": True, "no": False}


def parse_stated_result(experiment: DiagnosisExperiment, changes: Sequence[str]) -> ExperimentResult:
    """Parses PHASE=-40% or PHASE=0.6x, each a change against the fast time. Raises UserError."""
    phases = {phase.id: phase for phase in experiment.phases}
    rates: dict[str, float] = {}
    messages: dict[str, bool] = {}
    for text in changes:
        phase, separator, value = text.partition("=")
        if not separator or phase not in phases:
            raise UserError(f'"{text}" is not PHASE=CHANGE of {experiment.id}; its phases are {", ".join(phases)}.')
        if not phases[phase].rules:
            rates[phase] = _parse_change(value, text)
        elif value in _ANSWERS:
            messages[phase] = _ANSWERS[value]
        else:
            raise UserError(f'"{text}" does not say whether there are such messages; write {phase}=yes or {phase}=no.')
    return ExperimentResult(experiment.id, (RunMeasurement(rates, {}, messages),), _STATED_CHANGE_ERROR * 0.1)


def _parse_change(change_text: str, argument: str) -> float:
    try:
        factor = (
            1 + float(change_text[:-1]) / 100 if change_text.endswith("%") else float(change_text.removesuffix("x"))
        )
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and 1e-6 <= factor <= 1e6):
        raise UserError(f'"{argument}" has no change of a rate; write it as -40% or as 0.6x.')
    return math.log(factor)
