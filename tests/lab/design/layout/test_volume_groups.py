# SPDX-License-Identifier: Apache-2.0
"""Volumes of LVM in their group: stripes over equal devices, starts of extents, thin pools, and names of devices."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage, VolumeSegment
from sonde.design.layout.live.saved_output import read_collector_output, read_saved_output

TIB = 1 << 40
MIB = 1 << 20


def make_row(volume: str, size: int, **members: str) -> dict[str, str]:
    return {"lv_name": volume, "vg_name": "vg", "lv_attr": "-wi-ao----", "lv_size": str(size), "seg_size": str(size),
            "segtype": "linear", "stripes": "1", "stripe_size": "0", "devices": ""} | members  # fmt: skip


def find_faults(*rows: dict[str, str], starts: tuple[int, ...] = (8 * MIB,) * 4) -> list[tuple[str, str, str]]:
    """The faults of volumes in the group vg of four LUNs of 3 TiB with stripes of 8 MiB."""
    luns = [{"name": f"lun{number}", "kname": f"dm-{number}", "type": "mpath", "size": 3 * TIB, "rota": True,
             "min-io": MIB, "opt-io": 8 * MIB} for number in range(4)]  # fmt: skip
    volumes = [{"pv_name": f"/dev/mapper/lun{number}", "vg_name": "vg", "pe_start": str(start),
                "vg_extent_size": "4194304"} for number, start in enumerate(starts)]  # fmt: skip
    parts = {"lsblk --json --bytes": {"blockdevices": luns}, "lvs --reportformat json": {"report": [{"seg": rows}]},
             "pvs --reportformat json": {"report": [{"pv": volumes}]}}  # fmt: skip
    text = "".join(f"=== sonde layout collect: {command} ===\n{json.dumps(output)}\n"
                   for command, output in parts.items())  # fmt: skip
    faults = check_layout(join_observations(read_collector_output(text, "host"))).faults
    return [(fault.kind, fault.location, fault.problem) for fault in faults]


def name_devices(*numbers: int) -> str:
    return ",".join(f"/dev/mapper/lun{number}(0)" for number in numbers)


STRIPED = make_row("data", 12 * TIB, segtype="striped", stripes="4", stripe_size=str(8 * MIB),
                   devices=name_devices(0, 1, 2, 3))  # fmt: skip
POOL = make_row("pool", 8 * TIB, lv_attr="twi-aotz--", segtype="thin-pool", devices="pool_tdata(0)")
THIN = make_row("home", 6 * TIB, lv_attr="Vwi-aotz--", segtype="thin", stripes="0", pool_lv="pool")


def test_stripes_over_all_equal_luns_have_no_fault() -> None:
    assert find_faults(STRIPED) == []


def test_linear_volume_over_equal_luns_is_reported_once() -> None:
    rows = [make_row("data", 12 * TIB, seg_size=str(3 * TIB), devices=name_devices(number)) for number in range(4)]
    ((kind, location, problem),) = find_faults(*rows)
    assert (kind, location) == ("volume not striped", "vg-data")
    assert problem == "vg-data uses 4 equal devices one after another (linear): lun0, lun1, lun2, lun3"


def test_small_linear_volume_over_two_luns_has_no_fault() -> None:
    rows = [make_row("root", 2 << 30, seg_size=str(1 << 30), devices=name_devices(number)) for number in range(2)]
    assert find_faults(*rows) == []


def test_stripes_over_half_of_the_equal_luns_are_reported() -> None:
    half = STRIPED | {"stripes": "2", "devices": name_devices(0, 1), "lv_size": str(6 * TIB)}
    ((kind, _, problem),) = find_faults(half)
    assert kind == "stripes over few devices"
    assert "over 2 of the 4 equal physical volumes of its group; lun2, lun3 hold no volume" in problem
    other = make_row("archive", 3 * TIB, devices=name_devices(2)), make_row("home", 3 * TIB, devices=name_devices(3))
    assert find_faults(half, *other) == []


@pytest.mark.parametrize(("unit", "kinds"), [
    (64 << 10, ["small stripes of a volume"]), (4 << 10, ["small stripes of a volume"]), (8 * MIB, []),
    (16 * MIB, [])])  # fmt: skip
def test_stripe_size_below_a_stripe_of_the_luns_is_reported(unit: int, kinds: list[str]) -> None:
    assert [kind for kind, *_ in find_faults(STRIPED | {"stripe_size": str(unit)})] == kinds


def test_extents_between_stripes_are_reported_once() -> None:
    ((kind, location, problem),) = find_faults(STRIPED, starts=(192 << 10, 8 * MIB, 8 * MIB, 8 * MIB))
    assert (kind, location) == ("volumes between stripes", "dm-0")
    assert "extents begin at 192 KiB (pe_start), within a stripe of 8 MiB" in problem


@pytest.mark.parametrize(("percent", "kinds"), [("97.12", ["thin pool metadata almost full"]), ("21.33", [])])
def test_full_metadata_of_a_thin_pool_is_reported(percent: str, kinds: list[str]) -> None:
    rows = (POOL | {"metadata_percent": percent, "data_percent": "44.20"}, THIN)
    assert [kind for kind, *_ in find_faults(*rows)] == kinds


def test_full_metadata_in_the_table_of_lvs_is_reported() -> None:
    text = ("  LV    VG   Attr       LSize  Pool Origin Data%  Meta%  Move Log Cpy%Sync Convert\n"
            "  pool  vg   twi-aotz--  8.00t             44.20  97.12                           \n")  # fmt: skip
    kinds = [fault.kind for fault in check_layout(read_saved_output(text, "lvs")).faults]
    assert kinds == ["thin pool metadata almost full"]


@pytest.mark.parametrize(("sizes", "kinds"), [
    ((6, 6), []), ((15,), ["thin pool overcommitted"]), ((6, 6, 6), ["thin pool overcommitted"])])  # fmt: skip
def test_thin_volumes_far_beyond_their_pool_are_reported(sizes: tuple[int, ...], kinds: list[str]) -> None:
    rows = [THIN | {"lv_name": f"home{number}", "lv_size": str(size * TIB)} for number, size in enumerate(sizes)]
    assert [kind for kind, *_ in find_faults(POOL, *rows)] == kinds


@pytest.mark.parametrize(("attributes", "kinds"), [
    ("swi-I-s---", ["invalid snapshot"]), ("Vwi-c-tz--", ["thin pool needs a check"]),
    ("-wi-s-----", ["suspended volume"]), ("Owi-Mos---", ["merge of a snapshot failed"])])  # fmt: skip
def test_state_of_a_volume_is_explained(attributes: str, kinds: list[str]) -> None:
    faults = find_faults(make_row("old", TIB, lv_attr=attributes))
    assert [kind for kind, *_ in faults if kind != "snapshot slows its origin"] == kinds


def test_almost_full_snapshot_explains_the_slow_origin() -> None:
    rows = (make_row("data", TIB, lv_attr="owi-aos---", devices=name_devices(0)),
            make_row("old", TIB, lv_attr="swi-a-s---", origin="data", data_percent="91.20"))  # fmt: skip
    assert [(kind, location) for kind, location, _ in find_faults(*rows)] == [("snapshot almost full", "vg-old")]


def test_copies_that_are_not_in_sync_are_a_rebuild() -> None:
    row = make_row("data", TIB, lv_attr="rwi-aor---", segtype="raid1", copy_percent="43.12")
    assert [kind for kind, *_ in find_faults(row)] == ["rebuilding"]
    assert find_faults(row | {"copy_percent": "100.00"}) == []


@pytest.mark.parametrize(("text", "names"), [
    ("VERSION=1.1.3\nIDTYPE=devname IDNAME=/dev/sdq DEVNAME=/dev/sdq PVID=a\n", ["sdq"]),
    ("VERSION=1.1.3\nIDTYPE=sys_wwid IDNAME=naa.5000 DEVNAME=/dev/sdq PVID=a\n", []),
    ('filter=["a|^/dev/sda2$|","a|/dev/dm-3|","r|.*|"]\nglobal_filter=["a|.*|"]\n', ["sda2, dm-3"]),
    ('filter=["a|^/dev/mapper/lun[0-9]$|","r|^/dev/sd[a-z]|","r|.*|"]\nglobal_filter=["a|.*|"]\n', []),
    ('filter=["a|^/dev/sda2$|"]\nglobal_filter=["a|.*|"]\n', [])])  # fmt: skip
def test_names_of_the_kernel_for_lvm_are_reported(text: str, names: list[str]) -> None:
    faults = check_layout(read_saved_output(text, "host")).faults
    assert [fault.location for fault in faults if fault.kind == "unstable names for LVM"] == names


@pytest.mark.parametrize(("member", "count"), [
    (ObservedDisk("md0", "md", 8 * TIB, level="raid6", data=8, unit=128 << 10), 1),
    (ObservedDisk("md0", "md", 8 * TIB, level="raid10", data=4, unit=512 << 10), 0),
    (ObservedDisk("md0", "disk", 8 * TIB, flash=True,
                  queue={"minimum_io_size": "4096", "optimal_io_size": "131072"}), 0)])  # fmt: skip
def test_short_stripes_over_devices_without_parity_are_sound(member: ObservedDisk, count: int) -> None:
    segment = VolumeSegment("striped", 2, 64 << 10, ("md0", "md1"))
    volume = ObservedDisk("vg-data", "lvm", 16 * TIB, segments=(segment,))
    storage = ObservedStorage((), {"md0": member, "md1": replace(member, name="md1"), "vg-data": volume})
    kinds = [fault.kind for fault in check_layout(storage).faults]
    assert kinds.count("small stripes of a volume") == count


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (192 << 10, "192 KiB (pe_start), within a stripe"),
        (MIB + 512, "1,024 KiB + 512 B"),
        (MIB + 2048, "1,026 KiB"),
        (MIB, ""),
    ],
)
def test_extents_within_a_stripe_of_an_array_are_one_fault(start: int, problem: str) -> None:
    members = tuple(f"sd{letter}1" for letter in "cdefgh")
    parts = {name: ObservedDisk(name, "part", 2 * TIB, MIB, name[:-1]) for name in members}
    array = ObservedDisk("md1", "md", 8 * TIB, members=members, level="raid6", geometry="4+2", data=4, unit=256 << 10,
                         settings={"data_start": str(start)})  # fmt: skip
    volume = ObservedDisk("dm-0", "lvm", 8 * TIB, members=("md1",), level="linear")
    storage = ObservedStorage((), {**parts, "md1": array, "dm-0": volume})
    problems = [fault.problem for fault in check_layout(storage).faults if fault.kind == "volumes between stripes"]
    assert [problem in each for each in problems] == [True] * bool(problem)


@pytest.mark.parametrize(("start", "count"), [(MIB + 512, 1), (MIB, 0)])
def test_extents_within_a_sector_of_a_drive_are_reported(start: int, count: int) -> None:
    drive = ObservedDisk("sdc", "disk", TIB, queue={"physical_block_size": "4096"}, settings={"data_start": str(start)})
    kinds = [fault.kind for fault in check_layout(ObservedStorage((), {"sdc": drive})).faults]
    assert kinds.count("volumes between stripes") == count


@pytest.mark.parametrize(("unit", "kind"), [
    (64 << 10, "small stripes of a volume"), (1536 << 10, "unit does not fit the stripe")])  # fmt: skip
def test_unit_of_a_volume_over_arrays_is_one_fault(unit: int, kind: str) -> None:
    array = ObservedDisk("md0", "md", 8 * TIB, level="raid6", data=8, unit=128 << 10)
    segment = VolumeSegment("striped", 2, unit, ("md0", "md1"))
    volume = ObservedDisk("vg-data", "lvm", 16 * TIB, members=("md0", "md1"), level="raid0", unit=unit, data=2,
                          segments=(segment,))  # fmt: skip
    storage = ObservedStorage((), {"md0": array, "md1": replace(array, name="md1"), "vg-data": volume})
    kinds = [fault.kind for fault in check_layout(storage).faults]
    assert [each for each in kinds if "strip" in each and each != "stripe cache too small"] == [kind]
