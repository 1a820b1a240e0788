# SPDX-License-Identifier: Apache-2.0
"""The experiments and plans that are installed with Sonde, by the name of their file."""

from __future__ import annotations

from pathlib import Path

from sonde.model.bundled_files import find_bundled_toml_files, is_file_reference
from sonde.model.errors import PlanError, suggest_close_name
from sonde.model.experiment.description import EXPERIMENT_FORMAT


def list_shipped_plans() -> dict[str, Path]:
    """Returns name and file of each shipped plan, also from folders (one folder for each family of workloads)."""
    return {
        name: file
        for name, file in find_bundled_toml_files("experiments", include_subfolders=True).items()
        if not _is_experiment_file(file)
    }


def list_shipped_experiments() -> dict[str, Path]:
    """Returns name and file of each shipped experiment, also from folders (one folder for each source document)."""
    return {
        name: file
        for name, file in find_bundled_toml_files("experiments", include_subfolders=True).items()
        if _is_experiment_file(file)
    }


def _is_experiment_file(file: Path) -> bool:
    return f'schema = "{EXPERIMENT_FORMAT}"' in file.read_text(encoding="utf-8")


def resolve_plan_source(source_name: str) -> str:
    """Returns the file for `source_name`: a file, a shipped plan or experiment, or ``-`` for standard input.

    Raises PlanError.
    """
    files_by_name = find_bundled_toml_files("experiments", include_subfolders=True)
    if source_name == "-" or is_file_reference(source_name, files_by_name):
        return source_name
    if source_name in files_by_name:
        return str(files_by_name[source_name])
    plan_names = ", ".join(list_shipped_plans()) or "none"
    raise PlanError(
        f'There is no plan file "{source_name}" and no shipped plan or experiment of that name; shipped plans are '
        f"{plan_names}; `sonde experiments` also lists {len(list_shipped_experiments())} experiments."
        + suggest_close_name(source_name, files_by_name)
    )
