# SPDX-License-Identifier: Apache-2.0
"""Parts of one role that differ in any attribute, and faults of drives, volumes and inodes: each with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.check_peer_attributes import find_attribute_differences
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage

_TIB = 2**40
MAPS = "".join(
    f"mpath{letter} (36005{letter}) dm-{number} ACME,LUN\n"
    f"size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
    f"`-+- policy='service-time 0' prio=50 status=active\n"
    f"  |- 2:0:0:{number} sdx{letter} 65:1 active ready running\n"
    f"  `- 3:0:0:{number} sdy{letter} 65:2 active ready running\n"
    for number, letter in enumerate("abc", start=10)
)
VOLUME = {"vg_name": "vg0", "lv_name": "work", "lv_attr": "-wi-ao----", "lv_size": str(4 * _TIB), "segtype": "striped",
          "stripes": "2", "stripe_size": "1048576", "seg_size": str(3 * _TIB),
          "devices": "/dev/sdp(0),/dev/sdq(0)"}  # fmt: skip
TARGETS = "UUID 1K-blocks Used Available Use% Mounted on\n" + "".join(
    f"fs1-OST{number:04x}_UUID 30000000000 6000000000 24000000000 20% /fs1[OST:{number}]\n" for number in range(4)
)
INODES = "UUID Inodes IUsed IFree IUse% Mounted on\n" + "".join(
    f"fs1-OST{number:04x}_UUID 28600000 1500000 27100000 6% /fs1[OST:{number}]\n" for number in range(4)
)


def find_faults(outputs: Mapping[str, str]) -> list[LayoutFault]:
    return list(check_outputs(outputs).faults)


def set_values(disk: str, **values: str) -> str:
    return "".join(f"/sys/block/{disk}/{name.replace('__', '/')}:{value}\n" for name, value in values.items())


def require_single(faults: list[LayoutFault], kind: str, location: str, *texts: str) -> None:
    assert [(fault.kind, fault.location) for fault in faults] == [(kind, location)]
    for text in texts:
        assert text in f"{faults[0].problem} {faults[0].cost}"


@pytest.mark.parametrize(
    ("name", "usual", "odd"),
    [("device__timeout", "30", "120"), ("queue__rq_affinity", "1", "2"), ("device__eh_timeout", "10", "60"),
     ("queue__wbt_lat_usec", "75000", "0"), ("device__new_in_linux_9", "a", "b")],
)  # fmt: skip
def test_attribute_of_single_array_member_is_reported(name: str, usual: str, odd: str) -> None:
    outputs = make_server_outputs()
    outputs["more"] = "".join(set_values(f"sd{letter}", **{name: usual}) for letter in "abcdefghij")
    assert find_faults(outputs) == []
    outputs["more"] = outputs["more"].replace(f"/sdc/{name.replace('__', '/')}:{usual}",
                                              f"/sdc/{name.replace('__', '/')}:{odd}")  # fmt: skip
    require_single(find_faults(outputs), "differs from its peers", "sdc", f"is {odd}", f"it is {usual}", "9 of 10")


def test_two_members_without_majority_are_both_reported() -> None:
    outputs = {"mdstat": "md1 : active raid1 sdb[1] sda[0]\n      100 blocks super 1.2 [2/2] [UU]\n"
               "      bitmap: 1/8 pages [4KB], 65536KB chunk\n", "sysfs": set_values("sda", device__timeout="30")
               + set_values("sdb", device__timeout="180")}  # fmt: skip
    (fault,) = find_faults(outputs)
    assert "30 on sda, 180 on sdb" in fault.problem


def test_array_with_layout_of_its_peers_is_sound() -> None:
    outputs = {
        f"mdadm {number}": make_server_outputs()["mdadm md5"].replace("/dev/sd", f"/dev/sd{number}")
        .replace("/dev/md5", f"/dev/md{number}") for number in range(4)
    }  # fmt: skip
    assert find_faults(outputs) == []
    outputs["mdadm 2"] = outputs["mdadm 2"].replace("left-symmetric", "right-asymmetric")
    require_single(
        find_faults(outputs), "differs from its peers", "md2", "layout is right-asymmetric", "left-symmetric"
    )


def test_chunk_of_array_differs_from_its_peers() -> None:
    outputs = {
        f"mdadm {number}": make_server_outputs()["mdadm md5"].replace("/dev/sd", f"/dev/sd{number}")
        .replace("/dev/md5", f"/dev/md{number}") for number in range(4)
    }  # fmt: skip
    outputs["mdadm 1"] = outputs["mdadm 1"].replace("256K", "128K")
    require_single(find_faults(outputs), "differs from its peers", "md1", "chunk is 131072")


def test_second_parity_on_one_drive_is_reported() -> None:
    outputs = make_server_outputs()
    outputs["mdadm md5"] = outputs["mdadm md5"].replace("left-symmetric", "left-symmetric-6")
    require_single(find_faults(outputs), "parity on one drive", "md5", "second parity")


def test_layout_is_read_from_mdstat_and_sysfs() -> None:
    mdstat = (
        "md1 : active raid6 sda[0] sdb[1] sdc[2] sdd[3](W) sde[4](S)\n      100 blocks super 1.2 level 6, 256k"
        " chunk, algorithm {} [4/4] [UUUU]\n      bitmap: 1/8 pages [4KB], 65536KB chunk\n"
    )
    for number, layout in ((2, None), (20, "parity-first-6")):
        problems = [fault.problem for fault in find_faults({"mdstat": mdstat.replace("(W)", "").format(number)})]
        assert problems == [] if layout is None else layout in problems[0]
    (fault,) = find_faults({"mdstat": mdstat.format(2)})
    assert (fault.kind, fault.location) == ("write-mostly member", "md1")
    sysfs = "/sys/block/md1/md/level:raid6\n/sys/block/md1/md/layout:18\n"
    (fault,) = find_faults({"sysfs": sysfs})
    assert "left-symmetric-6" in fault.problem


def test_write_mostly_member_is_sound_next_to_flash_only() -> None:
    detail = (
        make_server_outputs()["mdadm md5"].replace("raid6", "raid1").replace("Raid Devices : 10", "Raid Devices : 2")
    )
    head, rows = detail.replace("Active Devices : 10", "Active Devices : 2").split("RaidDevice State\n")
    detail = head + "RaidDevice State\n" + "\n".join(rows.splitlines()[:2]) + "\n"
    detail = detail.replace("active sync   /dev/sdb", "active sync writemostly   /dev/sdb")
    flash = "/sys/block/sda/queue/rotational:0\n/sys/block/sdb/queue/rotational:{}\n"
    faults = find_faults({"mdadm": detail, "sysfs": flash.format(0)})
    require_single(faults, "write-mostly member", "md5", "sdb", "adds nothing to the rate of reading")
    kinds = {fault.kind for fault in find_faults({"mdadm": detail, "sysfs": flash.format(1)})}
    assert "write-mostly member" not in kinds


@pytest.mark.parametrize(("zones", "count"), [("none", 0), ("host-managed", 1), ("host-aware", 1)])
def test_zoned_drive_in_array_is_reported(zones: str, count: int) -> None:
    outputs = make_server_outputs()
    outputs["more"] = "".join(
        set_values(f"sd{letter}", queue__zoned=zones if letter == "d" else "none") for letter in "abcdefghij"
    )
    faults = find_faults(outputs)
    assert [(fault.kind, fault.location) for fault in faults] == [("zoned drive", "sdd")] * count


def test_unused_zoned_drive_is_sound() -> None:
    disks = [{"name": "sdz", "kname": "sdz", "type": "disk", "size": _TIB, "zoned": "host-managed"}]
    assert find_faults({"lsblk": json.dumps({"blockdevices": disks})}) == []


@pytest.mark.parametrize(("recovery", "timeout", "is_fault"), [
    ("70 (7.0 seconds)", "30", False), ("350 (35.0 seconds)", "30", True), ("Disabled", "30", True),
    ("Disabled", "181", False)])  # fmt: skip
def test_timeout_is_compared_with_error_recovery(recovery: str, timeout: str, is_fault: bool) -> None:
    outputs = make_server_outputs()
    for letter in "abcdefghij":
        outputs[f"host.txt, smartctl -l scterc /dev/sd{letter}"] = (
            f"SCT Error Recovery Control:\n           Read: {recovery:>6}\n          Write: {recovery:>6}\n"
        )
    outputs["more"] = "".join(set_values(f"sd{letter}", device__timeout=timeout) for letter in "abcdefghij")
    faults = find_faults(outputs)
    locations = ", ".join(f"sd{letter}" for letter in "abcdefghij")
    assert [(fault.kind, fault.location) for fault in faults] == (
        [("timeout below error recovery", locations)] if is_fault else [])  # fmt: skip


def test_bad_blocks_and_data_offset_of_member_are_reported() -> None:
    examine = "".join(
        f"/dev/sd{letter}:\n          Magic : a92b4efc\n        Version : 1.2\n     Raid Level : raid6\n"
        "   Raid Devices : 10\n    Data Offset : 264192 sectors\n  Bad Block Log : 512 entries available at offset 72"
        " sectors\n" for letter in "abcdefghij"
    )  # fmt: skip
    outputs = make_server_outputs() | {"examine": examine}
    assert find_faults(outputs) == []
    outputs["examine"] = examine.replace("/dev/sdb:", "/dev/sdb: ").replace("264192", "2048", 1)
    outputs["examine"] = examine.replace("264192", "2048", 1)
    require_single(find_faults(outputs), "differs from its peers", "sda", "data offset is 1048576")
    outputs["examine"] = examine.replace("72 sectors", "72 sectors - bad blocks present.", 1)
    require_single(find_faults(outputs), "bad blocks of a member", "sda")


def test_map_that_differs_from_its_peers_is_reported() -> None:
    assert find_faults({"multipath": MAPS}) == []
    text = MAPS.replace("service-time 0", "queue-length 0", 1)
    require_single(find_faults({"multipath": text}), "differs from its peers", "dm-10", "policy is queue-length 0")
    extra = MAPS + "  `- 4:0:0:12 sdzc 65:9 active ready running\n"
    require_single(find_faults({"multipath": extra}), "more paths than others", "dm-12", "has 3 paths; others have 2")
    other = MAPS.replace("mpathc (36005c) dm-12 ACME,LUN", "mpathc (36005c) dm-12 OTHER,BOX") + extra[len(MAPS) :]
    assert find_faults({"multipath": other}) == []


def test_map_with_fewer_paths_of_two_is_reported() -> None:
    two = "mpatha" + MAPS.split("mpatha")[1].split("mpathc")[0]
    text = two + "  `- 4:0:0:11 sdzb 65:9 active ready running\n"
    require_single(find_faults({"multipath": text}), "fewer paths than others", "dm-10", "has 2 paths; others have 3")


def test_path_of_other_size_is_reported() -> None:
    disks = [{"name": f"sd{path}{letter}", "kname": f"sd{path}{letter}", "type": "disk", "size": 10 * _TIB}
             for letter in "abc" for path in "xy"]  # fmt: skip
    assert find_faults({"multipath": MAPS, "lsblk": json.dumps({"blockdevices": disks})}) == []
    disks[2]["size"] = 9 * _TIB
    (fault,) = find_faults({"multipath": MAPS, "lsblk": json.dumps({"blockdevices": disks})})
    assert (fault.kind, fault.location) == ("differs from its peers", "sdxb")
    assert "size is not the same on all paths of mpathb" in fault.problem


@pytest.mark.parametrize(("tail", "text"), [
    ({"devices": "/dev/sdp(9),/dev/sdz(0)"}, "on sdp, sdz"),
    ({"segtype": "linear", "stripes": "1", "stripe_size": "0", "devices": "/dev/sdp(9)"}, "linear on sdp"),
    ({"stripe_size": "65536"}, "stripe size 64 KiB")])  # fmt: skip
def test_other_tail_segment_of_volume_is_reported(tail: dict[str, str], text: str) -> None:
    same = VOLUME | {"seg_size": str(_TIB), "devices": "/dev/sdp(99),/dev/sdq(99)"}
    assert find_faults({"lvs": json.dumps({"report": [{"seg": [VOLUME, same]}]})}) == []
    faults = find_faults({"lvs": json.dumps({"report": [{"seg": [VOLUME, same | tail]}]})})
    require_single(faults, "unequal segments of a volume", "vg0-work", "segment 2 of 1 TiB", text)


def test_segments_are_read_from_table_of_lvs() -> None:
    text = """  LV   VG  Attr       LSize Pool Origin Data%  #Str Stripe Devices
  work vg0 -wi-ao---- 4.00t                       2  1.00m /dev/sdp(0),/dev/sdq(0)
  work vg0 -wi-ao---- 4.00t                       1     0  /dev/sdp(99)
