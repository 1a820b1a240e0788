# SPDX-License-Identifier: Apache-2.0
"""The plan format: its example is a plan, and each of these changes to it is not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "plan"
FORMAT: dict[str, Any] = json.loads((SCHEMA / "plan.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(FORMAT)
TREES: dict[str, Any] = json.loads((SCHEMA / "example-meta.json").read_text(encoding="utf-8"))
EXAMPLE: dict[str, Any] = json.loads((SCHEMA / "example.json").read_text(encoding="utf-8"))

WRONG: dict[str, tuple[list[Any], Any]] = {
    "another version": (["schema"], "sonde-plan/3"),
    "a bare letter as a unit": (["data", "access", "transfer"], "4k"),
    "a negative size": (["data", "access", "block"], -1),
    "a size without a number": (["data", "access", "block"], "MiB"),
    "an unknown order": (["data", "access", "order"], "shuffled"),
    "an unknown member": (["data", "access", "transfr"], "1MiB"),
    "an unknown member at the top": (["phase"], []),
    "no phases": (["phases"], []),
    "an unknown operation": (["phases", 0, "op"], "append"),
    "an identifier with a slash": (["phases", 0, "id"], "../write"),
    "a share above one": (["data", "payload", "compressible"], 1.5),
    "threads as text": (["tasks", "threads"], "4"),
    "no threads": (["tasks", "threads"], 0),
    "a queue without depth": (["phases", 2, "io", "queue_depth"], 0),
    "a duration with an unknown unit": (["limits", "time"], "10 minutes"),
    "an unknown treatment": (["phases", 1, "before", 1, "kind"], "drop"),
    "too few slices": (["observe", "max_slices"], 4),
    "a target that is no text": (["target", "path"], None),
}


def change_example(path: list[Any], value: Any) -> dict[str, Any]:
    """The example with one member changed."""
    plan = copy.deepcopy(EXAMPLE)
    here: Any = plan
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return plan


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(FORMAT)


def test_the_examples_are_plans() -> None:
    VALIDATOR.validate(EXAMPLE)
    VALIDATOR.validate(TREES)


@pytest.mark.parametrize(
    ("member_path", "value"),
    [(["meta", "tree", "depth"], -1), (["meta", "tree", "leafs"], 1), (["meta", "names"], {"file": "a/b"})],
)
def test_a_wrong_tree_is_refused(member_path: list[str], value: object) -> None:
    plan = copy.deepcopy(TREES)
    here: Any = plan
    for step in member_path[:-1]:
        here = here[step]
    here[member_path[-1]] = value
    assert not VALIDATOR.is_valid(plan)


@pytest.mark.parametrize("case_name", WRONG)
def test_a_wrong_plan_is_refused(case_name: str) -> None:
    path, value = WRONG[case_name]
    errors = list(VALIDATOR.iter_errors(change_example(path, value)))
    assert errors
    # The fault is found where it is: at the member itself, or at its parent when the member must not be there.
    places = [list(error.absolute_path) for error in errors]
    assert path in places or path[:-1] in places


@pytest.mark.parametrize("member", ["schema", "id", "target", "phases"])
def test_required_member_cannot_be_omitted(member: str) -> None:
    plan = copy.deepcopy(EXAMPLE)
    del plan[member]
    assert not VALIDATOR.is_valid(plan)


def test_every_member_has_a_description_or_default() -> None:
    """A member that has neither words, nor a default, nor a list of values, nor members of its own needs words."""
    silent = []

    def collect_undocumented(node: dict[str, Any], member_path: str) -> None:
        for name, member in node.get("properties", {}).items():
            clear = {
                "description",
                "default",
                "enum",
                "const",
                "properties",
                "items",
                "pattern",
                "$ref",
            } & member.keys()
            if not clear and name not in ("title", "backend", "id"):
                silent.append(f"{member_path}.{name}")
            collect_undocumented(member, f"{member_path}.{name}")
            collect_undocumented(member.get("items", {}), f"{member_path}.{name}[]")

    collect_undocumented(FORMAT, "plan")
    assert silent == []


def test_every_member_has_a_description() -> None:
    """The reference page and the messages of the lab use it."""

    def list_undocumented_paths(node: Any, member_path: str) -> list[str]:
        if isinstance(node, list):
            return [name for entry in node for name in list_undocumented_paths(entry, member_path)]
        if not isinstance(node, dict):
            return []
        silent = [
            f"{member_path}.{name}"
            for name, member in node.get("properties", {}).items()
            if "description" not in member
        ]
        return silent + [
            name for key, member in node.items() for name in list_undocumented_paths(member, f"{member_path}.{key}")
        ]

    assert list_undocumented_paths(FORMAT, "plan") == []
