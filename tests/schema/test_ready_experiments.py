# SPDX-License-Identifier: Apache-2.0
"""Every experiment that comes with Sonde: it follows the schema, runs in every profile, and agrees with its machine."""

from __future__ import annotations

import functools
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

from sonde.experiments.claims.grid import CellGrid  # noqa: E402
from sonde.experiments.claims.samples import MissingError  # noqa: E402
from sonde.experiments.shipped_experiments import list_shipped_experiments, list_shipped_plans, resolve_plan_source  # noqa: E402
from sonde.model.bundled_files import find_system_file  # noqa: E402
from sonde.model.experiment import Experiment, find_contradictions, read_experiment  # noqa: E402
from sonde.model.required_space import compute_required_space  # noqa: E402
from sonde.model.system import System, read_system  # noqa: E402
from sonde.model.volume import compute_phase_volumes  # noqa: E402

PLAN: dict[str, Any] = json.loads((ROOT / "schema/plan/plan.schema.json").read_text(encoding="utf-8"))
FORMAT: dict[str, Any] = json.loads((ROOT / "schema/experiment/experiment.schema.json").read_text(encoding="utf-8"))
REGISTRY: Registry[Any] = Registry().with_resource("sonde-plan-2", Resource.from_contents(PLAN))
VALIDATOR = Draft202012Validator(FORMAT, registry=REGISTRY)
FILES = list_shipped_experiments()
PROFILES = ("published", "laptop", "ci")
SYSTEMS: dict[str, System] = {}
FIRST_LETTER = {"cray-x1": "A", "edison": "B", "cumulus": "C", "sonexion-1300": "D", "hpcs": "E"}


@functools.cache
def read(experiment_name: str, profile: str) -> Experiment:
    """Reading checks every cell of every profile, which takes a while."""
    return read_experiment(FILES[experiment_name], profile)


def test_the_catalogue_has_all_its_folders() -> None:
    folders = {file.parent.name for file in FILES.values()}
    assert folders == {*FIRST_LETTER, "experiments"}
    assert {f"hpcs-{number:02d}" for number in range(1, 15)} <= FILES.keys()
    assert {"acceptance", "nightly-probe", "io500"} <= FILES.keys()


def test_names_of_plans_and_experiments_differ() -> None:
    assert not list_shipped_plans().keys() & FILES.keys()
    files = [*(ROOT / "experiments").rglob("*.toml")]
    assert len({path.stem for path in files}) == len(files)


@pytest.mark.parametrize("name", FILES)
def test_bundled_experiment_is_valid_and_names_its_source(name: str) -> None:
    file = FILES[name]
    VALIDATOR.validate(tomllib.loads(file.read_text(encoding="utf-8")))
    experiment = read_experiment(file)
    assert experiment.id == name
    assert resolve_plan_source(name) == str(file)
    assert experiment.file.status
    assert experiment.file.notes
    assert experiment.file.expect
    assert experiment.file.figures or experiment.file.tables
    assert experiment.profile_names == PROFILES
    letter = FIRST_LETTER.get(file.parent.name)
    assert letter is None or any(source.startswith(letter) for source in experiment.file.source)


@pytest.mark.parametrize("name", FILES)
def test_every_profile_of_a_ready_experiment_has_plans_for_its_cells(name: str) -> None:
    for profile in PROFILES:
        experiment = read(name, profile)
        assert experiment.cells
        for cell in (experiment.cells[0], experiment.cells[-1]):
            assert str(experiment.build_plan_of_cell(cell, "/some/where").target) == "/some/where"


@pytest.mark.parametrize("name", FILES)
def test_a_ready_experiment_agrees_with_the_machine_that_it_names(name: str) -> None:
    experiment = read(name, "published")
    system_name = experiment.file.storage.system if experiment.file.storage else ""
    if not system_name:
        return
    if system_name not in SYSTEMS:
        SYSTEMS[system_name] = read_system(find_system_file(system_name))
    contradictions = [
        problem for problem in find_contradictions(experiment, SYSTEMS[system_name]) if '.mounts names "' not in problem
    ]
    assert contradictions == []


@pytest.mark.parametrize("name", FILES)
def test_every_claim_finds_cells_at_the_published_size(name: str) -> None:
    experiment = read(name, "published")
    grid = CellGrid(experiment)
    for expectation in experiment.file.expect:
        assert experiment.find_missing_cell(experiment.claims[expectation.id]) is None, expectation.id
        try:
            assert grid.find_contexts(experiment.claims[expectation.id]), expectation.id
        except MissingError as reason:
            pytest.fail(f"{expectation.id}: {reason}")


@pytest.mark.parametrize("name", FILES)
def test_no_cell_of_the_smallest_profile_writes_much_or_waits_long(name: str) -> None:
    small = read(name, "ci")
    for cell in small.cells:
        plan = small.build_plan_of_cell(cell, "/some/where")
        volumes = compute_phase_volumes(plan, plan.processes * plan.threads)
        assert compute_required_space(plan, plan.processes * plan.threads).most_bytes <= 256 << 20, cell.id
        for phase in plan.phases:
            data = {**plan.document.get("data", {}).get("access", {}), **phase.get("access", {})}
            assert not isinstance(data.get("volume"), dict), cell.id
            assert all(treatment["kind"] != "sleep" for treatment in phase.get("before", [])), cell.id
        assert sum(volume.operations for volume in volumes) <= 300_000, cell.id


def test_the_small_profiles_are_small() -> None:
    runs = 0
    for name in FILES:
        small = read(name, "ci")
        assert small.file.repeat is not None
        runs += len(small.cells) * small.file.repeat.min
    assert runs <= 1000
