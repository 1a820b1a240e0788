# SPDX-License-Identifier: Apache-2.0
"""The system format: every described system follows its schema, and so does its resolved form."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.model.system import read_system  # noqa: E402

SYSTEMS = sorted((ROOT / "systems").glob("*.toml"))
FILES = sorted((ROOT / "systems").rglob("*.toml"))


def written(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "schema" / "system" / name).read_text(encoding="utf-8"))
    return document


def test_at_least_seven_systems_are_tested() -> None:
    assert len(SYSTEMS) >= 7


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_described_system_follows_the_schema(path: Path) -> None:
    Draft202012Validator(written("system.schema.json")).validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.stem)
def test_every_resolved_system_follows_its_schema(path: Path) -> None:
    full = json.loads(read_system(path).to_json())
    # a few of each kind: the others of a table differ in names and numbers only
    part = {name: value[:3] + value[-3:] if isinstance(value, list) else value for name, value in full.items()}
    Draft202012Validator(written("resolved.schema.json")).validate(part)
