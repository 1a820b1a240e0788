# SPDX-License-Identifier: Apache-2.0
"""Every published number of a storage layout, recomputed; and what the arithmetic never does."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.design.layout import xfs
from sonde.design.layout.derivations import format_stripe_in_three_units
from sonde.design.layout.geometry import (
    CSM_DRIVES,
    CSM_LAYOUTS,
    CSM_SEGMENTS,
    KIB,
    MIB,
    Geometry,
    classify_suited_workload,
    compute_slice_alignment,
    format_csm_size,
    parse_csm_layout,
    parse_csm_size,
    parse_geometry,
)
from sonde.design.layout.slicing import SliceRequest, cut_slices
from sonde.model.errors import UserError

MKFS = shutil.which("mkfs.xfs", path="/usr/sbin:/sbin:/usr/bin")


# The talk's table: class, geometry, stripe in KiB, blocks of 512 B.
@pytest.mark.parametrize(
    ("kind", "name", "expected_stripe", "blocks"),
    [
        ("transaction", "2x2", 256, 512),
        ("transaction", "4x2", 512, 1024),
        ("transaction", "4+1", 512, 1024),
        ("bandwidth", "4+1", 1024, 2048),
        ("bandwidth", "8+1", 2048, 4096),
        ("capacity", "13+1", 1664, 3328),
    ],
)
def test_stripes_equal_the_published_table(kind: str, name: str, expected_stripe: int, blocks: int) -> None:
    geometry, segment = parse_geometry(name), CSM_SEGMENTS[kind][name]
    assert geometry.compute_full_stripe_bytes(segment) == expected_stripe * KIB
    assert geometry.compute_full_stripe_bytes(segment) // 512 == blocks
    assert classify_suited_workload(geometry, segment) == kind
    assert str(geometry) == name


# The cheat sheet, and the row for 13+1 that it lacks.
@pytest.mark.parametrize(
    ("stripe", "blocks", "fs_blocks"),
    [(256, 512, 64), (512, 1024, 128), (1024, 2048, 256), (2048, 4096, 512), (1664, 3328, 416)],
)
def test_stripe_is_formatted_in_three_units(stripe: int, blocks: int, fs_blocks: int) -> None:
    text = format_stripe_in_three_units(stripe * KIB)
    assert f"= {blocks} blocks of 512 B = {fs_blocks} blocks of 4 KiB" in text


def test_slice_alignment_is_least_common_multiple_of_stripe_and_1_mib() -> None:
    assert compute_slice_alignment(2 * MIB) == 2 * MIB  # 8+1
    assert compute_slice_alignment(1664 * KIB) == 13 * MIB  # 13+1
    assert compute_slice_alignment(512 * KIB) == MIB
    assert (13 * MIB) % (1664 * KIB) == 0
    assert MIB % (1664 * KIB) != 0  # why the default of 1 MiB is wrong for 13+1


def test_lun_sizes_use_powers_of_1000_or_1024() -> None:
    size = 1_138_601_984 * 512
    assert format_csm_size(size) == "583GB"
    assert format_csm_size(size, in_powers_of_1024=True) == "543GB"
    assert format_csm_size(71_162_368 * 4096) == "291GB"
    assert parse_csm_size("1Gb") == 1000 * parse_csm_size("1Mb") == 10**9
    assert (
        parse_csm_size("1Gb", in_powers_of_1024=True) == 1024 * parse_csm_size("1Mb", in_powers_of_1024=True) == 1 << 30
    )


def test_eight_drives_of_73_gb_make_a_lun_of_583_gb() -> None:
    assert (
        format_csm_size(Geometry(8, 1).compute_usable_bytes(73 * 10**9)) == "584GB"
    )  # a label and a little at the end are not offered
    assert 0.99 < 1_138_601_984 * 512 / Geometry(8, 1).compute_usable_bytes(73 * 10**9) < 1


@pytest.mark.parametrize(("name", "groups"), [(f"RG1{key}", value) for key, value in CSM_LAYOUTS.items()])
def test_csm_layout_fits_one_brick_and_its_name_counts_data_drives(name: str, groups: tuple[str, ...]) -> None:
    geometries = parse_csm_layout(name)
    assert tuple(map(str, geometries)) == groups
    assert sum(geometry.drive_count for geometry in geometries) <= CSM_DRIVES
    assert sum(geometry.data for geometry in geometries) == int(name[-1], 16)
    assert len(geometries) == int(name[-2])


def test_allocation_groups_equal_published_figures() -> None:
    lun = xfs.compute_allocation_groups_of_2004(71_162_368, 256)
    assert (lun.count, lun.size) == (272, 261_632)
    assert lun.size % 256 == 0
    assert 262_144 - lun.size == 2 * 256  # two stripe units short of 1 GiB
    volume = xfs.compute_allocation_groups_of_2004(6_831_611_904 // 8, 512)
    assert (volume.blocks, volume.count, volume.size) == (853_951_488, 3258, 262_144)


def test_six_slices_equal_the_published_volume() -> None:
    assert 6 * 1_138_601_984 == 6_831_611_903 + 1
    assert 262_144 * 512 == xfs.LEGACY_LARGEST_LOG == 128 * MIB == 32_768 * 4096
    assert xfs.LEGACY_LOG == 16 * MIB


def test_log_grows_with_file_system_size_and_rate() -> None:
    tb = 10**12
    assert xfs.compute_log_size_and_reason(tb // 10, 1 << 40, 200e6)[0] == 64 * MIB
    assert xfs.compute_log_size_and_reason(tb // 10, 1 << 40, 400e6)[0] == 128 * MIB
    assert xfs.compute_log_size_and_reason(tb // 10, 1 << 40, None)[0] == 128 * MIB
    assert xfs.compute_log_size_and_reason(100 * tb, 1 << 40, 400e6)[0] == 2038 * MIB
    assert xfs.compute_log_size_and_reason(tb, 64 * MIB, 400e6)[0] == 48 * MIB  # an internal log lies in one group
    assert xfs.compute_log_size_and_reason(tb, 64 * MIB, 400e6, is_external=True)[0] == 465 * MIB


def test_log_unit_divides_the_segment() -> None:
    assert xfs.compute_log_unit(128 * KIB) == 128 * KIB
    assert xfs.compute_log_unit(512 * KIB) == 256 * KIB
    assert xfs.compute_log_unit(1664 * KIB) == 208 * KIB


@pytest.mark.skipif(MKFS is None, reason="mkfs.xfs is not installed")
@pytest.mark.parametrize("block", [1024, 4096])
def test_largest_log_is_the_last_that_mkfs_takes(tmp_path: Path, block: int) -> None:
    largest = xfs.compute_largest_log(block) // block
    for name, size in (("disk", 20 << 30), ("log", 4 << 30)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    codes = [
        subprocess.run(
            [str(MKFS), "-N", "-f", "-b", f"size={block}", "-d", f"file,name={tmp_path / 'disk'},size=20g",
             "-l", f"logdev={tmp_path / 'log'},size={blocks}b"], capture_output=True, check=False,
        ).returncode
        for blocks in (largest, largest + 1)
    ]  # fmt: skip
    assert codes == [0, 1]


@pytest.mark.skipif(MKFS is None, reason="mkfs.xfs is not installed")
@pytest.mark.parametrize(
    "size", [1 << 30, 5 << 30, 7_777_777_777 // 4096 * 4096, 300 << 30, 600 << 30, 5 << 40, 13 << 40]
)
@pytest.mark.parametrize(("unit", "width"), [(0, 0), (32, 256), (128, 512), (416, 416), (512, 3072)])
def test_allocation_groups_equal_mkfs_output(tmp_path: Path, size: int, unit: int, width: int) -> None:
    stripe = f",su={unit * 4096},sw={width // unit}" if unit else ""
    (tmp_path / "disk").touch()
    output = subprocess.run(
        [str(MKFS), "-N", "-d", f"file,name={tmp_path / 'disk'},size={size}{stripe}", "-l", "su=32k"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    data = output[: output.index("naming")]
    numbers = {name: int(value) for name, value in re.findall(r"(agcount|agsize|blocks)=(\d+)", data)}
    groups = xfs.compute_allocation_groups(size // 4096, unit, width)
    assert (groups.count, groups.size, groups.blocks) == (numbers["agcount"], numbers["agsize"], numbers["blocks"])


@given(
    disk_size=st.integers(1 << 30, 1 << 45),
    shares=st.lists(st.floats(0.01, 0.15), min_size=1, max_size=6),
    stripe=st.integers(1, 64).map(lambda segments: segments * 64 * KIB),
    with_remainder=st.booleans(),
)
def test_slices_are_aligned_and_do_not_overlap(
    disk_size: int, shares: list[float], stripe: int, with_remainder: bool
) -> None:
    pieces = [SliceRequest(str(index), share=share) for index, share in enumerate(shares)] + [
        SliceRequest("rest")
    ] * with_remainder
    step = compute_slice_alignment(stripe)
    try:
        extents = cut_slices(disk_size, pieces, step)
    except UserError:
        assert disk_size * min(shares) < 4 * step  # only a step larger than a slice is refused
        return
    assert all(
        extent.start % stripe == 0 and extent.start % MIB == 0 and extent.size % stripe == 0 for extent in extents
    )
    assert all(extent.end_byte <= other.start for extent, other in pairwise(extents))
    assert extents[0].start >= MIB
    assert extents[-1].end_byte <= disk_size - MIB
    if with_remainder:  # nothing is lost but the label, its copy, and what is no whole step
        assert sum(extent.size for extent in extents) > disk_size - MIB - 2 * step


@given(st.integers(20_000, 1 << 34), st.integers(1, 1024), st.integers(1, 24))
def test_allocation_groups_cover_all_blocks_but_a_tail(blocks: int, unit: int, data: int) -> None:
    groups = xfs.compute_allocation_groups(blocks, unit, unit * data)
    assert groups.size % unit == 0
    assert groups.blocks <= groups.count * groups.size
    assert 0 <= blocks - groups.blocks < 4096
    assert groups.size * 4096 <= 1 << 40
    old = xfs.compute_allocation_groups_of_2004(blocks, unit)
    assert (old.count - 1) * old.size < blocks <= old.count * old.size


@pytest.mark.parametrize("text", ["8", "0+1", "4x1", "8+4", "eight+1", "4*2", ""])
def test_invalid_geometry_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="is no geometry"):
        parse_geometry(text)


def test_oversized_slices_are_reported() -> None:
    with pytest.raises(UserError, match="Slices do not fit: home 2 GiB"):
        cut_slices(1 << 30, [SliceRequest("home", 2 << 30)], MIB)
    with pytest.raises(UserError, match="More than one slice takes the remainder"):
        cut_slices(1 << 30, [SliceRequest("home"), SliceRequest("tmp")], MIB)
    with pytest.raises(UserError, match="no RAID layout of CSM"):
        parse_csm_layout("RG199")
    with pytest.raises(UserError, match="no size that CSM prints"):
        parse_csm_size("a lot")
