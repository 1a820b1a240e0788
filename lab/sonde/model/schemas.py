# SPDX-License-Identifier: Apache-2.0
"""Finds the schema files: in the installed package, or in the source tree that this module is part of."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sonde.model.errors import MachineError

PLAN = "plan/plan.schema.json"


@cache
def schema_text(name: str) -> str:
    """Text of a file below ``schema/``, for example ``plan/plan.schema.json``."""
    packaged = resources.files("sonde").joinpath("schema", *name.split("/"))
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    in_source = Path(__file__).resolve().parents[3] / "schema" / name
    if in_source.is_file():
        return in_source.read_text(encoding="utf-8")
    raise MachineError(f"The schema file {name} is missing from this installation; install sonde again.")


@cache
def plan_schema() -> dict[str, Any]:
    """The JSON Schema of a plan."""
    schema: dict[str, Any] = json.loads(schema_text(PLAN))
    return schema
