# SPDX-License-Identifier: Apache-2.0
"""Slices that say where they begin: side by side, within their disk, none over another."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.model.errors import SystemFileError
from sonde.model.system import System, read_system

HEAD = 'schema = "sonde-system/2"\n[[drives]]\nid = "d[1-2]"\ncapacity = "100 GB"\n'


def read(folder: Path, *slices: tuple[str, str, int, int]) -> System:
    """Two disks of 100 GB with slices: name, disk, begin and size in GB."""
    text = HEAD + "".join(
        f'[[slices]]\nid = "{name}"\non = "{disk}"\nstart = "{start} GB"\nsize = "{size} GB"\n'
        for name, disk, start, size in slices
    )
    (folder / "site.toml").write_text(text, encoding="utf-8")
    return read_system(folder / "site.toml")


def test_slices_may_touch_each_other_and_the_end_of_their_disk(tmp_path: Path) -> None:
    system = read(tmp_path, ("b", "d1", 40, 60), ("a", "d1", 0, 40), ("c", "d2", 20, 30))
    assert system.list_part_ids("slices") == ("b", "a", "c")


@pytest.mark.parametrize(
    ("slices", "text"),
    [
        (
            [("a", "d1", 0, 40), ("b", "d1", 39, 10)],
            'slices.b.start lies within "a", which ends at 40000000000 B; begin it there or later.',
        ),
        (
            [("c", "d1", 50, 10), ("a", "d1", 0, 20), ("b", "d1", 10, 10)],
            'slices.b.start lies within "a", which ends at 20000000000 B; begin it there or later.',
        ),
        (
            [("a", "d2", 41, 60)],
            'slices.a.start and size lead to 101000000000 B, but "d2" has 100000000000 B; make it smaller.',
        ),
    ],
    ids=["one in another", "whatever their order", "beyond the disk"],
)
def test_a_slice_over_another_or_beyond_its_disk_is_refused(
    tmp_path: Path, slices: list[tuple[str, str, int, int]], text: str
) -> None:
    with pytest.raises(SystemFileError) as caught:
        read(tmp_path, *slices)
    assert str(caught.value) == f"{tmp_path / 'site.toml'}: {text}"
