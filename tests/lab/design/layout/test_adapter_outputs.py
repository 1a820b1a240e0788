# SPDX-License-Identifier: Apache-2.0
"""Outputs of RAID adapters and enclosures, and lines of kernel logs, as public samples show them (shortened)."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_files

# storcli 7.27 of a MegaRAID 9560 without battery: SSDs, each a volume.
SSD_VOLUMES = """Generating detailed summary of the adapter, it may take a while to complete.
CLI Version = 007.2707.0000.0000 Dec 18, 2023
Operating system = Linux 5.10.0-216.0.0.115.oe2203sp4.aarch64
Controller = 0
Status = Success
Status :
======
Controller Status = Optimal
Memory Correctable Errors = 0
Memory Uncorrectable Errors = 0
Any Offline VD Cache Preserved = No
BBU Status = NA
Supported Adapter Operations :
============================
Foreign Config Import = Yes
TOPOLOGY :
========
-----------------------------------------------------------------------------
DG Arr Row EID:Slot DID Type  State BT       Size PDC  PI SED DS3  FSpace TR
-----------------------------------------------------------------------------
0 -   -   -        -   RAID0 Optl  N  446.625 GB dflt N  N   none N      N
0 0   0   252:0    2   DRIVE Onln  N  446.625 GB dflt N  N   none -      N
-----------------------------------------------------------------------------
Virtual Drives = 1
VD LIST :
=======
---------------------------------------------------------------
DG/VD TYPE  State Access Consist Cache Cac sCC       Size Name
---------------------------------------------------------------
0/239 RAID0 Optl  RW     Yes     RWTD  -   ON  446.625 GB
---------------------------------------------------------------
VD=Virtual Drive| DG=Drive Group|Rec=Recovery
Physical Drives = 1
PD LIST :
=======
------------------------------------------------------------------------------
EID:Slt DID State DG       Size Intf Med SED PI SeSz Model            Sp Type
------------------------------------------------------------------------------
252:0     2 Onln   0 446.625 GB SATA SSD N   N  512B HWE62ST3480L003N U  -
------------------------------------------------------------------------------
"""
# An older version has no column Cac.
OLD_VOLUME = """Controller = 0
Status = Success

Virtual Drives :
==============

---------------------------------------------------------
DG/VD TYPE  State Access Consist Cache sCC     Size Name
---------------------------------------------------------
9/9   RAID0 Optl  RW     Yes     NRWBD -   2.729 TB VD_9
---------------------------------------------------------
"""
PACK = """CLI Version = 007.1017.0000.0000 May 10, 2019
Controller = 0

BBU_Info :
========

-----------------------------------------------------------------------
Model  State   RetentionTime Temp Mode MfgDate    Next Learn
-----------------------------------------------------------------------
iBBU08 Optimal 48 hours +    27C  4    2011/12/14 2022/01/01  09:23:25
-----------------------------------------------------------------------

Cachevault_Info :
===============
-----------------------------------
Model State Temp Mode MfgDate
-----------------------------------
CVPM02 Optimal 22C - 2018/05/19
-----------------------------------
"""
DRIVES_JSON = """{
"Controllers":[
{
	"Command Status" : {
		"CLI Version" : "007.0606.0000.0000 Mar 20, 2018",
		"Controller" : 1,
		"Status" : "Success",
		"Description" : "Show Drive Information Succeeded."
	},
	"Response Data" : {
		"Drive /c1/e12/s0" : [
			{
				"EID:Slt" : "12:0",
				"DID" : 13,
				"State" : "Onln",
				"DG" : 0,
				"Size" : "237.968 GB",
				"Med" : "SSD"
			}
		],
		"Drive /c1/e12/s0 - Detailed Information" : {
			"Drive /c1/e12/s0 State" : {
				"Media Error Count" : 0,
				"Predictive Failure Count" : 0,
				"S.M.A.R.T alert flagged by drive" : "No"
			}
		},
		"VD LIST" : [
			{
				"DG/VD" : "0/0",
				"TYPE" : "RAID1",
				"State" : "Optl",
				"Access" : "RW",
				"Cache" : "RWBD",
				"Name" : ""
			}
		]
	}
}
]
}
"""
SMART_ARRAY = """
Smart Array P408i-a SR Gen10 in Slot 0 (Embedded)
   Bus Interface: PCI
   Controller Status: OK
   Cache Board Present: True
   Cache Status: OK
   Battery/Capacitor Status: OK
   Sensor ID: 0
      Location: Capacitor

   Internal Drive Cage at Port 1I, Box 2, OK

      Drive Bays: 4

   Physical Drives
      physicaldrive 1I:2:1 (port 1I:box 2:bay 1, SAS HDD, 6 TB, OK)

   Port Name: 1I
         Port Mode: Mixed

   Array: A
      Interface Type: SAS
      Status: OK
      MultiDomain Status: OK

      Logical Drive: 1
         Fault Tolerance: 6
         Status: OK
         Unrecoverable Media Errors: None
         Caching:  Enabled
         Parity Initialization Status: Initialization Completed

      physicaldrive 1I:2:1
         Port: 1I
         Status: OK
         Drive Authentication Status: OK
         SSD Smart Trip Wearout: False
