# SPDX-License-Identifier: Apache-2.0
"""Repeats, sweeps and what comes before, given on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.experiments.experiment_builder import apply_command_line, build_experiment_from_plan, parse_sweep
from sonde.model.errors import UserError
from sonde.model.experiment import make_experiment
from sonde.model.plan import Plan

PLAN = Plan.from_document(
    {"id": "p", "title": "A plan", "target": {"path": "/x"}, "tasks": {"threads": 2},
     "data": {"access": {"transfer": "4KiB", "volume": "1MiB"}}, "phases": [{"id": "w", "op": "write"}]}, "p.toml"
)  # fmt: skip


def test_experiment_from_plan_has_same_plan() -> None:
    experiment = make_experiment(build_experiment_from_plan(PLAN), "p.toml")
    (cell,) = experiment.cells
    assert cell.id == "base"
    document_built = experiment.build_plan_of_cell(cell).document
    assert {**document_built, "title": "A plan"} == dict(PLAN.document)


def test_every_option_sets_its_member() -> None:
    document = apply_command_line(
        build_experiment_from_plan(PLAN),
        5,
        2,
        "make clean",
        ["data.access.transfer=4KiB,64KiB", "tasks.threads=1..8*2"],
    )
    experiment = make_experiment(document, "p.toml")
    assert len(experiment.cells) == 8
    assert experiment.file.repeat is not None
    assert (experiment.file.repeat.min, experiment.file.repeat.warmup) == (5, 2)
    assert experiment.file.treatments[0].command == "make clean"
    assert experiment.file.treatments[0].need == "required"
    plan = experiment.build_plan_of_cell(experiment.cells[-1]).document
    assert (plan["data"]["access"]["transfer"], plan["tasks"]["threads"]) == ("64KiB", 8)


def test_repeat_option_replaces_interval() -> None:
    document = {**build_experiment_from_plan(PLAN), "repeat": {"min": 3, "max": 9, "interval": 0.1, "seed": 4}}
    assert apply_command_line(document, 7)["repeat"] == {"min": 7, "seed": 4}


@pytest.mark.parametrize("profile", ["table", "paths"])
def test_repeat_option_overrides_profile(profile: str) -> None:
    document = {
        **build_experiment_from_plan(PLAN),
        "repeat": {"min": 6, "max": 30, "interval": 0.05, "seed": 4},
        "profiles": {
            "table": {"repeat": {"min": 2, "max": 12, "interval": 0.2, "warmup": 3, "seed": 9}},
            "paths": {"repeat.min": 2, "repeat.max": 12, "repeat.warmup": 3, "repeat.seed": 9},
        },
    }
    rule = make_experiment(apply_command_line(document, 7, 1), "p.toml", profile).file.repeat
    assert rule is not None
    assert (rule.min, rule.max, rule.interval, rule.warmup, rule.seed) == (7, None, None, 1, 9)
    default_rule = make_experiment(apply_command_line(document, None, 1), "p.toml", profile).file.repeat
    assert default_rule is not None
    assert (default_rule.min, default_rule.max, default_rule.warmup) == (2, 12, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=4KiB,1MiB", {"paths": "a.b", "values": ["4KiB", "1MiB"]}),
        ("a.b=1,true,x", {"paths": "a.b", "values": [1, True, "x"]}),
        ("a.b=1..32*2", {"paths": "a.b", "values": {"from": 1, "to": 32, "factor": 2}}),
        ("a.b=0..10+5", {"paths": "a.b", "values": {"from": 0, "to": 10, "step": 5}}),
        ("a.b=4KiB..1MiB*4", {"paths": "a.b", "values": {"from": "4KiB", "to": "1MiB", "factor": 4}}),
        ("a.b+c=4KiB+1,8KiB+2", {"paths": ["a.b", "c"], "values": [["4KiB", 1], ["8KiB", 2]]}),
    ],
)
def test_sweep_option_equals_sweep_member(text: str, expected: dict[str, Any]) -> None:
    assert parse_sweep(text) == expected


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("data.access.transfer", "is not PATH=VALUES"),
        ("=4KiB", "is not PATH=VALUES"),
        ("a.b=", "is not PATH=VALUES"),
        ("a+b=1,2", 'has 2 paths, so each of its values is 2 joined by "+"; "1" is not.'),
    ],
)
def test_invalid_sweep_is_rejected(text: str, expected_sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_sweep(text)
    assert expected_sentence in str(caught.value)
