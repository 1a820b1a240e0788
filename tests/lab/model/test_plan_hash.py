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
FULL = R | {
    "data_of": "w", "operations_file": "/ops", "shift": {"by": "random", "seed": 4}, "before": [SLEEP],
    "stop": {"time": "1min"}, "measure": False, "barrier": "intra", "process": "separate", "valid": {"min_time": "1s"},
}  # fmt: skip
TREE = {"depth": 2, "branching": 3, "items_per_task": 26}


def make_permuted_phase(phase: dict[str, Any], seed: int) -> dict[str, Any]:
    return phase | {"access": {"order": "random_permute", "seed": seed}}


LISTED: list[tuple[str, dict[str, Any], str]] = [
    ("the least", plan(), "d27688a6af22"),
    ("a pace that nobody follows", plan(data={"paced": {"rate": "1MB/s"}}), "d27688a6af22"),
    ("stripes in a directory that exists",
     plan(target={"path": "/x", "use_existing": True, "striping": {"count": 4, "size": "1MiB"}}), "1064bd348ba3"),
    ("pinned tasks, of which some are active", plan(tasks={"pin": True, "active": 3}), "8344c66e40fc"),
    ("files in three places", plan(data={"files": MANY}), "7d57a944ec19"),
    ("a payload", plan(data={"payload": {"kind": "random", "seed": 9, "compressible": 0.5}}), "546735994c47"),
    ("a pace", plan(data={"backend": "paced", "paced": {"rate": "1MB/s"}}), "b93b172c9a41"),
    ("a calibrated volume",
     plan(calibrated=["data.access.volume"], data={"access": {"volume": "5GiB", "transfer": "4KiB"}}), "0424a818eab2"),
    ("two orders", plan(make_permuted_phase(W, 5), make_permuted_phase(R, 6)), "76fb5f835119"),
    ("one order twice", plan(make_permuted_phase(W, 5), make_permuted_phase(R, 5)), "d42c39c8cdb9"),
    ("a mixture", plan(R | {"op": "mixed", "access": {"read_ratio": 0.7, "seed": 3}}), "98f0f6c91f60"),
    ("a phase with everything", plan(W, FULL), "bcdd09133fb7"),
    ("data of a phase that is not there", plan(W, R | {"data_of": "v"}), "ec78cc9fc037"),
    ("a write that overwrites", plan(W | {"open": "overwrite"}), "901925aa80c4"),
    ("files of others by lot", plan(W, R | {"shift": {"by": "permute", "n": 2, "seed": 7}}), "ab04a8f872af"),
    ("names",
     plan({"id": "c", "op": "create"}, {"id": "s", "op": "stat", "meta": {"select": {"order": "permute", "seed": 4}}},
          meta={"tree": TREE, "payload": {"seed": 3}, "paced": {"rate": "5MB/s"}}), "8d5fe89ff313"),
    ("names at a pace",
     plan({"id": "c", "op": "create"}, meta={"backend": "paced", "paced": {"rate": "5MB/s"}}), "ffc0e21956f0"),
    ("a search",
     plan({"id": "s", "op": "walk"}, meta={"find": {"newer_than_file": "/stamp", "size": "4KiB"}}), "b25bd86cd79d"),
    ("a share of the memory",
     plan(data={"access": {"volume": {"of": "node_memory", "x": 2, "per": "node"}}}), "63a39027c968"),
    ("an amount in bytes",
     plan(data={"access": {"volume": {"of": "bytes", "bytes": "1GiB", "per": "total"}}}), "ba8767c7f997"),
    ("direct and deep",
     plan(data={"backend": "io_uring", "io": {"direct": True, "queue_depth": 8, "pause": "1ms"}, "verify": "on_read"}),
     "11435e31d10b"),
]  # fmt: skip
KNOWN = {name: (document, plan_hash) for name, document, plan_hash in LISTED}


def test_hash_version_is_pinned() -> None:
    assert HASH_VERSION == 4


@pytest.mark.parametrize(("document", "plan_hash"), KNOWN.values(), ids=KNOWN.keys())
def test_plan_hashes_equal_archived_hashes(document: dict[str, Any], plan_hash: str) -> None:
    Plan.from_document(document, "it is a plan")
    before = copy.deepcopy(document)
    assert compute_plan_hash(document, 2, 3, 4) == plan_hash
    assert document == before


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("files in three places",
         {"data": {"files": MANY | {"paths": ["/c", "/b", "/e"], "across": ["/f"], "name": "m"}}}),
        ("a payload", {"data": {"payload": {"kind": "random", "seed": 10, "compressible": 0.5}}}),
        ("a calibrated volume", {"data": {"access": {"volume": "6GiB", "transfer": "4KiB"}}}),
        ("two orders", {"phases": [make_permuted_phase(W, 8), make_permuted_phase(R, 1)]}),
        ("one order twice", {"phases": [make_permuted_phase(W, 8), make_permuted_phase(R, 8)]}),
        ("a phase with everything",
         {"phases": [W, FULL | {"operations_file": "/o", "shift": {"by": "random", "seed": 5}, "valid": {},
                                "before": [SLEEP | {"need": "best_effort", "max_residency": 0.25}]}]}),
        ("a phase with everything", {"phases": [W | {"id": "first"}, FULL | {"data_of": "first"}]}),
        ("a phase with everything", {"phases": [W | {"open": "truncate"}, FULL | {"open": "exclusive"}]}),
        ("a search", {"meta": {"find": {"newer_than_file": "/other", "size": "4096B"}}}),
    ],
)  # fmt: skip
def test_members_without_effect_on_work_do_not_change_the_hash(name: str, changes: dict[str, Any]) -> None:
    document, plan_hash = KNOWN[name]
    assert compute_plan_hash(document | changes, 2, 3, 4) == plan_hash


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("files in three places", {"data": {"files": MANY | {"paths": ["/a"]}}}),
        ("a calibrated volume", {"calibrated": []}),
        ("a calibrated volume", {"data": {"access": {"volume": "5GiB", "transfer": "8KiB"}}}),
        (
            "a phase with everything",
            {"phases": [W, {name: value for name, value in FULL.items() if name != "operations_file"}]},
        ),
        ("a phase with everything", {"phases": [W, R, FULL]}),
        ("a write that overwrites", {"phases": [W | {"open": "exclusive"}]}),
        ("names at a pace", {"meta": {"backend": "paced", "paced": {"rate": "6MB/s"}}}),
    ],
)
def test_members_with_effect_on_work_change_the_hash(name: str, changes: dict[str, Any]) -> None:
    document, plan_hash = KNOWN[name]
    assert compute_plan_hash(document | changes, 2, 3, 4) != plan_hash


def test_plan_of_an_unknown_version_has_a_hash() -> None:
    later = plan(schema="sonde-plan/9")
    with pytest.raises(PlanError):
        Plan.from_document(later, "x")
    assert compute_plan_hash(later, 2, 3, 4) == "3c647147a26d"


def test_the_geometry_counts_and_may_be_unknown() -> None:
    assert compute_plan_hash(plan(), None, None, None) == "c6221e3e5945"
    assert (
        len({compute_plan_hash(plan(), *geometry) for geometry in ((2, 3, 4), (3, 2, 4), (2, 4, 3), (None, 3, 4))}) == 4
    )


def test_a_short_hash_does_not_depend_on_the_order_of_members() -> None:
    assert hash_json({"b": [1, "ä"], "a": None}) == hash_json({"a": None, "b": [1, "ä"]}) == "3d6f860d37ce"
    assert hash_json([], 4) == "4f53"
    assert len(hash_json("x")) == 12
