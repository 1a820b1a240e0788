# SPDX-License-Identifier: Apache-2.0
"""The space of a plan: shared files count once, removed trees no longer, stonewalled phases only as an upper limit."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.plan import Plan
from sonde.model.required_space import RequiredSpace, compute_required_space

KIB, MIB = 1 << 10, 1 << 20
WRITE = {"id": "w", "op": "write"}


def space_of(phases: list[dict[str, Any]], tasks: int = 4, **members: Any) -> RequiredSpace:
    document = {"id": "p", "target": {"path": "/x"}, "phases": phases, **members}
    return compute_required_space(Plan.from_document(document, "test"), tasks)


def test_phases_on_the_same_files_need_the_largest() -> None:
    larger = {"id": "l", "op": "rewrite", "access": {"volume": "9MiB"}}
    assert space_of([WRITE, {"id": "r", "op": "read"}]) == RequiredSpace(4 * MIB, 4 * MIB)
    assert space_of([WRITE, larger, {"id": "r", "op": "read", "access": {"volume": "99MiB"}}]).bytes == 36 * MIB
    assert space_of([{"id": "r", "op": "read"}, {"id": "s", "op": "stat"}]).bytes == 0


def test_explicitly_numbered_files_add_to_the_required_space() -> None:
    files = {"files": {"mapping": "many", "count": 3}, "access": {"segments": 1}}
    single = {"id": "one", "op": "write", "files": [1], "access": {"segments": 5}}
    assert space_of([WRITE | {"access": {"segments": 2}}, single], tasks=2, data=files).bytes == 2 * (2 + 5 + 2) * MIB


@pytest.mark.parametrize(
    ("io", "certain"), [({}, 0), ({"preallocate": "unwritten"}, 4 * MIB)], ids=["plain", "preallocated"]
)
def test_stonewalled_write_counts_as_upper_limit(io: dict[str, Any], certain: int) -> None:
    stonewalled = WRITE | {"stop": {"stonewall": "1s"}}
    assert space_of([stonewalled], data={"io": io}) == RequiredSpace(certain, 4 * MIB)


def test_stonewalled_create_counts_as_upper_limit() -> None:
    meta = {"tree": {"items_per_dir": 10}, "file": {"write": "3KiB"}}
    create = {"id": "c", "op": "create"}
    assert space_of([create], meta=meta) == RequiredSpace(40 * 3 * KIB, 40 * 3 * KIB)
    assert space_of([create | {"stop": {"stonewall": "1s"}}], meta=meta) == RequiredSpace(0, 40 * 3 * KIB)


def test_removed_trees_free_their_space() -> None:
    meta = {"tree": {"items_per_dir": 10}, "file": {"write": "3KiB"}}
    create, remove = {"id": "c", "op": "create"}, {"id": "r", "op": "remove"}
    other = {"id": "c2", "op": "create", "meta": {"tree": {"top": "other"}}}
    assert space_of([create, remove, other], meta=meta).bytes == 40 * 3 * KIB
    assert space_of([create, other], meta=meta).bytes == 80 * 3 * KIB


def test_backends_without_storage_need_none() -> None:
    assert space_of([WRITE], data={"backend": "null"}) == RequiredSpace(0, 0)
