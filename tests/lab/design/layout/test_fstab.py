# SPDX-License-Identifier: Apache-2.0
"""Lines of /etc/fstab against devices and mounts, and what drives say of their health."""

from __future__ import annotations

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_collector_output

FSTAB = """# /etc/fstab
UUID=1111-xfs  /scratch  xfs   noatime,largeio  0 0
UUID=2222-ext4 /home     ext4  defaults,noatime 0 2
UUID=9999-old  /old      xfs   noauto           0 0
tmpfs          /tmp      tmpfs defaults         0 0
"""


def find_faults(fstab: str) -> list[LayoutFault]:
    return list(check_outputs(make_server_outputs() | {"fstab": fstab}).faults)


def test_sound_fstab_has_no_fault_in_its_comparisons() -> None:
    verdict = check_outputs(make_server_outputs() | {"fstab": FSTAB})
    assert verdict.faults == ()
    lines = [item.location for item in verdict.checked_items if item.subject == "the line of fstab"]
    assert lines == ["/scratch", "/home"]


@pytest.mark.parametrize(("option", "count"), [("logbsize=32k", 0), ("logbsize=256k", 1)])
def test_default_printed_by_the_kernel_is_no_difference(option: str, count: int) -> None:
    outputs = make_server_outputs() | {"fstab": FSTAB}
    (name,) = [name for name, text in outputs.items() if "/scratch" in text and "noatime" in text and name != "fstab"]
    outputs[name] = outputs[name].replace("largeio", f"largeio,{option}")
    kinds = [fault.kind for fault in check_outputs(outputs).faults]
    assert kinds.count("fstab differs from the mount") == count


@pytest.mark.parametrize(("written", "problem"), [
    ("256k", ""), ("262144", ""), ("64k", "fstab mounts it with logbsize=64k (mounted now is logbsize=256k)"),
    ("32k", "fstab mounts it with logbsize=32k (mounted now is logbsize=256k)")])  # fmt: skip
def test_other_size_of_log_buffers_is_reported_with_both(written: str, problem: str) -> None:
    fstab = FSTAB.replace("noatime,largeio", f"noatime,largeio,logbsize={written}")
    outputs = make_server_outputs() | {"fstab": fstab}
    outputs = {name: text if name == "fstab" else text.replace("largeio", "largeio,logbsize=256k")
               for name, text in outputs.items()}  # fmt: skip
    faults = [each.problem for each in check_outputs(outputs).faults if each.kind == "fstab differs from the mount"]
    assert faults == [problem] * bool(problem)


@pytest.mark.parametrize(("old", "new", "kind", "location", "text"), [
    ("1111-xfs", "1111-xf5", "fstab names no device", "/scratch", "UUID=1111-xf5, which no device has"),
    ("noatime,largeio", "noatime", "fstab differs from the mount", "/scratch", "without largeio"),
    ("defaults,noatime", "noatime,nobarrier", "fstab differs from the mount", "/home", "with nobarrier"),
    ("9999-old  /old ", "9999-old  /home", "two lines of fstab", "/home", "2 lines")])  # fmt: skip
def test_wrong_line_of_fstab_is_reported(old: str, new: str, kind: str, location: str, text: str) -> None:
    (fault,) = find_faults(FSTAB.replace(old, new))
    assert (fault.kind, fault.location) == (kind, location)
    assert text in fault.problem


@pytest.mark.parametrize("source", ["/dev/dm-4", "/dev/sdb", "/dev/sdb1"])
def test_name_of_the_kernel_in_fstab_is_reported(source: str) -> None:
    (fault,) = find_faults(FSTAB.replace("UUID=1111-xfs", source))
    assert (fault.kind, fault.location) == ("fstab names an unstable device", "/scratch")
    assert f"fstab mounts {source}" in fault.problem


def test_line_of_another_device_than_the_mount_is_reported() -> None:
    (fault,) = find_faults(FSTAB.replace("UUID=2222-ext4 /home     ext4", "UUID=1111-xfs /home ext4"))
    assert (fault.kind, fault.location) == ("fstab names another device", "/home")
    assert fault.problem == "fstab mounts UUID=1111-xfs, which is md5; mounted now is md6"


