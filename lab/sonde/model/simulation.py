# SPDX-License-Identifier: Apache-2.0
"""Which runs are simulated: those of `sonde simulate`, and those on a file system of `sonde mount`.

A run in virtual time says so in its record. A run on a mounted model is known by the type of its file system. Numbers
of both describe a model and are never mixed with measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sonde.model.lines import NodeLine, RunLine

MOUNTED_MODEL_TYPE = "fuse.sonde"
_SOURCE_PREFIX = "sonde:"  # of a mounted model; the name of its system follows
_SYSTEM_PREFIX = "simulated "  # of the system in a history key


def find_simulated_system(run_line: RunLine, node_lines: Sequence[NodeLine]) -> str | None:
    """The name of the simulated system that a run used, "" if it has no name; None for a measured run."""
    if run_line.simulated:
        return str(run_line.simulated.get("system") or "")
    if node_lines and node_lines[0].file_system.type == MOUNTED_MODEL_TYPE:
        return node_lines[0].file_system.source.removeprefix(_SOURCE_PREFIX)
    return None


def is_simulated_document(run_document: Mapping[str, Any]) -> bool:
    """Whether a run.json is of a simulated run."""
    return bool(run_document.get("simulated")) or run_document.get("file_system") == MOUNTED_MODEL_TYPE


def format_simulated_system_name(system_name: str) -> str:
    """The system of a history key, for a simulated system of this name."""
    return f"{_SYSTEM_PREFIX}{system_name}"


def is_simulated_key(system_name: str, file_system: str) -> bool:
    """Whether a history key with this system and file system is of simulated runs."""
    return system_name.startswith(_SYSTEM_PREFIX) or file_system.startswith(f"{MOUNTED_MODEL_TYPE}:")
