# SPDX-License-Identifier: Apache-2.0
"""The worked examples agree with the systems that they name, and a contradiction is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.model.bundled_files import find_bundled_toml_files, find_system_file
from sonde.model.errors import UserError
from sonde.model.experiment import find_contradictions, make_experiment, read_experiment
from sonde.model.system import read_system

EXAMPLES = sorted((Path(__file__).resolve().parents[4] / "schema" / "experiment" / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_agrees_with_the_system_that_it_names(path: Path) -> None:
    experiment = read_experiment(path)
    assert experiment.file.storage is not None
    assert find_contradictions(experiment, read_system(find_system_file(experiment.file.storage.system))) == []


@pytest.mark.parametrize(
    ("members", "expected_text"),
    [
        ({"storage": {"pool": "FS9"}}, 'none of the pools of hpcs-demo. Did you mean'),
        ({"storage": {"pool": "FS2", "units": 3}}, 'storage.units is 3, but pool "FS2" of hpcs-demo has 2'),
        ({"storage": {"pool": "FS2", "targets": 8}}, "storage.targets is 8"),
        ({"storage": {"file_systems": ["dmeo"]}}, 'Did you mean "demo"?'),
        ({"storage": {"mounts": ["none"]}}, "storage.mounts"),
        ({"clients": {"group": "computers"}}, "clients.group"),
        ({"variants": [{"id": "v", "mount": "none"}]}, "variants.v.mount"),
        ({"expect": [{"id": "e", "level": "simulated", "claim": "bandwidth(w) > 1",
                      "control": {"networks.stroage.rate": "1 GB/s"}}]}, 'Did you mean "storage"?'),
    ],
)  # fmt: skip
def test_experiment_that_contradicts_the_system_is_reported(members: dict[str, Any], expected_text: str) -> None:
    document = {"schema": "sonde-experiment/2", "plan": {"phases": [{"id": "w", "op": "write"}]}, **members}
    contradictions = find_contradictions(
        make_experiment(document, "x.toml"), read_system(find_system_file("hpcs-demo"))
    )
    assert len(contradictions) == 1
    assert contradictions[0].startswith("x.toml: ")
    assert expected_text in contradictions[0]


def test_shipped_systems_are_resolved_by_name() -> None:
    assert {"cray-x1", "edison", "cumulus", "sonexion-1300", "hpcs-demo", "laptop-md"} <= find_bundled_toml_files(
        "systems"
    ).keys()
    assert Path(find_system_file("edison")).is_file()
    assert find_system_file("./mine.toml") == "./mine.toml"
    with pytest.raises(UserError, match='Did you mean "edison"'):
        find_system_file("edson")