"""
SHORT_ARRAY = """
Smart Array 6i in Slot 0 (Embedded)    (sn: 0011223344AABC0)

   array A (SAS, Unused Space: 0  MB)

      logicaldrive 1 (33.9 GB, RAID 1, OK)

      physicaldrive 1:0 (port 1:id 0 , Parallel SCSI, 36.4 GB, OK)
      physicaldrive 1:5 (port 1:id 5 , Parallel SCSI, 72.8 GB, OK, spare)

   SEP (Vendor ID PMCSIERA, Model SRCv8x6G) 379 (WWID: 1234567895CA79CF)
"""
SLOTS = """  LSI       SAS3x40           0601
  Primary enclosure logical identifier (hex): 5003048001c1043f
Enclosure status diagnostic page:
  INVOP=0, INFO=0, NON-CRIT=0, CRIT=0, UNRECOV=0
  status descriptor list
    Element type: Array device slot, subenclosure id: 0 [ti=0]
      Overall descriptor:
      Element 0 descriptor:
        Predicted failure=0, Disabled=0, Swap=0, status: OK
        Slot address: 0
      Element 1 descriptor:
        Predicted failure=0, Disabled=0, Swap=0, status: Not installed
"""
SAMPLES = {"ssd": SSD_VOLUMES, "old": OLD_VOLUME, "pack": PACK, "json": DRIVES_JSON, "smart array": SMART_ARRAY,
           "short": SHORT_ARRAY, "sg_ses --page=es /dev/sg3": SLOTS}  # fmt: skip


def find_faults(name: str, text: str) -> tuple[LayoutFault, ...]:
    return check_outputs(make_server_outputs() | {name: text}).faults


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_of_a_sound_adapter_has_no_fault(name: str) -> None:
    assert find_faults(name, SAMPLES[name]) == ()


@pytest.mark.parametrize(("name", "old", "new", "kind", "location"), [
    ("ssd", "SATA SSD", "SATA HDD", "write-through cache", "c0 v0/239"),
    ("ssd", "Uncorrectable Errors = 0", "Uncorrectable Errors = 2", "errors of the memory of an adapter", "c0"),
    ("ssd", "Preserved = No", "Preserved = Yes", "cached writes of an absent volume", "c0"),
    ("ssd", "Status = Optimal", "Status = Needs Attention", "adapter not optimal", "c0"),
    ("old", "NRWBD", "NR,WT", "write-through cache", "c0 v9/9 (VD_9)"),
    ("old", "Optl", "Dgrd", "degraded", "c0 v9/9 (VD_9)"),
    ("pack", "iBBU08 Optimal", "iBBU08 Failed ", "cache battery failed", "c0 iBBU08"),
    ("pack", "CVPM02 Optimal", "CVPM02 Failed", "cache battery failed", "c0 CVPM02"),
    ("json", '"Onln"', '"UBad"', "failed drive of an adapter", "c1 12:0"),
    ("json", 'Failure Count" : 0', 'Failure Count" : 4', "drive about to fail", "c1 12:0"),
    ("json", '"Optl"', '"Pdgd"', "degraded", "c1 v0/0"),
    ("smart array", "6\n         Status: OK", "6\n         Status: Failed", "not optimal", "slot 0 volume 1"),
    ("smart array", "Errors: None", "Errors: Detected", "bad sectors of a volume", "slot 0 volume 1"),
    ("smart array", "Wearout: False", "Wearout: True", "drive about to fail", "slot 0 1I:2:1"),
    ("short", "RAID 1, OK", "RAID 1, Interim Recovery Mode", "degraded", "slot 0 volume 1"),
    ("short", "RAID 1, OK", "RAID 1, Recovering, 26% complete", "rebuilding", "slot 0 volume 1"),
    ("short", "36.4 GB, OK", "36.4 GB, Failed", "failed drive of an adapter", "slot 0 1:0"),
    ("sg_ses --page=es /dev/sg3", "failure=0", "failure=1", "part of an enclosure failed",
     "/dev/sg3 Array device slot 0"),
])  # fmt: skip
def test_fault_in_a_sample_is_reported(name: str, old: str, new: str, kind: str, location: str) -> None:
    assert old in SAMPLES[name]
    (fault,) = find_faults(name, SAMPLES[name].replace(old, new, 1))
    assert (fault.kind, fault.location) == (kind, location)


def test_status_of_an_adapter_follows_from_its_volume() -> None:
    text = SSD_VOLUMES.replace("Status = Optimal", "Status = Needs Attention").replace("0/239 RAID0 Optl",
                                                                                       "0/239 RAID0 Dgrd")  # fmt: skip
    (fault,) = find_faults("ssd", text)
    assert fault.kind == "degraded"


def test_rows_of_another_form_are_not_examined(tmp_path: Path) -> None:
    path = tmp_path / "storcli.txt"
    path.write_text(SSD_VOLUMES.replace("446.625 GB\n", "unknown\n"), encoding="utf-8")
    (text,) = read_files([path]).unknown
    assert text.startswith("1 of the 1 Virtual Drives of c0")


LINKS = "/sys/block/sdc ../devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sdc\n"
ATA_LOG = """[ 100.1] ata3.00: exception Emask 0x0 SAct 0x1000000 SErr 0x0 action 0x0
[ 100.2] ata3.00: failed command: READ FPDMA QUEUED
[ 100.3] ata3.00: error: { UNC }
[ 100.4] sd 2:0:0:0: [sdc] tag#25 Sense Key : Medium Error [current]
[ 100.5] blk_update_request: I/O error, dev sdc, sector 87299080
"""


def test_kernel_errors_by_port_and_name_are_one_fault() -> None:
    outputs = make_server_outputs() | {"find /sys/block -type l": LINKS, "dmesg": ATA_LOG}
    (fault,) = check_outputs(outputs).faults
    assert (fault.kind, fault.location) == ("errors in the kernel log", "sdc")
    assert "2 lines about bad sectors and 1 line about I/O errors" in fault.problem


@pytest.mark.parametrize("log", [
    "[ 1.0] ata3.00: error: { UNC }\n",
    "[ 1.0] sd 2:0:0:0: attempting task abort!scmd(0x01)\n[ 2.0] sd 2:0:0:0: attempting task abort!scmd(0x01)\n",
])  # fmt: skip
def test_kernel_errors_by_address_follow_from_the_drive(log: str) -> None:
    outputs = make_server_outputs() | {"find /sys/block -type l": LINKS, "dmesg": log}
    outputs["host, smartctl -H /dev/sdc"] = "SMART overall-health self-assessment test result: FAILED!\n"
    (fault,) = check_outputs(outputs).faults
    assert (fault.kind, fault.location) == ("drive about to fail", "sdc")


@pytest.mark.parametrize(("line", "count"), [
    ("critical target error, dev sdc, sector 0 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 2", 0),
    ("critical target error, dev sdc, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", 1),
    ("mpt3sas_cm0: log_info(0x31110e05): originator(PL), code(0x11), sub_code(0x0e05)", 0),
    ("md/raid:md16: read error corrected (8 sectors at 1445866416 on sdf6)", 1),
])  # fmt: skip
def test_refused_discards_are_no_errors_of_a_drive(line: str, count: int) -> None:
    outputs = make_server_outputs() | {"dmesg": f"[Sun Apr 26 15:05:30 2020] {line}\n"}
    assert len(check_outputs(outputs).faults) == count
