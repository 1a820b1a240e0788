# SPDX-License-Identifier: Apache-2.0
"""A wrong experiment gets one sentence: the file, the place in it, what is wrong, what to do."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import EXIT_BAD_INPUT, ExperimentError
from sonde.model.experiment import make_experiment, read_experiment

VALID_EXPERIMENT = """
schema = "sonde-experiment/2"
id = "right"
[clients]
nodes = 2
tasks_per_node = 4
[storage]
pool = "p1"
targets = 4
file_systems = ["fs1", "fs2"]
[plan.data]
access = { transfer = "1MiB", volume = "64MiB" }
[[plan.phases]]
id = "write"
op = "write"
[[plan.phases]]
id = "read"
op = "read"
data_of = "write"
[[treatments]]
kind = "sleep"
time = "1 s"
[[variants]]
id = "a"
[[variants]]
id = "b"
set = { "data.io.direct" = true }
[[sweep]]
paths = "data.access.transfer"
values = ["4KiB", "64KiB", "1MiB"]
[[sweep]]
name = "pool"
paths = ["storage.pool", "storage.targets"]
values = [["p1", 4], ["p2", 8]]
kind = "one_at_a_time"
[repeat]
min = 3
max = 9
interval = 0.05
[[expect]]
id = "faster"
level = "measured"
claim = 'bandwidth(read, transfer="1MiB") / bandwidth(read, transfer="4KiB") >= 1.3'
profiles = "ci"
[[expect]]
id = "scales"
level = "simulated"
claim = "efficiency(bandwidth(write), over=pool, at=p2) >= 0.8"
control = { "drives.d1.capacity" = "1 GB" }
[[figures]]
id = "f1"
kind = "curve"
metrics = "bandwidth"
x = "transfer"
series = "phase"
[[tables]]
id = "t1"
rows = "transfer"
metrics = ["bandwidth", "latency_p99"]
[profiles.ci]
"clients.nodes" = 1
"sweep.transfer" = ["4KiB", "1MiB"]
"""
Change = tuple[str, Any]  # path with numbers for entries of lists, and the new value; None removes the member

WRONG: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no schema": (("schema", None), ("schema is missing",)),
    "another version": (("schema", "sonde-experiment/3"), ("schema", "sonde-experiment/2")),
    "a misspelled member": (("repaet", {}), ('"repaet"', 'Did you mean "repeat"?')),
    "no plan": (("plan", None), ("plan", "[plan]")),
    "common members and a plan without phases": (
        ("plans", [{"id": "x", "plan": {"phases": []}}]),
        ("plans.x.plan", "phases"),
    ),
    "a plan without phases": (("plan.phases", None), ("plan", "phases")),
    "a member that no plan has": (("plan.data.acces", {}), ("plan", '"acces"', 'Did you mean "access"?')),
    "a plan that is a number": (("plan", 7), ("plan", "7")),
    "clients said twice": (("plan.tasks", {"processes": 4}), ("plan.tasks", "clients")),
    "nodes and per_target": (("clients.per_target", 4), ("clients.per_target", "nodes")),
    "nodes as text": (("clients.nodes", "4*targets"), ("clients.nodes", "whole number")),
    "no nodes": (("clients.nodes", 0), ("clients.nodes", "at least 1")),
    "an unknown origin": (("clients.origin", "computer"), ("clients.origin", 'Did you mean "compute"?')),
    "a stripe count in words": (("storage.stripe_count", "many"), ("storage.stripe_count", '"all"')),
    "a stripe size without a unit": (("storage.stripe_size", 1048576), ("storage.stripe_size", '"1048576 B"')),
    "a sleep without time": (("treatments.0.time", None), ("treatments.0", "time")),
    "a command without words": (("treatments.0", {"kind": "command"}), ("treatments.0", "command")),
    "an unknown treatment": (("treatments.0.kind", "drop"), ("treatments.0.kind", "drop_page_cache")),
    "two variants of one name": (("variants.1.id", "a"), ("variants.a", "twice")),
    "a variant that sets nothing known": (
        ("variants.1.set", {"data.io.drect": True}),
        ("variant=b", "drect", "direct"),
    ),
    "a sweep of a member that no plan has": (
        ("sweep.0.paths", "data.access.transfr"),
        ("cell", "transfr", 'Did you mean "transfer"?'),
    ),
    "a sweep of a phase that is not there": (
        ("sweep.0.paths", "phases.raed.stop.stonewall"),
        ("raed", 'Did you mean "read"?'),
    ),
    "a sweep of repeats": (("sweep.0.paths", "repeat.min"), ("sweep.min.paths", "repeat.min")),
    "a value that no plan takes": (("sweep.0.values", ["4KiB", "4k"]), ("transfer=4k", "4KiB")),
    "a sweep of nothing": (("sweep.0.values", []), ("sweep.0.values", "at least one")),
    "a value twice": (("sweep.0.values", ["4KiB", "4KiB"]), ("sweep.0.values", "twice")),
    "a sweep without a member": (("sweep.0.paths", None), ("sweep", "paths", "data.access.transfer")),
    "a walk without an end": (("sweep.0.values", {"from": "4KiB", "factor": 2}), ("sweep.0.values", "from, to")),
    "a walk downwards": (
        ("sweep.0.values", {"from": "4MiB", "to": "4KiB", "factor": 2}),
        ("sweep.transfer.values", "smaller end first"),
    ),
    "a walk that stands": (("sweep.0.values", {"from": 1, "to": 9, "factor": 1}), ("sweep.0.values", "larger than 1")),
    "too few members that change together": (
        ("sweep.1.values", [["p1", 4], ["p2"]]),
        ("sweep.pool.values", "value 2", "list of 2"),
    ),
    "two axes of one name": (("sweep.1.name", "transfer"), ("sweep.transfer", "twice")),
    "an axis named like another thing": (("sweep.1.name", "phase"), ("sweep.phase.name", "another name")),
    "labels of another number": (("sweep.0.labels", ["small"]), ("sweep.transfer.values", "1 labels for 3")),
    "a sweep of another plan": (("sweep.0.plans", "meta"), ("sweep.transfer.plans", '"meta"')),
    "more at least than at most": (("repeat.min", 10), ("repeat.max", "less than min")),
    "at most without an interval": (("repeat.interval", None), ("repeat.max", "interval")),
    "an interval of all": (("repeat.interval", 1.0), ("repeat.interval", "below 1")),
    "a claim that is none": (("expect.0.claim", "bandwidth(read) >"), ("expect.faster.claim", "cannot be read")),
    "a claim that compares nothing": (
        ("expect.0.claim", "bandwidth(read)"),
        ("expect.faster.claim", "compares nothing"),
    ),
    "a metric that is not there": (
        ("expect.0.claim", "bandwith(read) > 1"),
        ('"bandwith"', 'Did you mean "bandwidth"?'),
    ),
    "a phase that is not there": (
        ("expect.0.claim", "bandwidth(reed) > 1"),
        ("expect.faster.claim", 'Did you mean "read"?'),
    ),
    "a metric without a phase": (("expect.0.claim", "bandwidth() > 1"), ("expect.faster.claim", "write, read")),
    "an axis that is not there": (
        ("expect.0.claim", "bandwidth(read, transfr=1) > 1"),
        ("expect.faster.claim", 'Did you mean "transfer"?'),
    ),
    "a cell that is not there": (
        ("expect.0.claim", 'bandwidth(read, transfer="2KiB") > 1'),
        ('transfer="2KiB"', "4KiB, 64KiB, 1MiB"),
    ),
    "a function without its axis": (("expect.0.claim", "slope(bandwidth(read)) > 0"), ("slope", "over=")),
    "a function along nothing": (("expect.0.claim", "slope(bandwidth(read), over=size) > 0"), ("size", "transfer")),
    "a place that is not on the axis": (
        ("expect.1.claim", "efficiency(bandwidth(write), over=pool, at=p9) >= 0.8"),
        ("p9", "p1, p2"),
    ),
    "numbers that are equal": (("expect.0.claim", "bandwidth(read) == 5"), ("==", ">= or <=")),
    "a form that is none": (("expect.0.claim", 'shape(bandwidth(read)) == "flta"'), ('Did you mean "flat"?',)),
    "an unknown level": (("expect.0.level", "hw"), ("expect.faster.level", "measured")),
    "an unknown need": (("expect.0.needs", ["lustr"]), ("expect.faster.needs", 'Did you mean "lustre"?')),
    "a control of a measurement": (("expect.0.control", {}), ("expect.faster.control", "simulated")),
    "a control of no part": (("expect.1.control", {"drive.d1.capacity": 1}), ("drive", 'Did you mean "drives"?')),
    "a control of no member": (("expect.1.control", {"drives.d1.size": 1}), ("drives.d1.size", "KIND.ID.MEMBER")),
    "a confidence of nothing": (("expect.0.confidence", 0.1), ("expect.faster.confidence", "0.5")),
    "two claims of one name": (("expect.1.id", "faster"), ("expect.faster", "twice")),
    "a figure of nothing": (("figures.0.metrics", None), ("figures.f1.metrics", "bandwidth")),
    "a figure of another axis": (("figures.0.x", "transfr"), ("figures.f1", 'Did you mean "transfer"?')),
    "a figure of another phase": (("figures.0.phases", ["raed"]), ("figures.f1", 'Did you mean "read"?')),
    "a table of another metric": (("tables.0.metrics", ["latency_p98"]), ("tables.t1", "latency_p9")),
    "a claim of another profile": (("expect.0.profiles", "cii"), ("expect.faster.profiles", 'Did you mean "ci"?')),
    "a profile of a member that no plan has": (
        ("profiles.ci", {"data.access.volum": "1MiB"}),
        ("profile ci", "volum", 'Did you mean "volume"?'),
    ),
    "a profile of an axis that is not there": (("profiles.ci", {"sweep.size": [1]}), ("sweep.size", '"size"')),
    "a profile that is no table": (("profiles.ci", 3), ("profiles", "ci")),
    "a published number of another unit": (
        ("published", [{"of": "bandwidth(write)", "value": "3 s", "source": "D1"}]),
        ("published.0", "rate", "MB/s"),
    ),
    "a published number of no metric": (
        ("published", [{"of": "bandwith(write)", "value": 3, "source": "D1"}]),
        ("published.0", 'Did you mean "bandwidth"?'),
    ),
    "a published number of a cell that is not there": (
        ("published", [{"of": "bandwidth(write, pool=p9)", "value": 3, "source": "D1"}]),
        ("published.0.of", "p1, p2"),
    ),
    "a published claim": (
        ("published", [{"of": "bandwidth(write) > 3 and bandwidth(read)", "value": 3, "source": "D1"}]),
        ("published.0", "is a claim"),
    ),
    "a published range upside down": (
        ("published", [{"of": "bandwidth(write)", "value": "3 GB/s", "to": "2 GB/s", "source": "D1"}]),
        ("published.0.to", "smaller first"),
    ),
    "a published number without a source": (
        ("published", [{"of": "bandwidth(write)", "value": "3 GB/s"}]),
        ("published.0", "source"),
    ),
    "a published number that is a list": (
        ("published", [{"of": "bandwidth(write)", "value": [3], "source": "D1"}]),
        ("published.0.value", "as it is printed"),
    ),
    "an empty name in a path": (("variants.1.set", {"data..io": 1}), ("variants.b.set", "data..io")),
    "too many cells": (
        ("sweep.0.values", {"from": 1024, "to": 102400, "step": 10}),
        ("more than 10000", "sweep.transfer"),
    ),
}


def changed(change: Change) -> dict[str, Any]:
    """The right experiment with one member changed."""
    document = copy.deepcopy(tomllib.loads(VALID_EXPERIMENT))
    path, value = change
    here: Any = document
    *steps, last = path.split(".")
    for step in steps:
        here = here[int(step)] if isinstance(here, list) else here[step]
    key: Any = int(last) if isinstance(here, list) else last
    if value is None:
        del here[key]
    else:
        here[key] = value
    return document


def test_reference_experiment_without_mistake_is_valid() -> None:
    experiment = make_experiment(tomllib.loads(VALID_EXPERIMENT), "right.toml")
    # two variants, two file systems, three transfer sizes, and the second pool beside each
    assert len(experiment.cells) == 2 * 2 * 3 * 2


def test_at_least_40_mistakes_are_tested() -> None:
    assert len(WRONG) >= 40


@pytest.mark.parametrize("name", WRONG)
def test_mistake_in_an_experiment_gets_a_one_sentence_error(name: str) -> None:
    change, fragments = WRONG[name]
    with pytest.raises(ExperimentError) as caught:
        make_experiment(changed(change), "site.toml")
    message = str(caught.value)
    assert caught.value.exit_code == EXIT_BAD_INPUT
    assert message.startswith("site.toml")
    assert "\n" not in message
    assert "--set" not in message
    assert message[-1] in ".?"
    for part in fragments:
        assert part in message


def test_unknown_profile_gets_a_suggestion() -> None:
    with pytest.raises(ExperimentError, match='Did you mean "ci"'):
        make_experiment(tomllib.loads(VALID_EXPERIMENT), "right.toml", "cii")


@pytest.mark.parametrize(
    ("content", "expected_text"), [(None, "no experiment file"), (b"\xff", "not UTF-8"), (b"x = [", "not valid TOML")]
)
def test_a_file_that_cannot_be_read_gets_one_sentence(
    content: bytes | None, expected_text: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ExperimentError, match=expected_text):
        read_experiment(path)


def test_missing_plan_file_error_mentions_the_experiment(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('schema = "sonde-experiment/2"\nplan = "none.toml"\n', encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"x\.toml: plan names .none\.toml."):
        read_experiment(path)
