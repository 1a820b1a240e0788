# SPDX-License-Identifier: Apache-2.0
"""Layouts of Lustre of several components: of directories, and of files with mirrors."""

from __future__ import annotations

from pathlib import Path

import pytest
from lustre_hosts import find_faults, print_component, print_file

MIB, GIB = 1 << 20, 1 << 30
POOL = "Pool: fs.capacity\n" + "".join(f"fs-OST{index:04x}_UUID\n" for index in range(3))


def print_default(*components: tuple[int, int | str, int, str]) -> str:
    """A default layout as lfs getstripe -d prints it: begin, end, stripe count and pattern of each component."""
    text = "".join(
        f"    lcme_id:             N/A\n    lcme_mirror_id:      N/A\n    lcme_flags:          0\n"
        f"    lcme_extent.e_start: {begin}\n    lcme_extent.e_end:   {end}\n      stripe_count:  {count}"
        f"       stripe_size:   1048576       pattern:       {pattern}       stripe_offset: -1\n\n"
        for begin, end, count, pattern in components
    )
    return f"/fs\n  lcm_layout_gen:    0\n  lcm_mirror_count:  1\n  lcm_entry_count:   {len(components)}\n{text}"


@pytest.mark.parametrize(("components", "kind"), [
    (((0, MIB, 0, "mdt"), (MIB, GIB, 1, "raid0"), (GIB, "EOF", -1, "raid0")), ""),
    (((0, MIB, 0, "mdt"), (MIB, GIB, 1, "raid0"), (GIB, 100 * GIB, 4, "raid0")), "layout ends"),
    (((0, MIB, 0, "mdt"), (4 * MIB, "EOF", 4, "raid0")), "hole in a layout"),
    (((0, GIB, 4, "raid0"), (GIB, "EOF", 1, "raid0")), "large files on one target"),
    (((0, GIB, 0, "mdt"), (GIB, "EOF", 4, "raid0")), "large data on metadata target"),
    (((0, 64 * MIB, -1, "raid0"), (64 * MIB, "EOF", -1, "raid0")), "all files on all targets"),
])  # fmt: skip
def test_default_layout_has_one_fault(
    tmp_path: Path, components: tuple[tuple[int, int | str, int, str], ...], kind: str
) -> None:
    faults = find_faults(tmp_path, files={"layout.txt": print_default(*components)})
    assert [fault.kind for fault in faults] == [kind] * bool(kind)


def test_stale_mirror_is_reported(tmp_path: Path) -> None:
    text = print_file(print_component(1, (0,), mirror=1), print_component(2, (2,), mirror=2, flags="init,stale"))
    (fault,) = find_faults(tmp_path, files={"file.txt": text})
    assert (fault.kind, fault.problem) == ("mirror out of date", "mirror 2 is stale")


@pytest.mark.parametrize(("pool", "kind"), [("capacity", ""), ("flash", "pool does not exist")])
def test_pool_of_a_layout_must_exist(tmp_path: Path, pool: str, kind: str) -> None:
    text = f"/fs\nstripe_count:  1 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1 pool: {pool}\n"
    faults = find_faults(tmp_path, extra={"login": {"lfs pool_list fs.capacity": POOL}}, files={"layout.txt": text})
    assert [fault.kind for fault in faults] == [kind] * bool(kind)


def test_objects_outside_the_pool_are_reported(tmp_path: Path) -> None:
    component = print_component(1, (0, 3)).replace("lmm_objects", "lmm_pool: capacity\n      lmm_objects")
    files = {"file.txt": print_file(component)}
    (fault,) = find_faults(tmp_path, extra={"login": {"lfs pool_list fs.capacity": POOL}}, files=files)
    assert (fault.kind, fault.location) == ("objects outside the pool", "/fs/f")
    assert "has objects on fs-OST0003, which are not in it" in fault.problem
