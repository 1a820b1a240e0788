# SPDX-License-Identifier: Apache-2.0
"""Finds the schema files: in the installed package, or in the source tree that this module is part of."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sonde.model.errors import MachineError

PLAN_SCHEMA = "plan/plan.schema.json"


@cache
def read_schema_text(file_name: str) -> str:
    """Returns the text of a file below ``schema/``, for example ``plan/plan.schema.json``."""
    packaged = resources.files("sonde").joinpath("schema", *file_name.split("/"))
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    source_path = Path(__file__).resolve().parents[3] / "schema" / file_name
    if source_path.is_file():
        return source_path.read_text(encoding="utf-8")
    raise MachineError(f"The schema file {file_name} is missing from this installation; install sonde again.")


@cache
def load_plan_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a plan."""
    schema: dict[str, Any] = json.loads(read_schema_text(PLAN_SCHEMA))
    return schema
