# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of a plan on paper, one rule after the other: bytes, operations, files, and the space they take."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.plan import Plan
from sonde.model.volume import PhaseVolume, compute_phase_volumes, count_task_items

KIB, MIB = 1 << 10, 1 << 20


def volume(
    phase: dict[str, Any], tasks: int = 4, nodes: int = 1, memory: int | None = None, **plan: Any
) -> PhaseVolume:
    """The volume of the only phase of a plan."""
    document = {"id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", **phase}], **plan}
    (phase_volume,) = compute_phase_volumes(Plan.from_document(document, "test"), tasks, nodes, memory)
    return phase_volume


ACCESS = {"transfer": "4KiB", "block": "64KiB", "segments": 3, "gap": "1KiB"}
TREE = {"depth": 1, "branching": 3, "items_per_dir": 10}  # four directories, all of which hold items


def test_data_phase_volume_with_all_members_set() -> None:
    """Three segments of 64 KiB of each of four tasks, in two files each; a gap of 1 KiB behind every segment."""
    data = {"backend": "mmap", "files": {"mapping": "many", "count": 2}, "access": ACCESS}
    computed = volume({"op": "write", "stop": {"time": "2min", "stonewall": "30s"}}, data=data)
    assert computed == PhaseVolume(
        id="w", op="write", backend="mmap", mapping="many", tasks=4, files=8, transfer_bytes=4 * KIB,
        block_bytes=64 * KIB,
        segments=3, bytes=3 * 64 * KIB * 8, operations=3 * 16 * 8, time_limit_s=120.0, stonewall_s=30.0,
    )  # fmt: skip


def test_default_phase_transfers_one_mebibyte_per_task() -> None:
    assert volume({"op": "read"}) == PhaseVolume(
        id="w", op="read", backend="posix", mapping="per_task", tasks=4, files=4, transfer_bytes=MIB,
        block_bytes=MIB, segments=1,
        bytes=4 * MIB, operations=4, time_limit_s=None, stonewall_s=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("volume_text", "segments"),
    [
        ("64KiB", 1),
        ("65KiB", 2),
        (0, 1),
        ({"of": "bytes", "bytes": "1MiB", "per": "total"}, 4),
        ({"of": "bytes", "bytes": "1MiB", "per": "node"}, 8),
        ({"of": "bytes", "bytes": "257KiB", "per": "total"}, 2),
        ({"of": "bytes", "bytes": "128KiB"}, 2),
        ({"of": "bytes"}, 1),
        ({"of": "node_memory"}, 64),
        ({"of": "node_memory", "x": 0.25, "per": "node"}, 8),
        ({"of": "node_memory", "x": 1e-9}, 1),
    ],
)
def test_volume_is_rounded_to_entire_blocks_per_task(volume_text: Any, segments: int) -> None:
    """Four tasks on two nodes of 4 MiB."""
    access = {"transfer": "4KiB", "block": "64KiB", "volume": volume_text}
    computed = volume({"op": "write"}, nodes=2, memory=4 * MIB, data={"access": access})
    assert (computed.segments, computed.bytes) == (segments, segments * 4 * 64 * KIB)


def test_share_of_unknown_node_memory_is_a_single_block() -> None:
    access = {"transfer": "4KiB", "block": "64KiB", "volume": {"of": "node_memory", "x": 8}}
    assert volume({"op": "write"}, data={"access": access}).segments == 1


def test_more_nodes_than_tasks_are_as_many_as_tasks() -> None:
    access = {"transfer": "4KiB", "volume": {"of": "bytes", "bytes": "64KiB", "per": "node"}}
    assert volume({"op": "write"}, tasks=2, nodes=3, data={"access": access}).segments == 16


def test_a_volume_is_divided_among_the_files_of_a_task() -> None:
    """100 KiB in three files are 34 KiB each, nine blocks of 4 KiB."""
    access = {"transfer": "4KiB", "volume": "100KiB"}
    computed = volume({"op": "write"}, tasks=2, data={"access": access, "files": {"mapping": "many", "count": 3}})
    assert (computed.segments, computed.bytes, computed.files) == (9, 9 * 3 * 2 * 4 * KIB, 6)
    several_files = volume({"op": "duplex", "files": [0, 1]}, tasks=2, data={"access": access})
    assert (several_files.segments, several_files.bytes, several_files.files) == (13, 13 * 2 * 2 * 4 * KIB, 4)
    single_file = volume(
        {"op": "write"}, tasks=2, data={"access": access, "files": {"mapping": "per_task", "count": 3}}
    )
    assert (single_file.segments, single_file.files) == (25, 2)


@pytest.mark.parametrize(
    ("files", "expected_count"),
    [
        ({"mapping": "shared"}, 1),
        ({"mapping": "per_node"}, 3),
        ({"mapping": "per_group", "group_size": 4}, 3),
        ({"mapping": "per_group", "group_size": 9}, 1),
        ({"mapping": "per_group"}, 9),
    ],
)
def test_files_of_nine_tasks_on_three_nodes_follow_the_mapping(files: dict[str, Any], expected_count: int) -> None:
    assert volume({"op": "write"}, tasks=9, nodes=3, data={"files": files}).files == expected_count


