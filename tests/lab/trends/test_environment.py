# SPDX-License-Identifier: Apache-2.0
"""What differed around the runs, from records whose heads are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sonde.store.summary import read_summary
from sonde.trends.environment import differences, facts_of

AddRun = Callable[..., Path]
READ = {("read", "read"): 1e9}
NOTHING = {"read": [1.0]}


def test_what_always_changes_is_left_out(add_run: AddRun) -> None:
    one = add_run(0, READ, node={"load_1m": 0.1, "file_system": {"options": "rw", "free_bytes": 1}})
    two = add_run(1, READ, node={"load_1m": 9.9, "file_system": {"options": "rw", "free_bytes": 2}})
    assert differences([read_summary(one)], [read_summary(two)]) == []


def test_a_steady_difference_stands_before_one_that_wavers(add_run: AddRun) -> None:
    before = [add_run(day, READ, engine={"library": f"1.{day}"}) for day in range(3)]
    after = [add_run(9 + day, READ, engine={"library": "2.0"}, node={"kernel": "Linux 6"}) for day in range(3)]
    found = differences([read_summary(one) for one in before], [read_summary(one) for one in after])
    assert [(one.name, one.before, one.after, one.steady) for one in found] == [
        ("kernel", "Linux 3.0.101", "Linux 6", True),
        ("engine library", "1.2", "2.0", False),
    ]


def test_a_member_that_nobody_knows_yet_is_compared_too(add_run: AddRun) -> None:
    one = add_run(0, READ)
    two = add_run(1, READ, node={"network": {"adapters": [{"driver": "mlx5", "firmware": "20.1"}]}})
    (found,) = differences([read_summary(one)], [read_summary(two)])
    assert found.name == "network adapters"
    assert found.before == ""
    assert "mlx5" in found.after


def test_nodes_that_differ_give_all_their_values(add_run: AddRun) -> None:
    folder = add_run(0, READ, hosts={"nid1": 1e9, "nid2": 1e9, "nid3": 1e9}, slices=NOTHING)
    assert facts_of(folder)["host"] == "nid1, nid2, nid3"


def test_a_broken_record_says_nothing(add_run: AddRun) -> None:
    folder = add_run(0, READ)
    (folder / "record.ndjson").write_bytes(b'\xff\xfe{"type": 3}\nnull\n[1]\n{"type":"node","kernel":"Linux 9"}\n')
    assert facts_of(folder)["kernel"] == "Linux 9"
    (folder / "record.ndjson").unlink()
    assert facts_of(folder) == {}
