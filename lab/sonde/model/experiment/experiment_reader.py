# SPDX-License-Identifier: Apache-2.0
"""Reads an experiment and the plans that it names."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sonde.model.errors import ExperimentError, PlanError, suggest_name
from sonde.model.experiment.checks import check_experiment
from sonde.model.experiment.description import EXPERIMENT_FORMAT, ExperimentFile
from sonde.model.experiment.experiment import Experiment
from sonde.model.plan import read_document
from sonde.model.tables.table_reader import ReadContext, read_table

# Converts the name of a bundled plan to a file name; this folder has no access to the plans.
PlanFinder = Callable[[str], str]


def read_experiment(path: Path | str, profile: str = "", finder: PlanFinder | None = None) -> Experiment:
    """Reads and checks an experiment in TOML or JSON, with one of its profiles applied.

    `finder` converts names of bundled plans to file names. Raises ExperimentError with one sentence.
    """
    try:
        document = read_document(str(path))
    except PlanError as error:
        raise ExperimentError(str(error).replace("plan file", "experiment file")) from None
    return make_experiment(document, str(path), profile, finder)


def make_experiment(
    document: Mapping[str, Any], origin: str, profile: str = "", finder: PlanFinder | None = None
) -> Experiment:
    """Returns the checked experiment in a parsed document. Raises ExperimentError."""
    full_document = _insert_plans(copy.deepcopy(dict(document)), origin, finder)
    experiment = _build_experiment(full_document, origin)
    check_experiment(experiment)
    for name in experiment.profiles:
        check_experiment(_with_profile(experiment, name), experiment)
    return _with_profile(experiment, profile) if profile else experiment


def with_settings(
    experiment: Experiment, settings: Mapping[str, Any], full_experiment: Experiment | None = None
) -> Experiment:
    """Returns the experiment with members changed by path, checked again.

    `whole` is the experiment without profile and settings: claims about cells that these remove do not apply.
    """
    changed = _build_experiment(experiment.apply_settings(settings), experiment.origin)
    check_experiment(changed, full_experiment)
    return changed


def _with_profile(experiment: Experiment, name: str) -> Experiment:
    profiles = experiment.file.profiles or {}
    if name not in profiles:
        names = ", ".join(profiles) or "none"
        raise ExperimentError(
            f'{experiment.origin} has no profile "{name}"; it has {names}.{suggest_name(name, profiles)}'
        )
    return _build_experiment(experiment.apply_settings(profiles[name]), f"{experiment.origin}, profile {name}")


def _build_experiment(document: Mapping[str, Any], origin: str) -> Experiment:
    context = ReadContext(ExperimentError, origin)
    if "schema" not in document:
        raise context.error(f'{origin}: schema is missing; an experiment begins with schema = "{EXPERIMENT_FORMAT}".')
    document_with_id = {"id": _derive_id(origin), **document}
    return Experiment(read_table(ExperimentFile, document_with_id, context), document_with_id, origin)


def _insert_plans(document: dict[str, Any], origin: str, finder: PlanFinder | None) -> dict[str, Any]:
    if _is_plan_name(document.get("plan")):
        document["plan"] = _read_named_plan(document["plan"], origin, "plan", finder)
    for entry in document["plans"] if isinstance(document.get("plans"), list) else []:
        if isinstance(entry, dict) and _is_plan_name(entry.get("plan")):
            entry["plan"] = _read_named_plan(entry["plan"], origin, f"plans.{entry.get('id')}.plan", finder)
    if isinstance(document.get("plan"), dict) and isinstance(document.get("plans"), list):
        _insert_common_members(document)
    return document


def _insert_common_members(document: dict[str, Any]) -> None:
    """Replaces `plan` next to `plans` by its members in each of them."""
    common = document.pop("plan")
    for entry in document["plans"]:
        if isinstance(entry, dict) and isinstance(entry.get("plan"), dict):
            entry["plan"] = _merge_tables(common, entry["plan"])


def _merge_tables(common: Mapping[str, Any], specific: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all members of both; tables in both are merged, any other value of `specific` replaces the common one."""
    merged = copy.deepcopy(dict(common))
    for name, value in specific.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merge_tables(merged[name], value) if both else value
    return merged


def _is_plan_name(plan: object) -> bool:
    """Returns False for an empty name, so that the check of the member reports it."""
    return isinstance(plan, str) and plan != ""


def _read_named_plan(name: str, origin: str, path: str, finder: PlanFinder | None) -> dict[str, Any]:
    adjacent_file = Path(origin).parent / name
    try:
        return read_document(str(adjacent_file) if finder is None or adjacent_file.is_file() else finder(name))
    except PlanError as error:
        raise ExperimentError(f'{origin}: {path} names "{name}": {error}') from None


def _derive_id(origin: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(origin).stem).strip("-") or "experiment"
