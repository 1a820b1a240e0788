# SPDX-License-Identifier: Apache-2.0
"""What a validator says of a plan, as one sentence: the place, what was found, what is allowed, what was meant."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sonde.model.explain import problems, shown
from sonde.model.schemas import plan_schema

GOOD: dict[str, Any] = {
    "schema": "sonde-plan/1",
    "id": "p",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "4KiB"}, "files": {}, "io": {}},
    "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}],
}


def said(place: str, value: Any) -> list[str]:
    """The sentences about a good plan with one member set; phases by number."""
    plan = copy.deepcopy(GOOD)
    *path, last = place.split(".")
    here: Any = plan
    for name in path:
        here = here[int(name)] if name.isdigit() else here.setdefault(name, {})
    here[last] = value
    return problems(plan_schema(), plan)


def test_a_good_plan_has_no_problem() -> None:
    assert problems(plan_schema(), GOOD) == []


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("data.io.direct", "true", 'data.io.direct is "true"; it must be true or false. Write true or false without'
                                   " quotation marks."),
        ("data.io.direct", "maybe", 'data.io.direct is "maybe"; it must be true or false.'),
        ("data.io.direct", 0, "data.io.direct is 0; it must be true or false. Write true or false without quotation"
                              " marks."),
        ("data.io.queue_depth", "8", 'data.io.queue_depth is "8"; it must be a whole number. Write it without quotation'
                                     " marks."),
        ("data.io.queue_depth", 2.0, "data.io.queue_depth is 2.0; it must be a whole number."),
        ("data.io.queue_depth", "eight", 'data.io.queue_depth is "eight"; it must be a whole number.'),
        ("data.io.queue_depth", 0, "data.io.queue_depth is 0; it must be at least 1."),
        ("title", 3, "title is 3; it must be a text."),
        ("phases", {}, "phases is {}; it must be a list."),
        ("data", [], "data is []; it must be a table of members."),
        ("phases", [], "phases has 0 entries; it must have at least 1."),
        ("data.access.transfer", "4k", 'data.access.transfer: "4k" does not say which unit is meant: write 4KiB'
                                       " (4,096 bytes) or 4kB (4,000 bytes)."),
        ("data.access.transfer", 4.5, 'data.access.transfer is 4.5; write "4KiB", "10MB" or a whole number of bytes.'),
        ("data.access.volume", {"of": "byte", "bytes": 1}, 'data.access.volume.of is "byte"; allowed is bytes or'
                                                             ' node_memory. Did you mean "bytes"?'),
        ("phases.1.op", "raed", 'phases.r.op is "raed"; allowed is '),
        ("phases.1.cold", 1, 'phases.r has no member "cold"'),
        ("data.direct", True, 'data has no member "direct"'),
        ("schema", "sonde-plan/9", 'schema is "sonde-plan/9"; allowed is "sonde-plan/1". Did you mean "sonde-plan/1"?'),
    ],
)  # fmt: skip
def test_each_kind_of_mistake_has_its_sentence(place: str, value: Any, sentence: str) -> None:
    (found,) = said(place, value)
    assert found == sentence or (not sentence.endswith(".") and found.startswith(sentence)), found


def test_a_member_one_level_off_is_told_its_home_and_a_near_name_is_meant() -> None:
    (found,) = said("data.direct", True)
    assert found.endswith('A member of that name is "data.io.direct".')
    (near,) = said("phases.1.op", "raed")
    assert "did you mean read?" in near.lower() or "read" in near.split(".")[-2]


def test_what_is_missing_comes_with_how_to_give_it() -> None:
    def without(*path: str) -> list[str]:
        plan = copy.deepcopy(GOOD)
        here = plan
        for name in path[:-1]:
            here = here[name]
        del here[path[-1]]
        return problems(plan_schema(), plan)

    assert without("target", "path") == [
        '"target.path" is missing; name the directory to measure with --on DIR or path = "DIR" in [target].'
    ]
    assert without("target") == ['"target" is missing; name the directory to measure with --on DIR.']
    assert without("phases") == ['"phases" is missing; a plan needs at least one [[phases]] with an id and an op.']
    assert without("id") == ['"id" is missing.']


def test_a_value_is_shown_shortened() -> None:
    assert shown("x" * 58) == '"' + "x" * 58 + '"'
    assert shown("x" * 59) == '"' + "x" * 58 + "…"
    assert shown({"ä": 1}) == '{"ä": 1}'
