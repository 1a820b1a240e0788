# SPDX-License-Identifier: Apache-2.0
"""The event format: its examples follow the schemas and load, each part of them in the system that they name."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.model.event import read_events_file  # noqa: E402
from sonde.model.system import read_system  # noqa: E402

FOLDER = ROOT / "schema" / "event"


def schema(schema_file: str) -> Draft202012Validator:
    schema_document: dict[str, Any] = json.loads((FOLDER / schema_file).read_text(encoding="utf-8"))
    return Draft202012Validator(schema_document)


def test_the_examples_follow_the_schemas() -> None:
    schema("file.schema.json").validate(tomllib.loads((FOLDER / "example.toml").read_text(encoding="utf-8")))
    for line in (FOLDER / "example.ndjson").read_text(encoding="utf-8").splitlines():
        schema("event.schema.json").validate(json.loads(line))


def test_the_parts_of_the_examples_are_in_their_systems() -> None:
    edison = read_system(ROOT / "systems" / "edison.toml")
    assert len(read_events_file(FOLDER / "example.toml", edison)) == 5
    for event in read_events_file(FOLDER / "example.ndjson"):
        system = read_system(ROOT / "systems" / f"{event.system}.toml")
        assert event.resolve_parts(system)
