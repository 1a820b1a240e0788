# SPDX-License-Identifier: Apache-2.0
"""Any change of a right document makes another right one, or one sentence: never an error of ours."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.model.errors import ExperimentError, SystemFileError
from sonde.model.experiment import find_contradictions, make_experiment
from sonde.model.system import make_system, read_system
from sonde.model.system.dependencies import find_all_dependencies

ROOT = Path(__file__).resolve().parents[3]
SYSTEM: dict[str, Any] = tomllib.loads((ROOT / "systems" / "cray-x1.toml").read_text(encoding="utf-8"))
HPCS: dict[str, Any] = tomllib.loads((ROOT / "systems" / "hpcs-demo.toml").read_text(encoding="utf-8"))
EXAMPLES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in (ROOT / "schema" / "experiment" / "examples").glob("*.toml")
}
DEMO = read_system(ROOT / "systems" / "hpcs-demo.toml")
REPLACEMENT_TEXTS = [
    "",
    "x",
    "ost[0-3]",
    "d[",
    "1 MiB",
    "4 k",
    "10 GB/s",
    "50 %",
    "10.0.0.1",
    "a..b",
    "phases.write.op",
    "bandwidth(write) > 1",
    "storage.pool",
    "rs1",
    "lun",
    "FS1",
    "5",
    "lustre",
    "\x00",
    "…",
]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 10**6),
        st.floats(allow_nan=True),
        st.sampled_from(REPLACEMENT_TEXTS),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*REPLACEMENT_TEXTS, "id", "value"]), inner, max_size=3),
    ),
    max_leaves=5,
)


def list_member_paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member and entry of a document."""
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in entries:
        yield (*path, key)
        yield from list_member_paths(value, (*path, key))


def change_randomly(data: st.DataObject, document: dict[str, Any]) -> dict[str, Any]:
    """A copy in which one or two members have another value, are removed, or are renamed."""
    changed = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 2))):
        *above, last = data.draw(st.sampled_from(list(list_member_paths(changed))))
        here: Any = changed
        for step in above:
            here = here[step]
        action = data.draw(st.sampled_from(["value", "value", "gone", "renamed", "twice"]))
        if action == "gone":
            del here[last]
        elif action == "renamed" and isinstance(here, dict):
            here[data.draw(st.sampled_from(["id", "on", "share", "size", "near", "values", "paths", "claim"]))] = (
                here.pop(last)
            )
        elif action == "twice" and isinstance(here, list):
            here.append(copy.deepcopy(here[last]))
        else:
            here[last] = data.draw(VALUES)
        if not changed:
            break
    return changed


def check_sentence(sentence: str) -> None:
    """The form of a sentence for a user."""
    assert sentence.startswith("any.toml")
    assert "\n" not in sentence
    assert sentence.isprintable()


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([SYSTEM, HPCS]))
def test_random_system_is_valid_or_gets_a_one_sentence_error(data: st.DataObject, document: dict[str, Any]) -> None:
    changed = change_randomly(data, document)
    try:
        system = make_system(changed, "any.toml")
    except SystemFileError as reason:
        check_sentence(str(reason))
        return
    full = system.resolve()
    for name in system.list_part_ids("file_systems"):
        assert name not in find_all_dependencies(system, name)
    assert len(full["drives"]) == len(system.list_part_ids("drives"))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(sorted(EXAMPLES)))
def test_random_experiment_is_valid_or_gets_a_one_sentence_error(data: st.DataObject, name: str) -> None:
    try:
        experiment = make_experiment(change_randomly(data, EXAMPLES[name]), "any.toml")
    except ExperimentError as reason:
        check_sentence(str(reason))
        return
    assert len({cell.id for cell in experiment.cells}) == len(experiment.cells)
    assert isinstance(find_contradictions(experiment, DEMO), list)
