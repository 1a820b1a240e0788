# SPDX-License-Identifier: Apache-2.0
"""The experiment format: its examples follow the schema, whose plans are those of schema/plan itself."""

from __future__ import annotations

import copy
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.model.errors import ExperimentError  # noqa: E402
from sonde.model.experiment import make_experiment, read_experiment  # noqa: E402

PLAN: dict[str, Any] = json.loads((ROOT / "schema/plan/plan.schema.json").read_text(encoding="utf-8"))
FORMAT: dict[str, Any] = json.loads((ROOT / "schema/experiment/experiment.schema.json").read_text(encoding="utf-8"))
REGISTRY: Registry[Any] = Registry().with_resource("sonde-plan-2", Resource.from_contents(PLAN))
VALIDATOR = Draft202012Validator(FORMAT, registry=REGISTRY)
EXAMPLES = sorted((ROOT / "schema" / "experiment" / "examples").glob("*.toml"))


def document(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_there_are_six_worked_examples() -> None:
    assert len(EXAMPLES) == 6


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_follows_the_schema_and_loads(path: Path) -> None:
    VALIDATOR.validate(document(path))
    experiment = read_experiment(path)
    assert experiment.id == path.stem
    assert experiment.cells
    assert "ci" in experiment.profile_names
    for cell in (experiment.cells[0], experiment.cells[-1]):
        plan = experiment.build_plan_of_cell(cell, "/some/where")
        assert str(plan.target) == "/some/where"


def test_plan_members_in_an_experiment_match_the_plan_schema() -> None:
    inside = FORMAT["properties"]["plan"]["anyOf"][1]["properties"]
    assert set(inside) == set(PLAN["properties"])
    target = PLAN["properties"]["target"]["properties"]
    assert set(inside["target"]["properties"]) == set(target)
    refers = [member for name, member in inside.items() if name not in ("schema", "target")]
    assert all(set(reference) == {"$ref"} and reference["$ref"].startswith("sonde-plan-2#/") for reference in refers)


@pytest.mark.parametrize(
    ("member_path", "value"),
    [
        (["sweep", 0, "kind"], "random"),
        (["repeat", "min"], 0),
        (["repeat", "interval"], "5 percent"),
        (["plan", "phases", 0, "op"], "append"),
        (["plan", "data", "access", "transfer"], "4k"),
        (["clients", "nodes"], "16"),
        (["expect", 0, "level"], "hw"),
        (["figures", 0, "kind"], "pie"),
        (["storage", "stripe_size"], "1 M"),
        (["status"], "sure"),
    ],
)
def test_values_rejected_by_the_schema_are_rejected_by_the_model(member_path: list[Any], value: object) -> None:
    changed = copy.deepcopy(document(ROOT / "schema/experiment/examples/sonexion-ior-figure-6.toml"))
    here: Any = changed
    for step in member_path[:-1]:
        here = here[step]
    here[member_path[-1]] = value
    assert not VALIDATOR.is_valid(changed)
    with pytest.raises(ExperimentError):
        make_experiment(changed, "changed.toml")
