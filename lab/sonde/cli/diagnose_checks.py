# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of ``sonde diagnose`` that no single option can check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sonde.model.errors import UserError


def require_distinct_names(arguments: Sequence[str]) -> None:
    """Raises UserError if two arguments NAME=VALUE have the same name."""
    counts = Counter(text.partition("=")[0] for text in arguments)
    name, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        values = ", ".join(text for text in arguments if text.partition("=")[0] == name)
        raise UserError(f'"{name}" is given {count} times: {values}; give it once.')


def require_other_file(output_file: Path, state_file: Path, option: str) -> None:
    """Raises UserError if an output would replace the diagnosis."""
    if output_file.exists() and output_file.samefile(state_file):
        raise UserError(f"{option} {output_file} would replace the diagnosis itself; name another file.")


def check_start_options(
    system: str, directory: str, has_system_options: bool, on_model: bool, faults: Sequence[str], cause: str
) -> None:
    """Raises UserError if options of `start` exclude each other. `has_system_options`: any of --mount, --targets and
    --suspect is given."""
    if (faults or cause) and not on_model:
        raise UserError("--fault and --cause belong to --on-model: they are what is planted in the simulated machine.")
    if faults and cause:
        raise UserError("Give either --fault or --cause: a simulated machine has faults or one cause, not both.")
    if bool(system) == bool(directory):
        raise UserError("Give either --system with the machine's system file, or --directory for a local file system.")
    if directory and has_system_options:
        raise UserError("--mount, --targets and --suspect are about a system file; leave them out with --directory.")
