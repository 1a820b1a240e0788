# SPDX-License-Identifier: Apache-2.0
"""Reads the causes and experiments that Sonde ships, and the log rules that they name."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from sonde.diagnose.description import WITH_TARGETS, CauseFile, DiagnosisExperiment
from sonde.logs.rule_files import CompiledRule, compile_shipped_rules
from sonde.model.documents import parse_toml
from sonde.model.errors import ExperimentError, UserError, suggest_close_name
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_text_file
from sonde.model.tables.table_reader import ReadContext, read_table

DescriptionTable = TypeVar("DescriptionTable", CauseFile, DiagnosisExperiment)


@cache
def list_causes() -> tuple[CauseFile, ...]:
    """Hypotheses outside the model, in the order of their names."""
    return tuple(read_description_file(CauseFile, path) for path in _list_description_files("causes"))


def list_causes_for_machine_kind(machine_kind: str) -> tuple[CauseFile, ...]:
    """Hypotheses outside the model that a kind of machine can have."""
    return tuple(item for item in list_causes() if machine_kind in (item.machines or (WITH_TARGETS,)))


def list_experiments_for_machine_kind(machine_kind: str) -> tuple[DiagnosisExperiment, ...]:
    """Returns the experiments for WITH_TARGETS or LOCAL. An experiment that names no machines is for WITH_TARGETS."""
    return tuple(item for item in list_diagnosis_experiments() if machine_kind in (item.machines or (WITH_TARGETS,)))


@cache
def list_shipped_log_rules() -> dict[str, CompiledRule]:
    """Log rules that Sonde ships, by name."""
    return {rule.rule.id: rule for rule in compile_shipped_rules()}


@cache
def list_diagnosis_experiments() -> tuple[DiagnosisExperiment, ...]:
    """Discriminating experiments, in the order of their names."""
    return tuple(read_description_file(DiagnosisExperiment, path) for path in _list_description_files("experiments"))


def find_diagnosis_experiment(experiment_id: str) -> DiagnosisExperiment:
    """Returns the experiment of that name. Raises UserError with the nearest name."""
    by_id = {experiment.id: experiment for experiment in list_diagnosis_experiments()}
    if experiment_id not in by_id:
        raise UserError(
            f'There is no diagnosis experiment "{experiment_id}"; there are '
            f"{', '.join(by_id)}.{suggest_close_name(experiment_id, by_id)}"
        )
    return by_id[experiment_id]


def read_description_file(cls: type[DescriptionTable], description_file: Path) -> DescriptionTable:
    """Reads one file of a cause or an experiment. Raises ExperimentError with file and member."""
    text = read_text_file(description_file, "diagnosis file", MAX_CONFIGURATION_BYTES, ExperimentError)
    try:
        document = parse_toml(text)
    except ValueError as error:
        raise ExperimentError(f"{description_file} is not valid TOML: {error}.") from None
    table = read_table(cls, document, ReadContext(ExperimentError, str(description_file)))
    if isinstance(table, DiagnosisExperiment):
        _check_log_rules(table, description_file)
    return table


def _check_log_rules(experiment: DiagnosisExperiment, description_file: Path) -> None:
    """Checks the rules that phases name, and what they ask of groups. Raises ExperimentError."""
    shipped = list_shipped_log_rules()
    for phase in experiment.phases:
        groups: set[str] = set()
        for name in phase.rules:
            if name not in shipped:
                suggestion = suggest_close_name(name, shipped)
                raise ExperimentError(
                    f'{description_file}: phases.{phase.id}.rules: no shipped log rule is "{name}".{suggestion}'
                )
            groups.update(shipped[name].pattern.groupindex)
        for group, pattern in (phase.where or {}).items():
            if group not in groups:
                raise ExperimentError(
                    f'{description_file}: phases.{phase.id}.where: no pattern of its rules has a group "{group}".'
                )
            try:
                re.compile(pattern)
            except re.error as error:
                raise ExperimentError(
                    f"{description_file}: phases.{phase.id}.where.{group} is no regular expression: {error}."
                ) from None


def _list_description_files(folder_name: str) -> list[Path]:
    entries = resources.files("sonde.diagnose").joinpath(folder_name).iterdir()
    return sorted(Path(str(entry)) for entry in entries if entry.name.endswith(".toml"))
