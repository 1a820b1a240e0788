# SPDX-License-Identifier: Apache-2.0
"""Adapters, enclosures, settings of the kernel, services and the kernel log of a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.check_components import find_component_differences
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedComponent, ObservedStorage
from sonde.design.layout.live.saved_output import read_files

ADAPTER = """/sys/class/scsi_host/host0/proc_name:mpt3sas
/sys/class/scsi_host/host0/board_name:SAS9300-8e
/sys/class/scsi_host/host0/version_fw:16.00.12.00
/sys/class/scsi_host/host0/device/../current_link_speed:8.0 GT/s PCIe
/sys/class/scsi_host/host0/device/../current_link_width:8
/sys/class/scsi_host/host0/device/../max_link_speed:8.0 GT/s PCIe
/sys/class/scsi_host/host0/device/../max_link_width:8
/sys/class/scsi_host/host0/device/../../max_link_speed:16.0 GT/s PCIe
/sys/class/scsi_host/host0/device/../../max_link_width:16
/sys/class/scsi_host/host1/board_name:SAS9300-8e
/sys/class/scsi_host/host1/version_fw:16.00.12.00
/sys/devices/system/cpu/cpufreq/policy0/scaling_governor:performance
/sys/devices/system/cpu/cpufreq/policy1/scaling_governor:performance
/proc/sys/vm/dirty_ratio:20
/proc/sys/vm/dirty_bytes:0
/proc/sys/vm/swappiness:10
/proc/sys/vm/min_free_kbytes:90112
/proc/sys/vm/zone_reclaim_mode:0
"""
ENCLOSURE = """/sys/class/enclosure/0:0:24:0/components:24
/sys/class/enclosure/0:0:24:0/Slot 01/status:OK
/sys/class/enclosure/0:0:24:0/Slot 01/fault:0
/sys/class/enclosure/0:0:24:0/Slot 02/status:not installed
/sys/class/enclosure/0:0:24:0/device/model:H4102-J
/sys/class/enclosure/0:0:24:0/device/rev:2033
/sys/class/enclosure/0:0:49:0/device/model:H4102-J
/sys/class/enclosure/0:0:49:0/device/rev:2033
"""
UNITS = "\n\n".join(
    f"Id={unit}\nLoadState={state}\nActiveState=active\nSubState=running\nUnitFileState=enabled"
    for unit, state in (("mdmonitor.service", "loaded"), ("smartd.service", "not-found"), ("fstrim.timer", "loaded"))
)
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/dm-1    partition\t8388604\t\t1024\t\t-2\n"
LOG = "[    1.204211] ACPI: \\_SB_.PR00: no _CST\n[    9.100000] ata3: hard resetting link\n"
STORCLI = """CLI Version = 007.1804.0000.0000 Apr 09, 2021
Controller = 0
Status = Success

VD LIST :
=======

---------------------------------------------------------------
DG/VD TYPE  State Access Consist Cache Cac sCC       Size Name
---------------------------------------------------------------
0/0   RAID6 Optl  RW     Yes     RWBD  -   ON  43.654 TB ost0
---------------------------------------------------------------

PD LIST :
=======

------------------------------------------------------------------------------
EID:Slt DID State DG     Size Intf Med SED PI SeSz Model               Sp Type
------------------------------------------------------------------------------
252:0     8 Onln   0 3.637 TB SAS  HDD N   N  512B ST4000NM0023        U  -
252:1     9 GHS    - 3.637 TB SAS  HDD N   N  512B ST4000NM0023        U  -
------------------------------------------------------------------------------

Cachevault_Info :
===============

------------------------------------
Model  State   Temp Mode MfgDate
------------------------------------
CVPM02 Optimal 28C  -    2015/05/22
------------------------------------

Drive /c0/e252/s0 State :
=======================
Shield Counter = 0
Media Error Count = 0
Other Error Count = 0
Predictive Failure Count = 0
S.M.A.R.T alert flagged by drive = No
"""
SSACLI = """Smart Array P440ar in Slot 0 (Embedded)
   Slot: 0
   Controller Status: OK
   Firmware Version: 4.02-0
   Cache Status: OK
   Battery/Capacitor Count: 1
   Battery/Capacitor Status: OK

   Array: A
      Interface Type: SAS
      Status: OK

      Logical Drive: 1
         Size: 3.3 TB
         Status: OK

      physicaldrive 1I:1:1
         Port: 1I
         Status: OK
