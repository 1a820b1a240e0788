# SPDX-License-Identifier: Apache-2.0
"""Checks of the claims and published numbers of an experiment: the cells, phases and axes that they name exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonde.model.errors import ExperimentError, UnitError, suggest_close_name
from sonde.model.experiment.claim_parser import (
    find_unit_of_value,
    parse_claim,
    parse_claim_value,
    parse_published_number,
    wrap_value_in_claim,
)
from sonde.model.experiment.claim_ranges import find_constant_comparison
from sonde.model.experiment.claims import Claim, ClaimError, MetricReference
from sonde.model.experiment.experiment import Experiment
from sonde.model.experiment.experiment_names import (
    describe_unknown_name,
    list_phase_ids,
    make_experiment_error,
    map_axes_by_name,
)
from sonde.model.system.description import PART_KINDS
from sonde.model.tables.members import get_members


def check_claims(experiment: Experiment, full_experiment: Experiment) -> None:
    for expectation in experiment.file.expect:
        claim_path = f"expect.{expectation.id}"
        if expectation.control is not None and expectation.level != "simulated":
            raise make_experiment_error(
                experiment,
                f"{claim_path}.control",
                f"is given, but level is {expectation.level}; only a simulated claim has one.",
            )
        for path in expectation.control or {}:
            _check_control_location(experiment, f"{claim_path}.control", path)
        if not 0.5 <= expectation.confidence < 1:
            raise make_experiment_error(
                experiment, f"{claim_path}.confidence", f"is {expectation.confidence}; write a share from 0.5, below 1."
            )
        claim_path = f"{claim_path}.claim"
        try:
            claim = parse_claim(expectation.claim)
        except ClaimError as error:
            raise ExperimentError(f"{experiment.origin}: {claim_path}: {error}") from None
        if constant := find_constant_comparison(claim):
            raise make_experiment_error(
                experiment, claim_path, f"{constant}, whatever is measured; compare with a limit that it may miss."
            )
        _check_claim_names(full_experiment, claim_path, claim)


def _check_claim_names(full_experiment: Experiment, member_path: str, claim: Claim) -> None:
    """Checks that every cell, phase and axis that a claim names exists."""
    for metric in claim.iterate_metrics():
        _check_metric_names(full_experiment, member_path, metric)
    for function in claim.iterate_functions():
        _check_function_options(full_experiment, member_path, function.options)


def check_published(experiment: Experiment, full_experiment: Experiment) -> None:
    for number, published_number in enumerate(experiment.file.published):
        path = f"published.{number}"
        try:
            value = parse_claim_value(published_number.of)
            ends = [
                parse_published_number(printed_value, find_unit_of_value(value))
                for printed_value in (published_number.value, published_number.to)
                if printed_value is not None
            ]
        except (ClaimError, UnitError) as error:
            raise ExperimentError(f"{experiment.origin}: {path}: {error}") from None
        if len(ends) == 2 and ends[1] <= ends[0]:
            raise make_experiment_error(
                experiment,
                f"{path}.to",
                f"is {published_number.to}, not above value, {published_number.value}; write the smaller first.",
            )
        _check_claim_names(full_experiment, f"{path}.of", wrap_value_in_claim(published_number.of, value))


def _check_control_location(experiment: Experiment, system_location: str, control_path: str) -> None:
    """Checks a path into a system file: KIND.ID.MEMBER."""
    kind, _, member_path = control_path.partition(".")
    if kind not in PART_KINDS:
        raise make_experiment_error(
            experiment,
            system_location,
            f"{describe_unknown_name('kind of part', kind, PART_KINDS)} Write KIND.ID.MEMBER.",
        )
    steps = member_path.split(".")
    members_of_kind = get_members(PART_KINDS[kind])
    if len(steps) < 2 or not any(step in members_of_kind for step in steps[1:]):
        hint = suggest_close_name(steps[-1], members_of_kind)
        raise make_experiment_error(
            experiment,
            system_location,
            f'has "{control_path}", which names no member of {kind}; write KIND.ID.MEMBER.{hint}',
        )


def _check_metric_names(experiment: Experiment, member_path: str, metric: MetricReference) -> None:
    axes = map_axes_by_name(experiment)
    for name, value in metric.coordinates.items():
        axis = axes.get(name)
        if name not in axes:
            raise make_experiment_error(experiment, member_path, describe_unknown_name("axis", name, axes))
        if name == "plan":
            if value not in experiment.plans:
                raise make_experiment_error(
                    experiment, member_path, describe_unknown_name("plan", str(value), experiment.plans)
                )
        elif axis is not None and axis.find_axis_value(value) is None:
            values = ", ".join(str(axis_value.value) for axis_value in axis.values)
            raise make_experiment_error(
                experiment, member_path, f'names the cell {name}="{value}", which is not there; {name} is {values}.'
            )
    plan = metric.coordinates.get("plan")
    phases = list_phase_ids(experiment, None if plan is None else str(plan))
    if metric.phase and metric.phase not in phases:
        raise make_experiment_error(experiment, member_path, describe_unknown_name("phase", metric.phase, phases))
    if not metric.phase and len(set(phases)) > 1:
        raise make_experiment_error(
            experiment, member_path, f"says {metric.name}() without a phase; phases are {', '.join(phases)}."
        )


def _check_function_options(experiment: Experiment, member_path: str, function_options: Mapping[str, Any]) -> None:
    axes = map_axes_by_name(experiment)
    over = function_options.get("over")
    if over is None:
        return
    if over not in axes:
        raise make_experiment_error(experiment, member_path, describe_unknown_name("axis", str(over), axes))
    axis, value = axes[over], function_options.get("at")
    if axis is not None and value is not None and axis.find_axis_value(value) is None:
        values = ", ".join(str(axis_value.value) for axis_value in axis.values)
        raise make_experiment_error(
            experiment, member_path, f'names the cell {over}="{value}", which is not there; {over} is {values}.'
        )
