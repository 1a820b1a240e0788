# SPDX-License-Identifier: Apache-2.0
"""The stripes that new files of Lustre get, compared with those that a plan has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lustre_hosts import print_client
from storage_builders import build_lustre

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_hosts
from sonde.design.layout.plan import plan_layout
from sonde.model.system import make_system

MIB = 1 << 20
PLANNED = {"size": "1 MiB", "count": 2}


def print_root(count: int = 2, size: int = MIB) -> str:
    return f"stripe_count:  {count} stripe_size:   {size} pattern:       raid0 stripe_offset: -1\n"


def find_faults(
    folder: Path, root: str, servers: str = "", stripe: dict[str, Any] | None = None, *, has_plan: bool = True
) -> tuple[LayoutFault, ...]:
    """The faults of a client and a metadata server; `root` is what lfs getstripe -d prints of the root, without its
    name, `servers` the parameters of the server."""
    document = build_lustre("128 KiB")
    document["file_systems"][0]["stripe"] = PLANNED if stripe is None else stripe
    layout = plan_layout(make_system(document, "made.toml")).get_layout("fs")
    hosts = {"login": print_client() | {"lfs getstripe -d /fs": root} if root else print_client(),
             "mds1": {"lctl get_param": servers or "version=2.15.5"}}  # fmt: skip
    paths = [folder / f"{host}.txt" for host in hosts]
    for path, outputs in zip(paths, hosts.values(), strict=True):
        path.write_text("".join(f"=== sonde layout collect: {name} ===\n{text}\n" for name, text in outputs.items()))
    return check_hosts(read_hosts(paths), layout if has_plan else None, ("/fs",) if has_plan else ()).faults


@pytest.mark.parametrize(("root", "kind", "problem"), [
    (print_root(), "", ""),
    (print_root(4), "not as planned", "the default stripe count is 4; planned is 2"),
    (print_root(1), "not as planned", "the default stripe count is 1; planned is 2"),
    (print_root(-1), "all files on all targets", "the default stripe count is -1; planned is 2"),
    (print_root(size=4 * MIB), "not as planned", "the default stripe size is 4 MiB; planned is 1 MiB"),
])  # fmt: skip
def test_other_stripes_of_the_root_are_one_fault(tmp_path: Path, root: str, kind: str, problem: str) -> None:
    faults = find_faults(tmp_path, root)
    assert [(fault.kind, fault.location, fault.problem) for fault in faults] == [(kind, "login: /fs", problem)] * bool(
        kind
    )


def test_stripe_that_cuts_requests_explains_the_plan(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, print_root(size=64 << 10))
    assert fault.kind == "stripe does not fit RPCs"
    assert fault.consequences == ("/fs: the default stripe size is 64 KiB; planned is 1 MiB",)


@pytest.mark.parametrize("root", [print_root(4), ""])
def test_stripes_of_root_and_servers_are_one_fault(tmp_path: Path, root: str) -> None:
    (fault,) = find_faults(tmp_path, root, "lod.fs-MDT0000-mdtlov.stripecount=4\nlod.fs-MDT0000-mdtlov.stripesize=0")
    assert fault.location == ("login: /fs" if root else "mds1: fs-MDT0000-mdtlov")
    assert fault.problem == "the default stripe count is 4; planned is 2"
    assert fault.remedy.startswith(
        "lfs setstripe -c 2 -S 1048576 /fs" if root else "lctl set_param -P lod.fs-MDT*-mdtlov."
    )


def test_root_overrides_the_stripes_of_servers(tmp_path: Path) -> None:
    servers = "lod.fs-MDT0000-mdtlov.stripecount=1\nlod.fs-MDT0000-mdtlov.stripesize=4194304"
    assert find_faults(tmp_path, print_root(), servers) == ()


def test_root_without_a_count_has_that_of_servers(tmp_path: Path) -> None:
    servers = "lod.fs-MDT0000-mdtlov.stripecount=4\nlod.fs-MDT0000-mdtlov.stripesize=0"
    (fault,) = find_faults(tmp_path, print_root(0), servers)
    assert fault.consequences == ("mds1: fs-MDT0000-mdtlov: the default stripe count is 4; planned is 2",)


def test_root_of_other_count_and_size_is_two_faults(tmp_path: Path) -> None:
    faults = find_faults(tmp_path, print_root(4, 4 * MIB))
    assert [fault.attributes for fault in faults] == [("stripecount",), ("stripesize",)]
    assert all(fault.remedy.startswith("lfs setstripe -c 2 -S 1048576 /fs;") for fault in faults)


def test_stripes_of_another_file_system_are_no_fault(tmp_path: Path) -> None:
    assert find_faults(tmp_path, "", "lod.home-MDT0000-mdtlov.stripecount=4") == ()


@pytest.mark.parametrize(("stripe", "root", "has_fault"), [
    ({"layout": "-E 1M -L mdt -E 1G -c 1 -E -1 -c 4"}, print_root(), True),
    ({"count": 2}, "components", True), ({"layout": "-E 1G -c 1 -E -1 -c 4"}, "components", False),
])  # fmt: skip
def test_components_are_compared_with_the_plan(
    tmp_path: Path, stripe: dict[str, Any], root: str, has_fault: bool
) -> None:
    components = "".join(
        f"    lcme_id:             N/A\n    lcme_mirror_id:      N/A\n    lcme_flags:          0\n"
        f"    lcme_extent.e_start: {begin}\n    lcme_extent.e_end:   {end}\n      stripe_count:  {count}"
        f"       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1\n\n"
        for begin, end, count in ((0, 1 << 30, 1), (1 << 30, "EOF", 4))
    )
    text = f"  lcm_layout_gen:    0\n  lcm_mirror_count:  1\n  lcm_entry_count:   2\n{components}"
    faults = find_faults(tmp_path, text if root == "components" else root, stripe=stripe)
    assert [fault.kind for fault in faults] == ["not as planned"] * has_fault


@pytest.mark.parametrize("has_plan", [True, False])
def test_planned_stripes_on_all_targets_are_no_fault(tmp_path: Path, has_plan: bool) -> None:
    faults = find_faults(tmp_path, print_root(-1), stripe={"count": -1}, has_plan=has_plan)
    assert [fault.kind for fault in faults] == ([] if has_plan else ["all files on all targets"])
