# SPDX-License-Identifier: Apache-2.0
"""`sonde.run_experiment` and `archive.experiment`: medians, verdicts and runs as objects; the engine is a fake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError, RunFailedError

EXPERIMENT: dict[str, Any] = {
    "schema": "sonde-experiment/2",
    "id": "sizes",
    "title": "Two sizes",
    "plan": {
        "data": {"access": {"transfer": "64KiB", "volume": "1MiB"}},
        "phases": [{"id": "write", "op": "write"}],
    },
    "repeat": {"min": 2, "seed": 3},
    "sweep": [{"paths": "data.access.transfer", "values": ["64KiB", "128KiB"]}],
    "expect": [
        {"id": "slow", "claim": "bandwidth(write) < 1GB/s", "level": "measured"},
        {"id": "rate", "claim": "bandwidth(write) > 1GB/s", "level": "measured"},
    ],
}
Fake = Callable[..., Path]


@pytest.fixture
def result(fake_engine: Fake, target: Path, archive: Path) -> sonde.ExecutedExperiment:
    fake_engine(rate=2e9)
    return sonde.run_experiment(EXPERIMENT, on=target, group="mine", tags=["first"], note="a comment")


def test_cells_have_medians_of_their_repeats(result: sonde.ExecutedExperiment) -> None:
    assert (result.id, result.title, result.group) == ("sizes", "Two sizes", "mine")
    assert [(cell.cell, cell.phase, cell.runs) for cell in result.cells] == [
        ("transfer=64KiB", "write", 2),
        ("transfer=128KiB", "write", 2),
    ]
    assert {cell.unit for cell in result.cells} == {"bytes_per_s"}
    assert all(cell.median == pytest.approx(2e9, rel=0.01) and cell.has_enough_runs for cell in result.cells)
    rows = result.to_arrow().to_pydict()
    assert [json.loads(text) for text in rows["axis_values"]] == [{"transfer": "64KiB"}, {"transfer": "128KiB"}]
    assert rows["median"] == [cell.median for cell in result.cells]


def test_runs_carry_labels_and_group(result: sonde.ExecutedExperiment, archive: Path) -> None:
    runs = result.runs
    assert len(runs) == 4
    assert {(run.document["group"], run.document["note"], run.tags) for run in runs} == {
        ("mine", "a comment", ("first",))
    }


def test_stored_experiment_equals_the_result(result: sonde.ExecutedExperiment, archive: Path) -> None:
    assert sonde.open(archive).experiment() == result
    assert sonde.open(archive).experiment("mi").document["claims"] == result.document["claims"]
    with pytest.raises(sonde.UserError, match="nothing"):
        sonde.open(archive).experiment("nothing")


def test_claims_have_verdicts_and_never_raise(result: sonde.ExecutedExperiment) -> None:
    verdicts = {claim.id: claim.verdict for claim in result.claims}
    assert set(verdicts) == {"slow", "rate"}
    assert [claim.id for claim in result.failed_claims] == [name for name, item in verdicts.items() if item == "fails"]
    assert result.claim("rate").claim == "bandwidth(write) > 1GB/s"
    with pytest.raises(sonde.UserError, match='no claim "size"; its claims are slow, rate'):
        result.claim("size")


def test_notebook_shows_the_page(result: sonde.ExecutedExperiment) -> None:
    markup = result._repr_html_()
    assert markup.startswith("<iframe srcdoc=")
    assert "Two sizes" in markup


def test_rerun_of_a_group_executes_only_missing_runs(
    result: sonde.ExecutedExperiment, target: Path, archive: Path
) -> None:
    again = sonde.run_experiment(EXPERIMENT, on=target, group="mine")
    assert again.runs == result.runs
    resumed = sonde.run_experiment(EXPERIMENT, on=target, resume=True)
    assert resumed.runs == result.runs


def test_plan_with_a_sweep_is_an_experiment(fake_engine: Fake, target: Path, archive: Path) -> None:
    result = sonde.run_experiment(
        EXPERIMENT["plan"] | {"id": "plain"}, on=target, sweeps=["data.access.transfer=4KiB,8KiB"], repeat=1
    )
    assert [cell.cell for cell in result.cells] == ["transfer=4KiB", "transfer=8KiB"]
    assert len(result.runs) == 2


def test_failed_run_raises_and_finished_phases_are_stored(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine("enospc")  # in the second phase
    phases = [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}]
    experiment = {**EXPERIMENT, "plan": {**EXPERIMENT["plan"], "phases": phases}}
    with pytest.raises(RunFailedError, match="no space left"):
        sonde.run_experiment(experiment, on=target, group="mine")
    assert set(sonde.open(archive).experiment("mine").not_run) == {"transfer=64KiB", "transfer=128KiB"}


@pytest.mark.parametrize(
    ("options", "expected_sentence"),
    [
        ({"experiment": "no-such"}, 'There is no plan file "no-such"'),
        ({"experiment": {**EXPERIMENT, "expect": 3}}, "expect"),
        ({"on": "/no/such"}, "There is no directory /no/such"),
        ({"on": {"fs1": "/no/such"}}, "There is no directory /no/such"),
        ({"on": {"fs1": "."}}, "fs1"),
        ({"profile": "huge"}, "huge"),
        ({"settings": ["data.access.transfer"]}, "data.access.transfer"),
        ({"sweeps": ["data.access.transfer"]}, "data.access.transfer"),
        ({"faults": ["slow-target 3 10x"]}, "simulated=True"),
        ({"simulated": True}, "which machine"),
        ({"simulated": True, "system": "atlantis"}, "atlantis"),
        ({"tags": ["two words"]}, "cannot be a tag"),
        ({"group": "../up"}, "cannot be the name of a group"),
    ],
)
def test_bad_input_is_one_sentence(
    fake_engine: Fake, target: Path, archive: Path, options: dict[str, Any], expected_sentence: str
) -> None:
    with pytest.raises(sonde.UserError, match=expected_sentence) as caught:
        sonde.run_experiment(**{"experiment": EXPERIMENT, "on": target, **options})
    assert "\n" not in str(caught.value)
    assert not list(archive.glob("*/*/run.json"))


def test_experiment_on_a_model_needs_no_directory(archive: Path) -> None:
    try:
        find_simulator()
    except MachineError as reason:
        pytest.skip(str(reason))
    result = sonde.run_experiment("hpcs-07", profile="ci", system="hpcs-demo", simulated=True)
    assert result.document["simulated"]
    assert result.claim("E-S1").verdict == "holds"
    assert {run.phases[0].classification for run in result.runs} == {"simulated"}
