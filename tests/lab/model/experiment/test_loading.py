# SPDX-License-Identifier: Apache-2.0
"""Experiments whose plans lie in files of their own, beside them or known by name; and what packages hand out."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import ExperimentError, PlanError
from sonde.model.experiment import make_experiment, read_experiment
from sonde.model.experiment.experiment_reader import change_members_by_path

PHASES = [{"id": "w", "op": "write"}, {"id": "r", "op": "read", "stop": {"time": "2s"}}]
HEAD: dict[str, Any] = {"schema": "sonde-experiment/2"}


def find_ready_plan(plan_name: str) -> str:
    """A finder that knows one name."""
    if plan_name == "ready":
        return str(Path(__file__).with_name("ready.json"))
    raise PlanError(f"no plan {plan_name}.")


@pytest.fixture
def experiment_file(tmp_path: Path) -> Path:
    (tmp_path / "plan.json").write_text(json.dumps({"title": "beside", "phases": PHASES}), encoding="utf-8")
    return tmp_path / "x.toml"


def test_plan_is_read_from_a_sibling_file_or_by_shipped_name(experiment_file: Path) -> None:
    ready = experiment_file.with_name("ready.json")
    ready.write_text(json.dumps({"title": "ready", "phases": PHASES}), encoding="utf-8")

    def finder(name: str) -> str:
        assert name == "known"
        return str(ready)

    for plan, title in (("plan.json", "beside"), ("known", "ready")):
        experiment = make_experiment(HEAD | {"plan": plan}, str(experiment_file), find_plan=finder)
        assert experiment.plans[""]["title"] == title
        several = HEAD | {"plans": [{"id": "a", "plan": plan}, {"id": "b", "plan": {"phases": PHASES}}]}
        assert make_experiment(several, str(experiment_file), find_plan=finder).plans["a"]["title"] == title
        assert several["plans"][0]["plan"] == plan, "the document that was given stays as it is"


def test_plan_next_to_plans_gives_common_members() -> None:
    common = {"tasks": {"threads": 2}, "data": {"io": {"fsync": "end"}, "backend": "posix"}, "phases": PHASES}
    other_phases = [{"id": "w", "op": "write"}]
    document = HEAD | {
        "plan": common,
        "plans": [
            {"id": "a", "plan": {"title": "A"}},
            {"id": "b", "plan": {"data": {"io": {"direct": True}, "backend": "mmap"}, "phases": other_phases}},
        ],
        "profiles": {"ci": {"plans.a.tasks.threads": 1, "data.io.fsync": "none"}},
    }
    experiment = make_experiment(document, "x.toml")
    assert experiment.plans == {
        "a": {"title": "A", **common},
        "b": {
            "tasks": {"threads": 2},
            "data": {"io": {"fsync": "end", "direct": True}, "backend": "mmap"},
            "phases": other_phases,
        },
    }
    assert document["plan"] == common, "the document that was given stays as it is"
    small = make_experiment(document, "x.toml", "ci").plans
    assert [plan["tasks"]["threads"] for plan in small.values()] == [1, 2], "plans do not share tables"
    assert [plan["data"]["io"]["fsync"] for plan in small.values()] == ["none", "none"]


def test_referenced_plan_provides_common_members_too(experiment_file: Path) -> None:
    document = HEAD | {"plan": "plan.json", "plans": [{"id": "a", "plan": {"title": "A"}}]}
    assert make_experiment(document, str(experiment_file)).plans == {"a": {"title": "A", "phases": PHASES}}


@pytest.mark.parametrize(
    ("members", "expected_sentence"),
    [
        ({"plan": {"title": "A"}},
         "x.toml: plan has no phases; write them there, or in [plan] for all plans."),
        ({"plan": {"title": "A"}, "plans": [{"id": "a", "plan": {}}]},
         "x.toml: plans.a.plan has no phases; write them there, or in [plan] for all plans."),
        ({"plan": "none.toml"}, 'x.toml: plan names "none.toml": There is no plan file none.toml.'),
        ({"plans": [{"id": "a", "plan": "none.toml"}]},
         'x.toml: plans.a.plan names "none.toml": There is no plan file none.toml.'),
        ({"plan": ""}, "x.toml: plan is empty; write a plan, the name of a plan file, or of a shipped plan."),
        ({"plans": [{"id": "a", "plan": 7}]},
         "x.toml: plans.a.plan is 7; it must be a plan (a table), or the name of a plan file."),
        ({"plans": 7}, "x.toml: plans is 7; it must be a list of tables, each written as [[plans]]."),
    ],
)  # fmt: skip
def test_invalid_plans_have_exact_error_messages(members: dict[str, Any], expected_sentence: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        make_experiment(HEAD | members, "x.toml")
    assert str(caught.value) == expected_sentence


def test_unknown_plan_error_mentions_the_experiment() -> None:
    with pytest.raises(ExperimentError) as caught:
        make_experiment(HEAD | {"plan": "other"}, "x.toml", find_plan=find_ready_plan)
    assert str(caught.value) == 'x.toml: plan names "other": no plan other.'


def test_experiment_id_defaults_to_the_file_name(tmp_path: Path) -> None:
    file = tmp_path / "my test (2).json"
    file.write_text(json.dumps(HEAD | {"plan": {"phases": PHASES}}), encoding="utf-8")
    read = read_experiment(file)
    assert (read.id, read.title, read.origin) == ("my-test-2", "my-test-2", str(file))
    experiment = make_experiment(HEAD | {"plan": {"phases": PHASES}, "id": "e", "title": "T"}, "-.toml")
    assert (experiment.id, experiment.title) == ("e", "T")
    assert make_experiment(HEAD | {"plan": {"phases": PHASES}}, "--.toml").id == "experiment"
    with pytest.raises(ExperimentError) as caught:
        read_experiment(tmp_path / "none.toml")
    assert str(caught.value) == f"There is no experiment file {tmp_path}/none.toml."
    with pytest.raises(ExperimentError) as caught:
        make_experiment({"plan": {"phases": PHASES}}, "x.toml")
    assert str(caught.value) == ('x.toml: schema is missing; an experiment begins with schema = "sonde-experiment/2".')


def test_unknown_profile_is_rejected_with_the_existing_profiles() -> None:
    document = HEAD | {"plan": {"phases": PHASES}, "profiles": {"ci": {}, "laptop": {"repeat.min": 1}}}
    assert make_experiment(document, "x.toml").profile_names == ("ci", "laptop")
    small = make_experiment(document, "x.toml", "laptop")
    assert small.origin == "x.toml, profile laptop"
    with pytest.raises(ExperimentError) as caught:
        make_experiment(document, "x.toml", "lap")
    assert str(caught.value) == 'x.toml has no profile "lap"; it has ci, laptop. Did you mean "laptop"?'
    with pytest.raises(ExperimentError) as caught:
        make_experiment(HEAD | {"plan": {"phases": PHASES}}, "x.toml", "lap")
    assert str(caught.value) == 'x.toml has no profile "lap"; it has none.'


def test_claims_about_cells_removed_by_settings_are_valid() -> None:
    sweep = {"paths": "data.access.transfer", "values": ["4KiB", "64KiB"]}
    claim = {"id": "e", "level": "measured", "claim": 'time(w, transfer="64KiB") > 1'}
    complete = make_experiment(HEAD | {"plan": {"phases": PHASES}, "sweep": [sweep], "expect": [claim]}, "x.toml")
    less = {"sweep.transfer": ["4KiB"]}
    assert change_members_by_path(complete, less, complete).find_missing_cell(complete.claims["e"]) == "transfer=64KiB"
    assert complete.find_missing_cell(complete.claims["e"]) is None
    with pytest.raises(ExperimentError, match="which is not there; transfer is 4KiB"):
        change_members_by_path(complete, less)


@pytest.mark.parametrize(("values", "expected_cells"), [(["2s", "9s"], ["limit=2s", "limit=9s"]),
                                               (["1s", "9s"], ["base", "limit=1s", "limit=9s"])])  # fmt: skip
def test_axis_base_value_is_resolved_by_phase_id(values: list[str], expected_cells: list[str]) -> None:
    sweep = {"name": "limit", "paths": "phases.r.stop.time", "values": values, "kind": "one_at_a_time"}
    experiment = make_experiment(HEAD | {"plan": {"phases": PHASES}, "sweep": [sweep]}, "x.toml")
    assert [cell.id for cell in experiment.cells] == expected_cells


def test_axis_over_experiment_members_has_the_plan_value_as_base() -> None:
    sweep = {"paths": "storage.pool", "values": ["p", "q"], "kind": "one_at_a_time"}
    document = HEAD | {"plan": {"phases": PHASES}, "storage": {"pool": "p"}, "sweep": [sweep]}
    assert [cell.id for cell in make_experiment(document, "x.toml").cells] == ["pool=p", "pool=q"]


@pytest.mark.parametrize("package", ["experiment", "event", "system"])
def test_public_names_of_model_packages_exist_and_are_sorted(package: str) -> None:
    module = importlib.import_module(f"sonde.model.{package}")
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
