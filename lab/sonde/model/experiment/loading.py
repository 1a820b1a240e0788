# SPDX-License-Identifier: Apache-2.0
"""Reads an experiment and the plans that it names."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sonde.model.errors import ExperimentError, PlanError, suggestion
from sonde.model.experiment.checks import check
from sonde.model.experiment.description import SCHEMA, ExperimentFile
from sonde.model.experiment.experiment import Experiment
from sonde.model.plan import read_document
from sonde.model.tables.reading import Reading, read_table

# Turns the name of a ready-made plan into a file; the ground knows no folder of plans.
PlanFinder = Callable[[str], str]


def read_experiment(path: Path | str, profile: str = "", finder: PlanFinder | None = None) -> Experiment:
    """The experiment in a TOML or JSON file, checked, with one of its profiles applied.

    Raises ExperimentError with one sentence. `finder` turns names of ready-made plans into files.
    """
    try:
        document = read_document(str(path))
    except PlanError as reason:
        raise ExperimentError(str(reason).replace("plan file", "experiment file")) from None
    return experiment_from_document(document, str(path), profile, finder)


def experiment_from_document(
    document: Mapping[str, Any], origin: str, profile: str = "", finder: PlanFinder | None = None
) -> Experiment:
    """The experiment in a document that is already read. Raises ExperimentError."""
    whole = _with_plans(copy.deepcopy(dict(document)), origin, finder)
    experiment = _read(whole, origin)
    check(experiment)
    for name in experiment.profiles:
        check(_with_profile(experiment, name), experiment)
    return _with_profile(experiment, profile) if profile else experiment


def with_settings(experiment: Experiment, settings: Mapping[str, Any], whole: Experiment | None = None) -> Experiment:
    """The experiment with members changed by path, checked again. `whole` is the experiment without its profile and
    settings: a claim about cells that these leave out does not apply."""
    changed = _read(experiment.changed(settings), experiment.origin)
    check(changed, whole)
    return changed


def _with_profile(experiment: Experiment, name: str) -> Experiment:
    profiles = experiment.file.profiles or {}
    if name not in profiles:
        known = ", ".join(profiles) or "none"
        raise ExperimentError(
            f'{experiment.origin} has no profile "{name}"; it has {known}.{suggestion(name, profiles)}'
        )
    return _read(experiment.changed(profiles[name]), f"{experiment.origin}, profile {name}")


def _read(document: Mapping[str, Any], origin: str) -> Experiment:
    at = Reading(ExperimentError, origin)
    if "schema" not in document:
        raise at.error(f'{origin}: schema is missing; an experiment begins with schema = "{SCHEMA}".')
    named = {"id": _id_from(origin), **document}
    return Experiment(read_table(ExperimentFile, named, at), named, origin)


def _with_plans(document: dict[str, Any], origin: str, finder: PlanFinder | None) -> dict[str, Any]:
    if _is_name(document.get("plan")):
        document["plan"] = _plan_of(document["plan"], origin, "plan", finder)
    for one in document["plans"] if isinstance(document.get("plans"), list) else []:
        if isinstance(one, dict) and _is_name(one.get("plan")):
            one["plan"] = _plan_of(one["plan"], origin, f"plans.{one.get('id')}.plan", finder)
    return document


def _is_name(plan: object) -> bool:
    """Of an empty one it is said that it is empty."""
    return isinstance(plan, str) and plan != ""


def _plan_of(name: str, origin: str, where: str, finder: PlanFinder | None) -> dict[str, Any]:
    beside = Path(origin).parent / name
    try:
        return read_document(str(beside) if finder is None or beside.is_file() else finder(name))
    except PlanError as reason:
        raise ExperimentError(f'{origin}: {where} names "{name}": {reason}') from None


def _id_from(origin: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(origin).stem).strip("-") or "experiment"
