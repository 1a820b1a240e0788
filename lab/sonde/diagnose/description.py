# SPDX-License-Identifier: Apache-2.0
"""Declarations of the members of files of causes and of discriminating experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.tables.members import (
    declare_choice,
    declare_choices,
    declare_flag,
    declare_plain_number,
    declare_raw_value,
    declare_table,
    declare_tables,
    declare_text,
    declare_texts,
)

CAUSE_FORMAT = "sonde-cause/1"
EXPERIMENT_FORMAT = "sonde-diagnosis-experiment/1"
CATEGORIES = ("nothing", "fault", "load", "settings", "software", "application", "measurement", "unexplained")
# Machines whose map has storage targets, and file systems of one node without any.
MACHINE_KINDS = (WITH_TARGETS, LOCAL) = ("with_targets", "local")
# Parts that messages of servers name: the server that logs them, or a router.
MESSAGE_PART_KINDS = (SERVER, ROUTER) = ("server", "router")
# What counters of a slow run can show, by the names that causes and faults list.
COUNTER_OBSERVATIONS: Mapping[str, str] = {
    "other-traffic": "the device moved more bytes than the run",
    "busy-processors": "other programs used processor time",
    "retransmissions": "TCP sent segments again",
    "loaded-metadata": "the metadata server worked for others",
    "loaded-targets": "storage targets moved bytes of others",
    "reads-from-device": "reads that came from memory before came from the device",
    "little-space": "less than a tenth of the space is free",
    "processor-limit": "a control group limits the processors, and did not before",
    "memory-limit": "a control group limits the memory, and did not before",
    "byte-limit": "a control group limits bytes per second of the device",
    "request-limit": "a control group limits requests per second of the device",
    "longer-run-queue": "more programs were running or waiting for the device",
}
# Error of the factor that a cause states, as a standard deviation of logarithms.
_CAUSE_SD = 0.1
# What every measurement has unless its experiment states otherwise: the complaint is about the system as it is now.
DEFAULT_TRAITS: Mapping[str, str] = {
    "software": "now",
    "server_software": "now",
    "options": "now",
    "application": "benchmark",
    "api": "posix",
    "age": "fresh",
    "load": "now",
    "file_system": "this",
    "path": "direct",
    "nodes": "these",
    "network": "now",
    "medium": "storage",
    "baseline": "checked",
}
_TRAITS_FORM = {"type": "object", "additionalProperties": {"type": "string"}}
_PLAN_FORM = {"type": "object"}
_ID, _PHASE_ID = r"[a-z0-9][a-z0-9-]*", r"[a-z0-9][a-z0-9_-]*"


def _find_traits_problem(traits_member: object) -> str | None:
    if not isinstance(traits_member, Mapping) or not all(isinstance(item, str) for item in traits_member.values()):
        return 'must be a table of texts, like { op = "read" }.'
    return None


def _find_plan_problem(plan_member: object) -> str | None:
    return None if isinstance(plan_member, Mapping) else "must be a plan, as a table."


@dataclass(frozen=True, kw_only=True)
class CauseEffect:
    """Measurements with these traits change by a factor that is unknown within a range."""

    traits: Mapping[str, str] = declare_raw_value(
        "traits of the measurements", _TRAITS_FORM, _find_traits_problem, required=True
    )
    least: float | None = declare_plain_number("number", "smallest factor on the rate", default_value=0.2)
    most: float | None = declare_plain_number("number", "largest factor on the rate", default_value=0.85)
    spread: float | None = declare_plain_number(
        "number", "standard deviation of the factor's logarithm around the one of its strength", default_value=_CAUSE_SD
    )


@dataclass(frozen=True, kw_only=True)
class CauseFile:
    """A hypothesis outside the model, with its prediction."""

    schema: str = declare_choice("version of this format", (CAUSE_FORMAT,), required=True)
    id: str = declare_text("name of the cause", required=True, pattern=_ID)
    title: str = declare_text("the cause in one sentence", required=True)
    category: str = declare_choice("what kind of cause it is", CATEGORIES[1:-1], required=True)
    source: str = declare_text("where the prediction comes from", required=True)
    advice: str = declare_text("what to do when it is the cause", required=True)
    environment: tuple[str, ...] = declare_texts("words of environment facts that differ when it is the cause")
    counters: tuple[str, ...] = declare_choices("what counters of the slow time show", tuple(COUNTER_OBSERVATIONS))
    machines: tuple[str, ...] = declare_choices(
        "machines that can have it; default: those with storage targets", MACHINE_KINDS
    )
    effects: tuple[CauseEffect, ...] = declare_tables("predicted changes of rates", CauseEffect, required=True)

    def find_effect(self, traits: Mapping[str, str]) -> CauseEffect | None:
        """Returns the first effect on a measurement with these traits."""
        return next(
            (
                effect
                for effect in self.effects
                if all(traits.get(name) == value for name, value in effect.traits.items())
            ),
            None,
        )


@dataclass(frozen=True, kw_only=True)
class MeasuredPhase:
    """A phase whose rate is compared with predictions."""

    id: str = declare_text("phase of the plan; of a contrast a name for its result", required=True, pattern=_PHASE_ID)
    traits: Mapping[str, str] = declare_raw_value(
        "traits of the measurement", _TRAITS_FORM, _find_traits_problem, required=True
    )
    against: Mapping[str, str] | None = declare_raw_value(
        "contrast: traits of the other side, where they differ", _TRAITS_FORM, _find_traits_problem
    )
    like: str = declare_text("contrast: EXPERIMENT.PHASE on which a fault of the model has the same effect")
    operations: bool | None = declare_flag("whether the rate counts operations instead of bytes")
    rules: tuple[str, ...] = declare_texts("instead of a rate: shipped log rules, one of which a line of a log matches")
    where: Mapping[str, str] | None = declare_raw_value(
        "regular expressions for the whole text of groups of the rules' patterns", _TRAITS_FORM, _find_traits_problem
    )
    part_kind: str = declare_choice("parts of the machine that the messages name", MESSAGE_PART_KINDS)
    setting: str = declare_text("instead of a rate: setting of clients that may have changed, as faults name it")
    facts: tuple[str, ...] = declare_texts("names of recorded facts that hold the setting")
    counter: str = declare_choice("instead of a rate: what counters may show", tuple(COUNTER_OBSERVATIONS))

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the result is yes or no: there is a message, a setting changed, or counters show something."""
        return bool(self.rules or self.setting or self.counter)


