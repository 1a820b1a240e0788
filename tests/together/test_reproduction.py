# SPDX-License-Identifier: Apache-2.0
"""The five documents, simulated: pages are those of the numbers, numbers those of the simulator, controls fail."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.launch.engine import find_engine
from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError
from sonde.model.experiment import read_experiment
from sonde.store.archive import Archive

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import keep_figures  # noqa: E402
import reproduction  # noqa: E402
import reproduction_page  # noqa: E402

NUMBER_FILES = sorted(reproduction.NUMBERS_FOLDER.glob("*.json"))
# Simulated again in a few seconds each; the whole is behind the command.
QUICK = ("cray-x1-call-rate", "cray-x1-streams-misaligned")


def read_numbers(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_reproduction_pages_are_up_to_date() -> None:
    again = "run .venv/bin/python tools/reproduction.py --page"
    for path, text in reproduction_page.format_all_pages().items():
        assert path.read_text(encoding="utf-8") == text, again


def test_shapes_name_claims_that_their_experiment_makes() -> None:
    shapes = reproduction_page.list_shapes()
    assert len({shape["id"] for shape in shapes}) == len(shapes)
    for shape in shapes:
        assert sum(key in shape for key in ("experiment", "tests", "unseen", "absent")) == 1, shape["id"]
        if "experiment" in shape:
            experiment = read_experiment(resolve_plan_source(shape["experiment"]), find_plan=resolve_plan_source)
            assert shape["claims"], shape["id"]
            assert set(shape["claims"]) <= {claim.id for claim in experiment.file.expect}, shape["id"]
            assert shape["experiment"] in reproduction.list_simulated_experiments(), shape["id"]
        if "tests" in shape:
            assert (ROOT / shape["tests"]).exists()


def test_failing_shape_has_an_explanation() -> None:
    silent = [
        shape["id"]
        for shape in reproduction_page.list_shapes()
        if reproduction_page.describe_outcome(shape) not in ("holds", "arithmetic")
        and not any(shape.get(key) for key in ("note", "unseen", "absent"))
    ]
    assert silent == []


@pytest.mark.parametrize("path", NUMBER_FILES, ids=lambda path: path.stem)
def test_numbers_are_small_and_of_an_experiment_that_is_simulated(path: Path) -> None:
    assert path.stat().st_size < 100_000
    numbers = read_numbers(path)
    file = next((ROOT / "experiments").rglob(f"{path.stem}.toml"))
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    assert [claim["id"] for claim in numbers["claims"]] == [expectation["id"] for expectation in written["expect"]]
    assert path.stem in reproduction.list_simulated_experiments()


@pytest.mark.parametrize("path", NUMBER_FILES, ids=lambda path: path.stem)
def test_every_negative_control_fails_its_claim(path: Path) -> None:
    wrong = [
        f"{control['id']} ({control['change']}): {control['found']}"
        for control in read_numbers(path)["controls"]
        if control["verdict"] != "fails"
    ]
    assert wrong == []


@pytest.mark.parametrize("name", QUICK)
def test_numbers_and_controls_equal_a_new_simulation(name: str, tmp_path: Path) -> None:
    try:
        find_simulator()
        find_engine()
    except MachineError as reason:  # a tree without C++ programs
        pytest.skip(str(reason))
    staged, archive = reproduction.list_simulated_experiments()[name], Archive(tmp_path)
    again = reproduction.reproduce_experiment(staged)
    before = read_numbers(reproduction.locate_numbers_file(name))
    for part in ("figures", "tables", "claims", "controls"):
        assert again[part] == before[part], f"run .venv/bin/python tools/reproduction.py --only {name}"
    assert again["controls"]
    run = reproduction.simulate_experiment(staged, archive, [again["controls"][0]["id"]])
    assert (
        next(
            claim
            for claim in keep_figures.convert_claims_to_json(run.judged)
            if claim["id"] == again["controls"][0]["id"]
        )["verdict"]
        == "holds"
    )