@pytest.mark.parametrize("phase", [{"op": "write"}, {"op": "create"}])
@pytest.mark.parametrize(("active", "taking_part"), [(3, 3), (9, 4)])
def test_only_active_tasks_count(phase: dict[str, Any], active: int, taking_part: int) -> None:
    document = {
        "id": "p", "target": {"path": "/x"}, "tasks": {"active": active}, "meta": {"tree": TREE},
        "phases": [{"id": "w", **phase}],
    }  # fmt: skip
    (phase_volume,) = compute_phase_volumes(Plan.from_document(document, "test"), 4)
    assert phase_volume.tasks == taking_part
    assert phase_volume.files == (taking_part if phase["op"] == "write" else 40 * taking_part)


def test_data_phase_with_metadata_operation_counts_files() -> None:
    data = {"files": {"mapping": "many", "count": 5}, "access": {"transfer": "4KiB"}}
    for op in ("stat", "remove"):
        computed = volume({"op": op}, data=data)
        assert (computed.bytes, computed.operations, computed.files) == (0, 20, 20)


def tree(op: str, nodes: int = 1, tasks: int = 4, stop: dict[str, Any] | None = None, **meta: Any) -> PhaseVolume:
    return volume({"op": op} | ({"stop": stop} if stop else {}), tasks, nodes, meta={"tree": TREE} | meta)


def test_metadata_phase_volume_with_all_members_set() -> None:
    """Forty items of each of four tasks, in one tree that all share."""
    stop = {"time": "5s", "stonewall": "1s"}
    assert tree("create", stop=stop, backend="mmap", file={"write": "3KiB"}) == PhaseVolume(
        id="w", op="create", backend="mmap", mapping="shared", tasks=4, files=160, transfer_bytes=3 * KIB,
        block_bytes=3 * KIB,
        segments=1, bytes=160 * 3 * KIB, operations=160, time_limit_s=5.0, stonewall_s=1.0,
    )  # fmt: skip


FILES = {"write": "3KiB", "read": "2KiB"}


@pytest.mark.parametrize(
    ("op", "expected_operations", "expected_transfer_bytes", "expected_moved_bytes"),
    [
        ("create", 160, 3 * KIB, 160 * 3 * KIB),
        ("read", 160, 2 * KIB, 160 * 2 * KIB),
        ("stat", 160, 0, 0),
        ("open_close", 160, 0, 0),
        ("rename", 160, 0, 0),
        ("remove", 160, 0, 0),
        ("mktree", 4, 0, 0),
        ("rmtree", 4, 0, 0),
        ("readdir", 4, 0, 0),
        ("walk", 164, 0, 0),
        ("cycle", 640, 2 * KIB, 160 * 5 * KIB),
    ],
)
def test_each_operation_on_names_counts_items_or_directories(
    op: str, expected_operations: int, expected_transfer_bytes: int, expected_moved_bytes: int
) -> None:
    computed = tree(op, file=FILES)
    assert (
        computed.operations, computed.transfer_bytes, computed.block_bytes, computed.bytes,
    ) == (
        expected_operations, expected_transfer_bytes, expected_transfer_bytes, expected_moved_bytes,
    )  # fmt: skip


def test_cycle_with_keep_only_inspects_and_reads_its_items() -> None:
    computed = tree("cycle", file=FILES, cycle={"keep": True})
    assert (computed.operations, computed.bytes, computed.transfer_bytes) == (320, 160 * 2 * KIB, 2 * KIB)


@pytest.mark.parametrize(("scope", "trees"), [("shared", 1), ("per_task", 4), ("per_node", 3)])
def test_directory_operations_cover_all_trees_and_copies(scope: str, trees: int) -> None:
    assert tree("mktree", nodes=3, tree=TREE | {"scope": scope, "copies": 2}).operations == 4 * 2 * trees
    walked = tree("walk", nodes=3, tree=TREE | {"scope": scope})
    assert walked.operations == 160 + 4 * trees
    assert walked.mapping == scope


def test_item_count_is_limited_by_stop_rule_and_window() -> None:
    assert tree("stat", stop={"items": 7}).operations == 28
    assert tree("stat", stop={"items": 70}).operations == 160
    assert tree("stat", window={"count": 3}).operations == 3 * 4 * 4, "three in each of four directories"


def test_directories_as_items_are_no_files() -> None:
    computed = tree("create", objects="directories")
    assert (computed.files, computed.operations) == (0, 160)


def test_items_per_task_are_explicit_or_summed_over_directories() -> None:
    tree_shape = {"depth": 1, "branching": 3, "leaf_only": False, "copies": 2}
    assert count_task_items(tree_shape | {"items_per_task": 25}) == 25
    assert count_task_items(tree_shape | {"items_per_dir": 5}) == 40
    assert count_task_items(tree_shape | {"items_per_dir": 5, "leaf_only": True}) == 30
    assert count_task_items(tree_shape) == 0
    uneven = tree("stat", tree={"depth": 1, "branching": 3, "items_per_task": 25})
    assert uneven.operations == 100
