# SPDX-License-Identifier: Apache-2.0
"""Reads the causes and experiments that Sonde ships."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from sonde.diagnose.description import CauseFile, DiagnosisExperiment
from sonde.model.documents import parse_toml
from sonde.model.errors import ExperimentError, UserError, suggest_name
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_text_file
from sonde.model.tables.table_reader import ReadContext, read_table

Table = TypeVar("Table", CauseFile, DiagnosisExperiment)


@cache
def list_causes() -> tuple[CauseFile, ...]:
    """Hypotheses outside the model, in the order of their names."""
    return tuple(read_file(CauseFile, path) for path in _list_files("causes"))


@cache
def list_experiments() -> tuple[DiagnosisExperiment, ...]:
    """Discriminating experiments, in the order of their names."""
    return tuple(read_file(DiagnosisExperiment, path) for path in _list_files("experiments"))


def find_experiment(name: str) -> DiagnosisExperiment:
    """Returns the experiment of that name. Raises UserError with the nearest name."""
    by_id = {experiment.id: experiment for experiment in list_experiments()}
    if name not in by_id:
        raise UserError(
            f'There is no diagnosis experiment "{name}"; there are {", ".join(by_id)}.{suggest_name(name, by_id)}'
        )
    return by_id[name]


def read_file(cls: type[Table], path: Path) -> Table:
    """Reads one file of a cause or an experiment. Raises ExperimentError with file and member."""
    text = read_text_file(path, "diagnosis file", MAX_CONFIGURATION_BYTES, ExperimentError)
    try:
        document = parse_toml(text)
    except ValueError as error:
        raise ExperimentError(f"{path} is not valid TOML: {error}.") from None
    return read_table(cls, document, ReadContext(ExperimentError, str(path)))


def _list_files(folder: str) -> list[Path]:
    entries = resources.files("sonde.diagnose").joinpath(folder).iterdir()
    return sorted(Path(str(entry)) for entry in entries if entry.name.endswith(".toml"))
