# SPDX-License-Identifier: Apache-2.0
"""Reads an experiment and the plans that it names."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sonde.model.errors import ExperimentError, PlanError, suggest_close_name
from sonde.model.experiment.checks import check_experiment
from sonde.model.experiment.description import EXPERIMENT_FORMAT, ExperimentFile
from sonde.model.experiment.experiment import Experiment
from sonde.model.plan import read_plan_document
from sonde.model.tables.table_reader import ReadContext, read_table

# Converts the name of a bundled plan to a file name; this folder has no access to the plans.
PlanFinder = Callable[[str], str]


def read_experiment(
    experiment_file: Path | str, profile_name: str = "", find_plan: PlanFinder | None = None
) -> Experiment:
    """Reads and checks an experiment in TOML or JSON, with one of its profiles applied.

    `find_plan` converts names of bundled plans to file names. Raises ExperimentError with one sentence.
    """
    try:
        document = read_plan_document(str(experiment_file))
    except PlanError as error:
        raise ExperimentError(str(error).replace("plan file", "experiment file")) from None
    return make_experiment(document, str(experiment_file), profile_name, find_plan)


def make_experiment(
    experiment_document: Mapping[str, Any],
    document_origin: str,
    profile_name: str = "",
    find_plan: PlanFinder | None = None,
) -> Experiment:
    """Returns the checked experiment in a parsed document. Raises ExperimentError."""
    full_document = _insert_named_plans(copy.deepcopy(dict(experiment_document)), document_origin, find_plan)
    experiment = _build_checked_experiment(full_document, document_origin)
    check_experiment(experiment)
    for name in experiment.profile_names:
        check_experiment(_apply_profile(experiment, name), experiment)
    return _apply_profile(experiment, profile_name) if profile_name else experiment


def change_members_by_path(
    experiment: Experiment, value_by_path: Mapping[str, Any], full_experiment: Experiment | None = None
) -> Experiment:
    """Returns the experiment with members changed by path, checked again.

    `full_experiment` is the one without profile and settings: claims about cells that these remove do not apply.
    """
    changed = _build_checked_experiment(experiment.apply_settings(value_by_path), experiment.origin)
    check_experiment(changed, full_experiment)
    return changed


def _apply_profile(experiment: Experiment, profile_name: str) -> Experiment:
    profiles = experiment.file.profiles or {}
    if profile_name not in profiles:
        names = ", ".join(profiles) or "none"
        raise ExperimentError(
            f'{experiment.origin} has no profile "{profile_name}"; it has '
            f"{names}.{suggest_close_name(profile_name, profiles)}"
        )
    return _build_checked_experiment(
        experiment.apply_settings(profiles[profile_name]), f"{experiment.origin}, profile {profile_name}"
    )


def _build_checked_experiment(experiment_document: Mapping[str, Any], document_origin: str) -> Experiment:
    context = ReadContext(ExperimentError, document_origin)
    if "schema" not in experiment_document:
        raise context.error(
            f'{document_origin}: schema is missing; an experiment begins with schema = "{EXPERIMENT_FORMAT}".'
        )
    document_with_id = {"id": _derive_id_from_origin(document_origin), **experiment_document}
    return Experiment(read_table(ExperimentFile, document_with_id, context), document_with_id, document_origin)


def _insert_named_plans(
    experiment_document: dict[str, Any], document_origin: str, find_plan: PlanFinder | None
) -> dict[str, Any]:
    if _is_plan_name(experiment_document.get("plan")):
        experiment_document["plan"] = _read_named_plan(experiment_document["plan"], document_origin, "plan", find_plan)
    for entry in experiment_document["plans"] if isinstance(experiment_document.get("plans"), list) else []:
        if isinstance(entry, dict) and _is_plan_name(entry.get("plan")):
            entry["plan"] = _read_named_plan(entry["plan"], document_origin, f"plans.{entry.get('id')}.plan", find_plan)
    if isinstance(experiment_document.get("plan"), dict) and isinstance(experiment_document.get("plans"), list):
        _insert_common_plan_members(experiment_document)
    return experiment_document


def _insert_common_plan_members(experiment_document: dict[str, Any]) -> None:
    """Replaces `plan` next to `plans` by its members in each of them."""
    common = experiment_document.pop("plan")
    for entry in experiment_document["plans"]:
        if isinstance(entry, dict) and isinstance(entry.get("plan"), dict):
            entry["plan"] = _merge_tables(common, entry["plan"])


def _merge_tables(common_table: Mapping[str, Any], overriding_table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all members of both; tables in both are merged, any other value of `overriding_table` replaces the common
    one."""
    merged = copy.deepcopy(dict(common_table))
    for name, value in overriding_table.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merge_tables(merged[name], value) if both else value
    return merged


def _is_plan_name(plan_member: object) -> bool:
    """Returns False for an empty name, so that the check of the member reports it."""
    return isinstance(plan_member, str) and plan_member != ""


def _read_named_plan(
    plan_name: str, document_origin: str, member_path: str, find_plan: PlanFinder | None
) -> dict[str, Any]:
    adjacent_file = Path(document_origin).parent / plan_name
    try:
        return read_plan_document(
            str(adjacent_file) if find_plan is None or adjacent_file.is_file() else find_plan(plan_name)
        )
    except PlanError as error:
        raise ExperimentError(f'{document_origin}: {member_path} names "{plan_name}": {error}') from None


def _derive_id_from_origin(document_origin: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(document_origin).stem).strip("-") or "experiment"
