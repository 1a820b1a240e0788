# SPDX-License-Identifier: Apache-2.0
"""Parses results that a person states: a change for each phase, or whether the servers logged messages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sonde.diagnose.description import DiagnosisExperiment, MeasuredPhase
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.server_messages import list_parts_in_messages, state_messages
from sonde.model.errors import UserError

# Error of a change that a person states, in units of the noise of one run.
_STATED_CHANGE_ERROR = 0.5
_ANSWERS = {"yes": True, "no": False}


def parse_stated_result(
    experiment: DiagnosisExperiment, change_texts: Sequence[str], machine: DiagnosedMachine | None = None
) -> ExperimentResult:
    """Parses PHASE=-40% or PHASE=0.6x, each a change against the fast time, SETTING=yes or SETTING=no, and KIND=yes,
    KIND=no or KIND=PART,PART of messages; parts are those of `machine`. Raises UserError."""
    phases = {phase.id: phase for phase in experiment.phases}
    rates: dict[str, float] = {}
    messages: dict[str, bool] = {}
    for text in change_texts:
        phase, separator, value = text.partition("=")
        if not separator or phase not in phases:
            raise UserError(f'"{text}" is not PHASE=CHANGE of {experiment.id}; its phases are {", ".join(phases)}.')
        if not phases[phase].is_yes_or_no:
            rates[phase] = _parse_change(value, text)
        elif value in _ANSWERS:
            messages[phase] = _ANSWERS[value]
        else:
            messages |= _parse_named_parts(phases[phase], value, text, machine)
    return ExperimentResult(experiment.id, (RunMeasurement(rates, {}, messages),), _STATED_CHANGE_ERROR * 0.1)


def _parse_named_parts(
    phase: MeasuredPhase, value: str, argument: str, machine: DiagnosedMachine | None
) -> dict[str, bool]:
    allowed = list_parts_in_messages(machine, phase.part_kind) if machine else ()
    parts = value.split(",")
    if machine is None or not allowed or not set(parts) <= set(allowed):
        answers = [f"{phase.id}={answer}" for answer in (*_ANSWERS, *allowed[:1])]
        question = "it changed" if phase.setting else "they show it" if phase.counter else "there are such messages"
        raise UserError(
            f'"{argument}" does not say whether {question}; write {", ".join(answers[:-1])} or {answers[-1]}.'
        )
    return state_messages(phase.id, parts, phase.part_kind, machine)


def _parse_change(change_text: str, change_argument: str) -> float:
    try:
        factor = (
            1 + float(change_text[:-1]) / 100 if change_text.endswith("%") else float(change_text.removesuffix("x"))
        )
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and 1e-6 <= factor <= 1e6):
        raise UserError(f'"{change_argument}" has no change of a rate; write it as -40% or as 0.6x.')
    return math.log(factor)
