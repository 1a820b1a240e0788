# SPDX-License-Identifier: Apache-2.0
"""Every plan that a page of the documentation or an experiment shows is one: people copy them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sonde.model.experiment import read_experiment

ROOT = Path(__file__).resolve().parents[2]
FORMAT: dict[str, Any] = json.loads((ROOT / "schema" / "plan" / "plan.schema.json").read_text(encoding="utf-8"))
SYSTEM = 'schema = "sonde-system/2"'
CLUSTER = "\nscheduler = "  # a file of machines, which `sonde submit` reads
CONFIGURATION = 'archive = "'  # the settings of a user or site
TUNABLES = "[[tunables]]"  # of `sonde tune`
VALIDATOR = Draft202012Validator(FORMAT)
HEAD = 'schema = "sonde-plan/2"\nid = "x"\ntarget = { path = "/tmp" }\n'
PHASE = '[[phases]]\nid = "write"\nop = "write"\n'


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def pieces() -> Iterator[tuple[str, str]]:
    """(place, TOML text) of every example; a part of a plan is completed to a whole one."""
    for path in sorted((ROOT / "docs").rglob("*.toml")):
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "published":  # what tools/reproduction.py reads
            continue
        if tomllib.loads(text).get("schema") == "sonde-plan/2":  # experiments are read by the test below
            yield path.name, text
    for path in sorted((ROOT / "experiments").glob("*.toml")):  # the target comes from --on
        text = path.read_text(encoding="utf-8")
        if tomllib.loads(text)["schema"] != "sonde-plan/2":
            continue  # test_ready_experiments
        if "target" in tomllib.loads(text):
            yield path.name, text.replace("[target]\n", '[target]\npath = "/tmp"\n')
        else:
            yield path.name, 'target = { path = "/tmp" }\n' + text
    for page in pages():
        for number, text in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
            if SYSTEM in text or CLUSTER in text or CONFIGURATION in text or TUNABLES in text:
                continue
            complete = text if "schema =" in text else HEAD + (PHASE + text if text.startswith("stop") else text)
            yield f"{page.stem}-{number}", complete if "[[phases]]" in complete else complete + PHASE


EXAMPLES = dict(pieces())


def test_at_least_eight_documented_plans_are_tested() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("example", EXAMPLES)
def test_documented_plans_follow_the_schema(example: str) -> None:
    VALIDATOR.validate(tomllib.loads(EXAMPLES[example]))


def test_a_documented_system_is_a_system() -> None:
    form = json.loads((ROOT / "schema" / "system" / "system.schema.json").read_text(encoding="utf-8"))
    blocks = [
        text
        for page in pages()
        for text in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    systems = [text for text in blocks if SYSTEM in text]
    assert systems
    for text in systems:
        Draft202012Validator(form).validate(tomllib.loads(text))


def test_every_member_in_the_ior_recipes_exists() -> None:
    """The table of IOR's options names members by their path; each of them is in the schema."""

    def list_member_names(node: dict[str, Any]) -> set[str]:
        member_names = set(node.get("properties", {}))
        for inner in [*node.get("properties", {}).values(), node.get("items")]:
            member_names |= list_member_names(inner) if inner else set()
        return member_names

    known_names = list_member_names(FORMAT)
    table = (ROOT / "docs" / "tasks" / "plan.md").read_text(encoding="utf-8").split("## From IOR")[1]
    paths = re.findall(r"`([a-z_.]+) = ", table)
    assert len(paths) >= 8
    assert {step for path in paths for step in path.split(".")} <= known_names


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted((ROOT / "docs").rglob("*.toml"))
        if "sonde-experiment/2" in path.read_text(encoding="utf-8")
    ],
    ids=lambda path: path.name,
)
def test_documented_experiments_are_valid(path: Path) -> None:
    experiment = read_experiment(path)
    assert experiment.cells
    assert all(read_experiment(path, name).cells for name in experiment.profile_names)