"""
    require_single(find_faults({"lvs": text}), "unequal segments of a volume", "vg0-work", "the first is striped of 2")


def test_segments_are_read_from_dmsetup() -> None:
    numbers = [{"name": name, "kname": name, "type": "disk", "size": _TIB, "maj:min": f"8:{16 * position}"}
               for position, name in enumerate(("sdp", "sdq"))]  # fmt: skip
    table = "vg0-work: 0 6442450944 striped 2 2048 8:0 2048 8:16 2048\nvg0-work: 6442450944 2048 linear 8:16 99\n"
    faults = find_faults({"lsblk": json.dumps({"blockdevices": numbers}), "dmsetup": table})
    require_single(faults, "unequal segments of a volume", "vg0-work", "linear on sdq", "fewer members")
    origin = "vg0-home-real: 0 2048 linear 8:16 2048\nvg0-home: 0 2048 snapshot-origin 253:1\n"
    require_single(find_faults({"dmsetup": origin}), "snapshot slows its origin", "vg0-home")
    require_single(find_faults({"dmsetup": "x: 0 2048 linear 8:16 0\nx: 2048 8 error \n"}), "target error", "x")


def test_origin_of_snapshot_is_reported() -> None:
    linear = VOLUME | {"segtype": "linear", "stripes": "1", "stripe_size": "0", "devices": "/dev/sdp(0)"}
    origin, snapshot = linear | {"lv_attr": "owi-aos---"}, linear | {
        "lv_name": "work-snap", "lv_attr": "swi-a-s---", "origin": "work", "data_percent": "12.50"}  # fmt: skip
    faults = find_faults({"lvs": json.dumps({"report": [{"seg": [origin, snapshot]}]})})
    require_single(faults, "snapshot slows its origin", "vg0-work", "vg0-work--snap", "three transfers")
    full = snapshot | {"data_percent": "93.10"}
    kinds = {fault.kind for fault in find_faults({"lvs": json.dumps({"report": [{"seg": [origin, full]}]})})}
    assert kinds == {"snapshot almost full"}  # which explains the slow origin


def test_target_with_other_size_or_inodes_is_reported() -> None:
    assert find_faults({"df": TARGETS, "inodes": INODES}) == []
    few = INODES.replace("OST0002_UUID 28600000 1500000 27100000", "OST0002_UUID 7150000 375000 6775000")
    faults = find_faults({"df": TARGETS, "inodes": few})
    require_single(faults, "targets differ", "fs1-OST0002", "7,150,000", "28,600,000")
    small = TARGETS.replace("OST0001_UUID 30000000000", "OST0001_UUID 15000000000")
    require_single(find_faults({"df": small}), "targets differ", "fs1-OST0001", "size")


def test_inodes_that_end_before_space_are_reported() -> None:
    few = INODES.replace(" 28600000 1500000 27100000", " 2860000 1500000 1360000")
    faults = find_faults({"df": TARGETS, "inodes": few})
    assert {fault.kind for fault in faults} == {"too few inodes"}
    assert "2,860,000 inodes" in faults[0].problem
    zfs = "Target: fs1-OST{0:04x}\nLustre FS:  fs1\nMount type: zfs\nParameters: mgsnode=10.0.0.1@o2ib\n"
    labels = {f"tunefs {number}": zfs.format(number) for number in range(4)}
    assert find_faults({"df": TARGETS, "inodes": few, **labels}) == []


def test_parameter_of_single_target_is_reported() -> None:
    lines = [f"obdfilter.fs1-OST{number:04x}.sync_on_lock_cancel=never" for number in range(4)]
    assert find_faults({"lctl": "\n".join(lines)}) == []
    lines[3] = lines[3].replace("never", "always")
    faults = find_faults({"lctl": "\n".join(lines)})
    require_single(faults, "differs from its peers", "fs1-OST0003", "sync_on_lock_cancel is always", "never")


def test_properties_of_pool_are_read_from_zpool_get() -> None:
    outputs = make_server_outputs()
    outputs["zpool get"] = "NAME  PROPERTY  VALUE  SOURCE\ntank  failmode  panic  local\n"
    outputs["zfs get"] = "NAME  PROPERTY  VALUE  SOURCE\ntank/home  sync  disabled  local\n"
    assert {fault.kind for fault in find_faults(outputs)} == {"panic after an error", "synchronous writes are not"}


def test_stray_signature_of_member_is_reported() -> None:
    outputs = make_server_outputs()
    rows = json.loads(outputs["lsblk"])["blockdevices"]
    next(row for row in rows if row["name"] == "sdd")["fstype"] = "LVM2_member"
    outputs["lsblk"] = json.dumps({"blockdevices": rows})
    require_single(find_faults(outputs), "differs from its peers", "sdd", "LVM2_member", "linux_raid_member")


@pytest.mark.parametrize("checker", ["faulty", "shaky", "undef"])
def test_active_path_that_does_not_work_is_reported(checker: str) -> None:
    text = MAPS.replace("sdyb 65:2 active ready", f"sdyb 65:2 active {checker}")
    require_single(find_faults({"multipath": text}), "path failed", "dm-11 sdyb", checker)
    assert find_faults({"multipath": MAPS.replace("sdyb 65:2 active ready", "sdyb 65:2 active ghost")}) == []


def test_very_long_timeout_is_reported() -> None:
    for seconds, count in (("600", 0), ("3600", 1)):
        faults = find_faults({"sysfs": set_values("sda", device__timeout=seconds)})
        assert [fault.kind for fault in faults] == ["timeout too long"] * count


def test_label_of_two_file_systems_is_reported() -> None:
    disks = [{"name": name, "type": "disk", "size": _TIB, "fstype": "xfs", "label": "scratch", "uuid": f"1-{name}"}
             for name in ("sdx", "sdy")]  # fmt: skip
    faults = find_faults({"lsblk": json.dumps({"blockdevices": disks})})
    require_single(faults, "one label twice", "sdx, sdy", "label scratch")
    disks[1]["label"] = "home"
    assert find_faults({"lsblk": json.dumps({"blockdevices": disks})}) == []


@pytest.mark.parametrize(("inodes", "count"), [(400_000_000, 0), (16_000_000, 0), (1_000_000, 1)])
def test_inodes_of_metadata_target_fit_its_space(inodes: int, count: int) -> None:
    size = "UUID 1K-blocks Used Available Use% Mounted on\nfs1-MDT0000_UUID 1000000000 9000 999991000 1% /fs1[MDT:0]\n"
    numbers = f"UUID Inodes IUsed IFree IUse% Mounted on\nfs1-MDT0000_UUID {inodes} 300 {inodes - 300} 1% /fs1[MDT:0]\n"
    faults = find_faults({"df": size, "inodes": numbers})
    assert [(fault.kind, fault.location) for fault in faults] == [("too few inodes", "fs1-MDT0000")] * count


def test_two_targets_with_other_labels_are_reported() -> None:
    label = "Target: fs1-OST000{0}\nIndex: {0}\nLustre FS:  fs1\nMount type: ldiskfs\nPersistent mount opts: {1}\n" \
        "Parameters: mgsnode=10.0.0.1@o2ib\n"  # fmt: skip
    outputs = {str(number): label.format(number, "errors=remount-ro") for number in range(2)}
    assert find_faults(outputs) == []
    outputs["1"] = label.format(1, "errors=panic")
    require_single(find_faults(outputs), "targets differ", "fs1-OST0001", "errors=panic", "errors=remount-ro")


def test_map_without_path_is_reported() -> None:
    text = "\n".join(line for line in MAPS.splitlines() if "sdxb" not in line and "sdyb" not in line)
    require_single(find_faults({"multipath": text}), "no active path", "dm-11", "lists no path of mpathb")


def test_state_of_alua_and_counters_of_paths_differ_without_fault() -> None:
    sysfs = "".join(
        set_values(f"sd{path}{letter}", device__access_state=state, device__device_busy=count, device__numa_node=count)
        for letter in "abc" for path, state, count in (("x", "active/optimized", "1"), ("y", "active/unoptimized", "0"))
    )  # fmt: skip
    assert find_faults({"multipath": MAPS, "sysfs": sysfs}) == []


def test_fault_of_a_map_is_not_repeated_by_its_peers() -> None:
    text = MAPS.replace("features='1 queue_if_no_path'", "features='0'", 1)
    require_single(find_faults({"multipath": text}), "no queue without paths", "dm-10")


def test_fault_of_a_similar_name_hides_no_difference() -> None:
    timeouts = {f"sd{letter}": "30" for letter in "abcdefghij"} | {"sda": "60", "sdaa": "5"}
    text = "".join(set_values(disk, device__timeout=seconds) for disk, seconds in timeouts.items())
    faults = find_faults(make_server_outputs() | {"more": text})
    assert {(fault.kind, fault.location) for fault in faults} == {
        ("differs from its peers", "sda"), ("timeout too short", "sdaa")}  # fmt: skip


def test_counters_of_paths_are_not_compared() -> None:
    text = "".join(f"pm{number}d1L1 %rd maxor nor wait avg rd avg wrt sz/GBs\n{number} {5 + (number > 2)} 4 0 1 2 583\n"
                   f"fc{number}d1L1 pri active 866071 812707 0\n" for number in (1, 2, 3))  # fmt: skip
    assert "differs from its peers" not in {fault.kind for fault in find_faults({"pm": text})}


def test_preferred_paths_that_are_ready_are_not_called_down() -> None:
    text = make_server_outputs()["multipath"]
    for old, new in (
        ("prio=50 status=active", "prio=50 status=enabled"),
        ("prio=10 status=enabled", "prio=10 status=active"),
    ):
        assert old in text
        text = text.replace(old, new)
    (fault,) = find_faults(make_server_outputs() | {"multipath": text})
    assert (fault.kind, fault.problem) == (
        "on alternate paths", "its preferred paths are ready, but others are in use")  # fmt: skip


@pytest.mark.parametrize("identity", ["wwn", "serial"])
def test_path_to_another_lun_is_reported_without_a_value_to_set(identity: str) -> None:
    disks = [
        {"name": f"sd{side}{letter}", "type": "disk", "size": 10 * _TIB, identity: f"lun-{letter}"}
        for letter in "abc"
        for side in "xy"
    ]
    outputs = {"multipath": MAPS, "lsblk": json.dumps({"blockdevices": disks})}
    assert find_faults(outputs) == []
    disks[1][identity] = "lun-b"
    (fault,) = find_faults(outputs | {"lsblk": json.dumps({"blockdevices": disks})})
    assert fault.kind == "path to another LUN"
    assert "lun-b" in fault.problem
    assert "value of the others" not in fault.remedy


@pytest.mark.parametrize(("unit", "count"), [(256 << 10, 0), (None, 1)])
def test_starts_of_physical_volumes_follow_their_stripes(unit: int | None, count: int) -> None:
    """A mirror has no stripe, so that data may begin elsewhere than on the other array."""

    def describe(name: str, start: int, stripe_unit: int | None) -> ObservedDisk:
        settings = {"group_of_pv": "data", "data_start": str(start), "extent_bytes": "4194304"}
        return ObservedDisk(name, "md", level="raid6" if stripe_unit else "raid1", unit=stripe_unit,
                            data=10 if stripe_unit else None, settings=settings)  # fmt: skip

    disks = {"md0": describe("md0", 5 << 20, unit), "md1": describe("md1", 1 << 20, None)}
    results = find_attribute_differences(ObservedStorage((), disks), ())
    faults = [each for each in results if isinstance(each, LayoutFault) and each.attributes == ("data_start",)]
    assert len(faults) == count