"""
SES = """Enclosure Status diagnostic page:
  INVOP=0, INFO=0, NON-CRIT=0, CRIT=0, UNRECOV=0
  status descriptor list
    Element type: Power supply, subenclosure id: 0 [ti=1]
      Overall descriptor:
        Predicted failure=0, Disabled=0, Swap=0, status: Unsupported
      Element 0 descriptor:
        Predicted failure=0, Disabled=0, Swap=0, status: OK
      Element 1 descriptor:
        Predicted failure=0, Disabled=0, Swap=0, status: OK
"""
SOUND = {
    "adapters": ADAPTER, "box": ENCLOSURE, "units": UNITS, "swaps": SWAPS, "dmesg": LOG, "storcli": STORCLI,
    "ssacli": SSACLI, "sg_ses --page=es /dev/sg24": SES,
}  # fmt: skip
LINK = "device/../current_link_"


def find_faults(output: str, old: str, new: str) -> list[LayoutFault]:
    outputs = make_server_outputs() | SOUND
    assert old in outputs[output]
    return list(check_outputs(outputs | {output: outputs[output].replace(old, new, 1)}).faults)


@pytest.mark.parametrize(("output", "old", "new", "kind", "location", "text"), [
    ("adapters", f"{LINK}width:8", f"{LINK}width:4", "slow link of PCI Express", "host0", "4 of 8 lanes"),
    ("adapters", f"{LINK}speed:8.0", f"{LINK}speed:2.5", "slow link of PCI Express", "host0", "2.5 GT/s PCIe instead"),
    ("adapters", "fw:16.00.12", "fw:14.00.02", "differs from its peers", "host0, host1", "version_fw of the adapters"),
    ("adapters", "governor:performance", "governor:powersave", "processors save power", "processors", "powersave"),
    ("adapters", "dirty_ratio:20", "dirty_ratio:1", "few dirty pages", "vm", "vm.dirty_ratio is 1 %"),
    ("adapters", "swappiness:10", "swappiness:100", "memory is swapped early", "vm", "is 100"),
    ("adapters", "kbytes:90112", "kbytes:1024", "little free memory is reserved", "vm", "is 1024"),
    ("box", "01/status:OK", "01/status:critical", "part of an enclosure failed", "0:0:24:0 Slot 01", "critical"),
    ("box", "rev:2033", "rev:2010", "differs from its peers", "0:0:24:0, 0:0:49:0", "rev of the enclosures H4102-J"),
    ("units", "ActiveState=active", "ActiveState=inactive", "service does not run", "mdmonitor.service", "watches the"),
    ("swaps", "\t1024\t", "\t7388604\t", "memory is short", "/dev/dm-1", "of swap are used"),
    ("dmesg", "ata3: hard resetting link", "critical medium error, dev sdc, sector 91", "errors in the kernel log",
     "sdc", "1 line about bad sectors"),
    ("dmesg", "ata3: hard resetting link", "XFS (md5): Metadata corruption detected at xfs_inode_buf",
     "errors in the kernel log", "md5", "errors of a file system"),
    ("storcli", "RAID6 Optl", "RAID6 Dgrd", "degraded", "c0 v0/0 (ost0)", "Dgrd"),
    ("storcli", "RWBD", "RWTD", "write-through cache", "c0 v0/0 (ost0)", "RWTD"),
    ("storcli", "9 GHS    -", "9 UGood  F", "foreign configuration", "c0 252:1", "another adapter"),
    ("storcli", "CVPM02 Optimal", "CVPM02 Failed ", "cache battery failed", "c0 CVPM02", "Failed"),
    ("storcli", "Predictive Failure Count = 0", "Predictive Failure Count = 3", "drive about to fail", "c0 252:0",
     "3 predictive"),
    ("ssacli", "Capacitor Status: OK", "Capacitor Status: Failed (Replace Batteries/Capacitors)",
     "cache battery failed", "slot 0", "Replace"),
    ("ssacli", "TB\n         Status: OK", "TB\n         Status: Interim Recovery Mode", "degraded", "slot 0 volume 1",
     "Interim"),
    ("ssacli", "1I\n         Status: OK", "1I\n         Status: Predictive Failure", "drive about to fail",
     "slot 0 1I:1:1", "Predictive"),
    ("sg_ses --page=es /dev/sg24", "status: OK", "status: Critical", "part of an enclosure failed",
     "/dev/sg24 Power supply 0", "Critical"),
])  # fmt: skip
def test_fault_of_a_component_is_reported(output: str, old: str, new: str, kind: str, location: str, text: str) -> None:
    (fault,) = find_faults(output, old, new)
    assert (fault.kind, fault.location) == (kind, location)
    assert text in fault.problem


@pytest.mark.parametrize(("output", "old", "new"), [
    ("adapters", "swappiness:10", "swappiness:60"),
    ("adapters", "../max_link_speed:8.0", "../max_link_speed:16.0"),  # the port above it is older
    ("units", "ActiveState=active", "ActiveState=active"), ("storcli", "9 GHS", "9 DHS"),
    ("ssacli", "Capacitor Status: OK", "Capacitor Status: Recharging"),
])  # fmt: skip
def test_harmless_component_is_no_fault(output: str, old: str, new: str) -> None:
    sound = SOUND[output].replace("../../max_link_speed:16.0", "../../max_link_speed:8.0")
    assert check_outputs(make_server_outputs() | SOUND | {output: sound.replace(old, new, 1)}).faults == ()


def test_failed_battery_explains_the_write_through_cache() -> None:
    text = STORCLI.replace("CVPM02 Optimal", "CVPM02 Failed ").replace("RWBD", "RWTD")
    (fault,) = check_outputs(make_server_outputs() | SOUND | {"storcli": text}).faults
    assert fault.kind == "cache battery failed"


def test_failed_unit_of_storage_alone_is_reported() -> None:
    failed = "srv-scratch.mount loaded failed failed /srv/scratch\ncups.service loaded failed failed CUPS\n"
    (fault,) = check_outputs(make_server_outputs() | SOUND | {"failed": failed}).faults
    assert (fault.kind, fault.location) == ("service does not run", "srv-scratch.mount")


def test_kernel_errors_of_a_failing_drive_are_its_consequence() -> None:
    health = "SMART overall-health self-assessment test result: FAILED!\n"
    outputs = make_server_outputs() | SOUND | {"host, smartctl -H /dev/sdc": health}
    (fault,) = check_outputs(outputs | {"dmesg": LOG + "[ 10.0] critical medium error, dev sdc, sector 91\n"}).faults
    assert (fault.kind, fault.location) == ("drive about to fail", "sdc")
    assert any("bad sectors" in text for text in fault.consequences)


@pytest.mark.parametrize(("value", "count"), [("60", 1), ("10", 0)])
def test_setting_in_which_two_hosts_differ_is_reported(value: str, count: int) -> None:
    def observe(text: str) -> ObservedStorage:
        return ObservedStorage(components=(ObservedComponent("memory", "vm", {"swappiness": text}),))

    results = find_component_differences({"oss1": observe("10"), "oss2": observe(value)}, ("oss1", "oss2"))
    faults = [each for each in results if isinstance(each, LayoutFault)]
    assert [fault.problem for fault in faults] == [
        f"swappiness of the memory vm is 10 on oss1, {value} on oss2"
    ] * count


@pytest.mark.parametrize("name", [
    "device/../../../phy-0:5/sas_phy/phy-0:5/negotiated_linkrate:{} Gbit", "device/device/current_link_speed:{} GT/s",
])  # fmt: skip
def test_slow_link_of_one_drive_is_reported(name: str) -> None:
    lines = [f"/sys/block/sd{letter}/" + name.format("6.0" if letter == "c" else "12.0") for letter in "abcdefghij"]
    outputs = make_server_outputs()
    outputs["sysfs"] += "\n".join(lines) + "\n"
    (fault,) = check_outputs(outputs).faults
    assert (fault.kind, fault.location) == ("differs from its peers", "sdc")


def test_narrow_link_of_a_drive_is_reported() -> None:
    outputs = make_server_outputs()
    outputs["sysfs"] += "/sys/block/sdc/device/device/current_link_width:2\n"
    outputs["sysfs"] += "/sys/block/sdc/device/device/max_link_width:4\n"
    (fault,) = check_outputs(outputs).faults
    assert (fault.kind, fault.location) == ("slow link of PCI Express", "sdc")


def test_empty_outputs_of_components_are_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "host.txt"
    path.write_text("".join(f"=== sonde layout collect: {name} ===\n\n\n" for name in ("dmesg --level=err",
                    "systemctl list-units --state=failed")), encoding="utf-8")  # fmt: skip
    assert read_files([path]).unknown == ()
