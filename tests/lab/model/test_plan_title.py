# SPDX-License-Identifier: Apache-2.0
"""Titles state the numbers of the plan that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.experiment_builder import apply_command_line, build_experiment_from_plan
from sonde.experiments.plan_loading import load_plan
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.model.bundled_files import find_bundled_toml_files
from sonde.model.documents import parse_toml
from sonde.model.experiment import make_experiment
from sonde.model.plan import Plan
from sonde.model.plan_title import compose_title, list_title_members

PLAN: dict[str, Any] = {"data": {"access": {"volume": "256MiB", "transfer": 4096}, "files": {"count": 2000}},
                        "phases": [{"id": "read", "io": {"queue_depth": 8},
                                     "access": {"volume": "1.5 GB"}}]}  # fmt: skip


@pytest.mark.parametrize(("title", "expected_composed"), [
    ("Write {data.access.volume} per task", "Write 256 MiB per task"),
    ("{data.access.transfer} of {data.files.count} files", "4 KiB of 2,000 files"),
    ("{phases.read.io.queue_depth} in flight, {phases.read.access.volume}", "8 in flight, 1.5 GB"),
    ("{data.acces.volume} and {x} stay", "{data.acces.volume} and {x} stay"),
])  # fmt: skip
def test_members_in_braces_become_their_values(title: str, expected_composed: str) -> None:
    assert compose_title(title, [PLAN]) == expected_composed


@pytest.mark.parametrize(("volumes", "text"), [
    (["4MiB", "4MiB"], "4 MiB"), (["4MiB", "8MiB"], "4 MiB, 8 MiB"),
    (["1MiB", "2MiB", "4MiB", "8MiB"], "1 MiB to 8 MiB"),
])  # fmt: skip
def test_values_of_several_plans_are_joined(volumes: list[str], text: str) -> None:
    plans = [{"data": {"access": {"volume": volume}}} for volume in volumes]
    assert compose_title("Write {data.access.volume}", plans) == f"Write {text}"


def test_title_of_changed_plan_states_the_change(tmp_path: Path) -> None:
    plan = load_plan("quick", ["data.access.volume=4MiB"], str(tmp_path))
    assert plan.title == "Write 4 MiB per task, empty the cache, read it back, then read at random"
    assert json.loads(plan.to_json())["title"] == plan.title
    other = load_plan("quick", ["data.access.volume=4MiB", "data.io.direct=true"], str(tmp_path))
    assert other.title == f"{plan.title} (with data.io.direct=true)"
    assert other.with_settings(["data.access.volume=8MiB"]).title.startswith("Write 8 MiB per task")


def test_title_of_sweep_states_all_values(tmp_path: Path) -> None:
    document = build_experiment_from_plan(load_plan("quick", [], str(tmp_path)))
    swept = apply_command_line(document, sweep_texts=["data.access.volume=4MiB,8MiB"])
    experiment = make_experiment(swept, "test")
    assert experiment.title.startswith("Write 4 MiB, 8 MiB per task")


@pytest.mark.parametrize("name", find_bundled_toml_files("experiments"))
def test_shipped_titles_name_members_of_their_plan(name: str) -> None:
    document = parse_toml(Path(resolve_plan_source(name)).read_text())
    if document["schema"].startswith("sonde-plan/"):
        document.setdefault("target", {})["path"] = "/scratch"
        title = Plan.from_document(document, name).title
        assert list_title_members(title) == []
        assert "{" not in title