@pytest.mark.parametrize(("name", "problems"), [
    ("scratch", []), ("scrach", ["fstab mounts /dev/disk/by-label/scrach, which no device has"])])  # fmt: skip
def test_link_that_does_not_exist_is_reported(name: str, problems: list[str]) -> None:
    fstab = FSTAB.replace("UUID=1111-xfs", f"/dev/disk/by-label/{name}")
    links = "/dev/disk/by-label/scratch ../../md5\n"
    faults = check_outputs(make_server_outputs() | {"fstab": fstab, "links": links}).faults
    assert [fault.problem for fault in faults] == problems


def test_path_in_fstab_is_reported_with_its_map() -> None:
    (fault,) = find_faults(FSTAB.replace("UUID=1111-xfs", "/dev/sdaa"))
    assert "fstab mounts /dev/sdaa, one path of mpatha" in fault.problem


@pytest.mark.parametrize("source", ["/dev/mapper/vg0-scratch", "/dev/md5", "/dev/disk/by-label/scratch"])
def test_lasting_name_in_fstab_is_accepted(source: str) -> None:
    assert find_faults(FSTAB.replace("UUID=1111-xfs", source)) == []


@pytest.mark.parametrize(("old", "new", "text"), [
    ("/home     ext4", "/home     xfs", "fstab mounts UUID=2222-ext4 as xfs; md6 with it holds ext4"),
    ("/home     ext4", "/home     ext3", ""),
    ("UUID=2222-ext4", "UUID=bbbb", "a part of an array, pool or volume")])  # fmt: skip
def test_kind_of_file_system_in_fstab_is_compared(old: str, new: str, text: str) -> None:
    outputs = make_server_outputs() | {"fstab": FSTAB.replace(old, new)}
    outputs["blkid"] = '/dev/sdk: UUID="bbbb" TYPE="linux_raid_member"\n'
    faults = check_outputs(outputs).faults
    assert [(fault.kind, fault.location) for fault in faults] == [("fstab names another kind", "/home")] * bool(text)
    assert all(text in fault.problem for fault in faults)


@pytest.mark.parametrize(("options", "count"), [("sw", 1), ("sw,nofail", 0), ("noauto", 0)])
def test_absent_swap_is_reported(options: str, count: int) -> None:
    faults = find_faults(f"{FSTAB}UUID=3333-swap none swap {options} 0 0\n")
    assert [(fault.kind, fault.location) for fault in faults] == [("fstab names no device", "swap")] * count


def test_read_only_line_of_a_writable_mount_is_reported() -> None:
    (fault,) = find_faults(FSTAB.replace("noatime,largeio", "ro,noatime,largeio"))
    assert (fault.kind, fault.problem) == ("fstab differs from the mount", "fstab mounts it with ro")


def print_health(verdict: str) -> str:
    header = "smartctl 7.3 2022-02-28 r5338 [x86_64-linux] (local build)\nCopyright (C) 2002-22, Bruce Allen\n\n"
    return f"=== sonde layout collect: smartctl -H /dev/sdc ===\n{header}{verdict}\n"


@pytest.mark.parametrize(("verdict", "health"), [
    ("SMART overall-health self-assessment test result: PASSED", "PASSED"), ("SMART Health Status: OK", "OK"),
    ("SMART overall-health self-assessment test result: FAILED!", "FAILED!"),
    ("SMART Health Status: FAILURE PREDICTION THRESHOLD EXCEEDED [asc=5d, ascq=0]",
     "FAILURE PREDICTION THRESHOLD EXCEEDED [asc=5d, ascq=0]")])  # fmt: skip
def test_health_of_a_drive_is_read(verdict: str, health: str) -> None:
    assert read_collector_output(print_health(verdict), "host").disks["sdc"].settings["health"] == health


@pytest.mark.parametrize(("health", "kinds"), [("OK", []), ("FAILED!", ["drive about to fail"])])
def test_drive_about_to_fail_is_reported(health: str, kinds: list[str]) -> None:
    outputs = make_server_outputs() | {"smartctl -H /dev/sdc": f"SMART Health Status: {health}\n"}
    assert [fault.kind for fault in check_outputs(outputs).faults] == kinds