@dataclass(frozen=True, kw_only=True)
class ExperimentCost:
    """Cost of one repeat in addition to its duration."""

    setup: float | None = declare_plain_number("duration", "time to prepare it", default_value=0.0)
    person: float | None = declare_plain_number("duration", "time of a person", default_value=0.0)
    needs: tuple[str, ...] = declare_choices("what it needs", ("root", "server_access", "quiet_time", "old_software"))
    load: str = declare_choice("load that it puts on the file system", ("low", "medium", "high"), default_word="medium")


@dataclass(frozen=True, kw_only=True)
class DiagnosisExperiment:
    """A discriminating experiment: a plan, or a contrast of two sides that a person compares."""

    schema: str = declare_choice("version of this format", (EXPERIMENT_FORMAT,), required=True)
    id: str = declare_text("name of the experiment", required=True, pattern=_ID)
    title: str = declare_text("what is done", required=True)
    question: str = declare_text("the question that it answers", required=True)
    source: str = declare_text("where it comes from", required=True)
    how: str = declare_text("how a person does it", required=True)
    machines: tuple[str, ...] = declare_choices(
        "machines that it is done on; default: those with storage targets", MACHINE_KINDS
    )
    clients: str = declare_choice("nodes that take part", ("one", "few", "many"), default_word="many")
    files: str = declare_choice("distribution of each file", ("one_target", "all_targets"), default_word="one_target")
    tasks_per_node: float | None = declare_plain_number("count", "tasks on each node", default_value=None, min_value=1)
    plan: Mapping[str, Any] | None = declare_raw_value(
        "the plan; without one it is a contrast", _PLAN_FORM, _find_plan_problem
    )
    phases: tuple[MeasuredPhase, ...] = declare_tables("measured phases", MeasuredPhase, required=True)
    cost: ExperimentCost | None = declare_table("what a repeat costs", ExperimentCost)

    @property
    def is_contrast(self) -> bool:
        """Whether it has no plan: a person or a script compares two rates, or reads messages."""
        return self.plan is None

    @property
    def rate_phases(self) -> tuple[MeasuredPhase, ...]:
        """Phases whose result is a rate."""
        return tuple(phase for phase in self.phases if not phase.is_yes_or_no)

    @property
    def yes_or_no_phases(self) -> tuple[MeasuredPhase, ...]:
        """Phases whose result is whether there are messages, whether a setting changed, or what counters show."""
        return tuple(phase for phase in self.phases if phase.is_yes_or_no)
