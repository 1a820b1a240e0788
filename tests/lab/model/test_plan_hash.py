# SPDX-License-Identifier: Apache-2.0
"""Archives hold hashes of plans: the hash of a plan stays what it is until `sameness.VERSION` is another.

Whoever changes a default, or what counts, meets these numbers, raises VERSION and takes the new ones.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sonde.model.errors import PlanError
from sonde.model.plan import Plan
from sonde.model.plan_hash import HASH_VERSION, compute_plan_hash, hash_json

W: dict[str, Any] = {"id": "w", "op": "write"}
R: dict[str, Any] = {"id": "r", "op": "read"}


def plan(*phases: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"schema": "sonde-plan/2", "id": "p", "target": {"path": "/x"}, "phases": [*phases] or [W], **members}


MANY = {"mapping": "many", "count": 9, "paths": ["/a", "/b", "/c"], "across": ["/d"], "name": "n", "suffix": "s"}
SLEEP = {"kind": "sleep", "time": "1s", "need": "required", "max_residency": 0.5}
FULL_PHASE = R | {
    "data_of": "w", "operations_file": "/ops", "shift": {"by": "random", "seed": 4}, "before": [SLEEP],
    "stop": {"time": "1min"}, "measure": False, "barrier": "intra", "process": "separate", "valid": {"min_time": "1s"},
}  # fmt: skip
TREE = {"depth": 2, "branching": 3, "items_per_task": 26}


def make_permuted_phase(phase: dict[str, Any], seed: int) -> dict[str, Any]:
    return phase | {"access": {"order": "random_permute", "seed": seed}}


LISTED: list[tuple[str, dict[str, Any], str]] = [
    ("the least", plan(), "1a2879465cc5"),
    ("a pace that nobody follows", plan(data={"paced": {"rate": "1MB/s"}}), "1a2879465cc5"),
    ("stripes in a directory that exists",
     plan(target={"path": "/x", "use_existing": True, "striping": {"count": 4, "size": "1MiB"}}), "c0b1305f91ef"),
    ("pinned tasks, of which some are active", plan(tasks={"pin": True, "active": 3}), "16cc3b5f3b93"),
    ("files in three places", plan(data={"files": MANY}), "442f59f76b9e"),
    ("a payload", plan(data={"payload": {"kind": "random", "seed": 9, "compressible": 0.5}}), "fd93ce42f5d5"),
    ("a pace", plan(data={"backend": "paced", "paced": {"rate": "1MB/s"}}), "3186ee03d4de"),
    ("a calibrated volume",
     plan(calibrated=["data.access.volume"], data={"access": {"volume": "5GiB", "transfer": "4KiB"}}), "82befdfe587a"),
    ("two orders", plan(make_permuted_phase(W, 5), make_permuted_phase(R, 6)), "68c5ee7f40a1"),
    ("one order twice", plan(make_permuted_phase(W, 5), make_permuted_phase(R, 5)), "7acce88ca8a8"),
    ("a mixture", plan(R | {"op": "mixed", "access": {"read_ratio": 0.7, "seed": 3}}), "377f84dd088c"),
    ("a phase with everything", plan(W, FULL_PHASE), "511eddf137e3"),
    ("data of a phase that is not there", plan(W, R | {"data_of": "v"}), "628a48327c8c"),
    ("a write that overwrites", plan(W | {"open": "overwrite"}), "1d2486826dc9"),
    ("files of others by lot", plan(W, R | {"shift": {"by": "permute", "n": 2, "seed": 7}}), "02a0bc5a6e4f"),
    ("names",
     plan({"id": "c", "op": "create"}, {"id": "s", "op": "stat", "meta": {"select": {"order": "permute", "seed": 4}}},
          meta={"tree": TREE, "payload": {"seed": 3}, "paced": {"rate": "5MB/s"}}), "6dfa8c6f766a"),
    ("names at a pace",
     plan({"id": "c", "op": "create"}, meta={"backend": "paced", "paced": {"rate": "5MB/s"}}), "fea932d8e7b3"),
    ("a search",
     plan({"id": "s", "op": "walk"}, meta={"find": {"newer_than_file": "/stamp", "size": "4KiB"}}), "1f1acd0bc243"),
    ("a share of the memory",
     plan(data={"access": {"volume": {"of": "node_memory", "x": 2, "per": "node"}}}), "eea6b6272643"),
    ("an amount in bytes",
     plan(data={"access": {"volume": {"of": "bytes", "bytes": "1GiB", "per": "total"}}}), "4ad010c5609d"),
    ("direct and deep",
     plan(data={"backend": "io_uring", "io": {"direct": True, "queue_depth": 8, "pause": "1ms"}, "verify": "on_read"}),
     "add4a333525f"),
]  # fmt: skip
KNOWN_HASHES = {name: (document, plan_hash) for name, document, plan_hash in LISTED}


def test_hash_version_is_pinned() -> None:
    assert HASH_VERSION == 5


@pytest.mark.parametrize(("document", "plan_hash"), KNOWN_HASHES.values(), ids=KNOWN_HASHES.keys())
def test_plan_hashes_equal_archived_hashes(document: dict[str, Any], plan_hash: str) -> None:
    Plan.from_document(document, "it is a plan")
    before = copy.deepcopy(document)
    assert compute_plan_hash(document, 2, 3, 4) == plan_hash
    assert document == before


@pytest.mark.parametrize(
    ("case_name", "changes"),
    [
        ("files in three places",
         {"data": {"files": MANY | {"paths": ["/c", "/b", "/e"], "across": ["/f"], "name": "m"}}}),
        ("a payload", {"data": {"payload": {"kind": "random", "seed": 10, "compressible": 0.5}}}),
        ("a calibrated volume", {"data": {"access": {"volume": "6GiB", "transfer": "4KiB"}}}),
        ("two orders", {"phases": [make_permuted_phase(W, 8), make_permuted_phase(R, 1)]}),
        ("one order twice", {"phases": [make_permuted_phase(W, 8), make_permuted_phase(R, 8)]}),
        ("a phase with everything",
         {"phases": [W, FULL_PHASE | {"operations_file": "/o", "shift": {"by": "random", "seed": 5}, "valid": {},
                                "before": [SLEEP | {"need": "best_effort", "max_residency": 0.25}]}]}),
        ("a phase with everything", {"phases": [W | {"id": "first"}, FULL_PHASE | {"data_of": "first"}]}),
        ("a phase with everything", {"phases": [W | {"open": "truncate"}, FULL_PHASE | {"open": "exclusive"}]}),
        ("a search", {"meta": {"find": {"newer_than_file": "/other", "size": "4096B"}}}),
    ],
)  # fmt: skip
def test_members_without_effect_on_work_do_not_change_the_hash(case_name: str, changes: dict[str, Any]) -> None:
    document, plan_hash = KNOWN_HASHES[case_name]
    assert compute_plan_hash(document | changes, 2, 3, 4) == plan_hash


@pytest.mark.parametrize(
    ("case_name", "changes"),
    [
        ("files in three places", {"data": {"files": MANY | {"paths": ["/a"]}}}),
        ("a calibrated volume", {"calibrated": []}),
        ("a calibrated volume", {"data": {"access": {"volume": "5GiB", "transfer": "8KiB"}}}),
        (
            "a phase with everything",
            {"phases": [W, {name: value for name, value in FULL_PHASE.items() if name != "operations_file"}]},
        ),
        ("a phase with everything", {"phases": [W, R, FULL_PHASE]}),
        ("a write that overwrites", {"phases": [W | {"open": "exclusive"}]}),
        ("names at a pace", {"meta": {"backend": "paced", "paced": {"rate": "6MB/s"}}}),
    ],
)
def test_members_with_effect_on_work_change_the_hash(case_name: str, changes: dict[str, Any]) -> None:
    document, plan_hash = KNOWN_HASHES[case_name]
    assert compute_plan_hash(document | changes, 2, 3, 4) != plan_hash


def convert_whole_numbers_to_floats(value: Any) -> Any:
    """The document with 1.0 for 1 in all members that take a fraction."""
    fractions = ("read_ratio", "percent", "compressible", "iops_limit", "pause", "x", "wait", "exponent")
    if isinstance(value, list):
        return [convert_whole_numbers_to_floats(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: float(item) if name in fractions and isinstance(item, int) else convert_whole_numbers_to_floats(item)
        for name, item in value.items()
    }


SIZES = [{"size": "4KiB", "percent": 25}, {"size": "8KiB", "percent": 75}]


@pytest.mark.parametrize(
    "document",
    [
        plan(W, {"id": "m", "op": "mixed", "access": {"read_ratio": 1}}),
        plan(data={"access": {"transfer": "8KiB", "sizes": SIZES}}),
        plan(data={"payload": {"kind": "random", "compressible": 1}, "io": {"iops_limit": 100, "pause": 1}}),
        plan(data={"access": {"volume": {"of": "node_memory", "x": 2, "per": "node"}}}),
        plan(
            {"id": "c", "op": "create"}, {"id": "s", "op": "stat", "meta": {"select": {"order": "zipf", "exponent": 2}}}
        ),
    ],
)
def test_numbers_of_equal_value_have_one_hash(document: dict[str, Any]) -> None:
    with_floats = convert_whole_numbers_to_floats(document)
    assert repr(with_floats) != repr(document)
    Plan.from_document(document, "it is a plan")
    assert compute_plan_hash(with_floats, 2, 3, 4) == compute_plan_hash(document, 2, 3, 4)


def test_plan_of_an_unknown_version_has_a_hash() -> None:
    later = plan(schema="sonde-plan/9")
    with pytest.raises(PlanError):
        Plan.from_document(later, "x")
    assert compute_plan_hash(later, 2, 3, 4) == "20381d1017df"


def test_the_geometry_counts_and_may_be_unknown() -> None:
    assert compute_plan_hash(plan(), None, None, None) == "a7c01cf778fe"
    assert (
        len({compute_plan_hash(plan(), *geometry) for geometry in ((2, 3, 4), (3, 2, 4), (2, 4, 3), (None, 3, 4))}) == 4
    )


def test_a_short_hash_does_not_depend_on_the_order_of_members() -> None:
    assert hash_json({"b": [1, "ä"], "a": None}) == hash_json({"a": None, "b": [1, "ä"]}) == "3d6f860d37ce"
    assert hash_json([], 4) == "4f53"
    assert len(hash_json("x")) == 12
