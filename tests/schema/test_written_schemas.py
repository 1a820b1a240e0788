# SPDX-License-Identifier: Apache-2.0
"""Schemas that follow from declarations in the model are what the declarations say, member by member."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
WRITTEN: dict[str, Callable[[], dict[str, Any]]] = runpy.run_path(str(ROOT / "tools" / "schemas"))["WRITTEN"]


def test_every_schema_of_these_formats_is_written_by_the_tool() -> None:
    files = {f"{part}/{path.name}" for part in ("system", "experiment", "event", "log-rules", "watch")
             for path in (ROOT / "schema" / part).glob("*.schema.json")}  # fmt: skip
    assert files == set(WRITTEN)


@pytest.mark.parametrize("schema_path", WRITTEN)
def test_schema_files_are_up_to_date(schema_path: str) -> None:
    """Run tools/schemas after a change of the declarations in lab/sonde/model."""
    document = json.loads((ROOT / "schema" / schema_path).read_text(encoding="utf-8"))
    assert document == WRITTEN[schema_path]()
    Draft202012Validator.check_schema(document)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_member_has_a_description(name: str) -> None:
    silent: list[str] = []

    def walk(node: Any, path: str) -> None:
        for member, subtable in node.get("properties", {}).items() if isinstance(node, dict) else ():
            inner = {key for key in subtable if key != "$ref"}
            if "description" not in subtable and "const" not in subtable and not path.endswith(".plan") and inner:
                silent.append(f"{path}.{member}")
            walk(subtable, f"{path}.{member}")
            walk(subtable.get("items", {}), f"{path}.{member}")

    walk(json.loads((ROOT / "schema" / name).read_text(encoding="utf-8")), name.split("/")[0])
    allowed = {"id", "network", "schema", "read", "write", "title"} if "resolved" in name else set()
    assert [path for path in silent if path.rpartition(".")[2] not in allowed] == []
