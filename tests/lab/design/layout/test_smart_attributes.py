# SPDX-License-Identifier: Apache-2.0
"""Counters of smartctl -A: bad sectors, errors of the cable, wear and temperature."""

from __future__ import annotations

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.design.layout.live.smart_output import read_smartctl_attributes

ATA = """=== START OF READ SMART DATA SECTION ===
SMART Attributes Data Structure revision number: 10
Vendor Specific SMART Attributes with Thresholds:
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
  1 Raw_Read_Error_Rate     0x000f   082   064   044    Pre-fail  Always       -       155127104
  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       REALLOCATED
  9 Power_On_Hours          0x0032   061   061   000    Old_age   Always       -       34412h+11m+02.113s
190 Airflow_Temperature_Cel 0x0022   065   049   040    Old_age   Always       -       35 (Min/Max 24/42)
194 Temperature_Celsius     0x0022   035   051   000    Old_age   Always       -       CELSIUS (0 18 0 0 0)
197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       PENDING
198 Offline_Uncorrectable   0x0010   100   100   000    Old_age   Offline      -       PENDING
199 UDMA_CRC_Error_Count    0x003e   200   200   000    Old_age   Always       -       ERRORS
231 SSD_Life_Left           0x0013   LIFE   100   000    Pre-fail  Always       -       0
"""
SAS = """=== START OF READ SMART DATA SECTION ===
Current Drive Temperature:     34 C
Drive Trip Temperature:        60 C

Accumulated power on time, hours:minutes 31003:13
Percentage used endurance indicator: 4%
Elements in grown defect list: 0
"""
NVME = """=== START OF SMART DATA SECTION ===
SMART/Health Information (NVMe Log 0x02)
Critical Warning:                   0x00
Temperature:                        41 Celsius
Available Spare:                    100%
Available Spare Threshold:          10%
Percentage Used:                    3%
Data Units Read:                    1,240,113 [634 GB]
Media and Data Integrity Errors:    0
Error Information Log Entries:      12
Warning  Comp. Temperature Time:    0
"""
SATA_LINK = "SATA Version is:  SATA 3.3, 6.0 Gb/s (current: CURRENT Gb/s)\n"
SELF_TEST = """Num  Test_Description    Status                  Remaining  LifeTime(hours)  LBA_of_first_error
# 1  Extended offline    Completed: read failure       90%     34390         1938441208
# 2  Short offline       Completed without error       00%     34100         -
"""
SAS_ERRORS = """           fast | delayed   rewrites  corrected  invocations   [10^9 bytes]  errors
read:   1048576        2         0   1048578          2      91823.113           UNCORRECTED
write:         0        0         0         0          0      18230.001           0
"""
VALUES = {"REALLOCATED": "0", "PENDING": "0", "ERRORS": "0", "CELSIUS": "35", "LIFE": "098"}


def find_faults(text: str, values: dict[str, str]) -> list[LayoutFault]:
    for name, value in (VALUES | values).items():
        text = text.replace(name, value)
    return list(check_outputs(make_server_outputs() | {"host.txt, smartctl -A /dev/sdc": text}).faults)


@pytest.mark.parametrize(("text", "values", "kind", "problem"), [
    (ATA, {"PENDING": "16"}, "bad sectors of a drive", "16 of its sectors cannot be read (Current_Pending_Sector)"),
    (ATA, {"REALLOCATED": "1208"}, "bad sectors of a drive", "it has replaced 1208 bad sectors"),
    (ATA, {"ERRORS": "4211"}, "errors of a cable", "it counts 4211 errors of transfers"),
    (ATA, {"CELSIUS": "63"}, "drive too hot", "it has 63 °C"),
    (ATA, {"LIFE": "004"}, "worn flash", "96 % of its life are used"),
    (SAS, {"list: 0": "list: 311"}, "bad sectors of a drive", "it has replaced 311 bad sectors (grown defect list)"),
    (SAS, {"indicator: 4%": "indicator: 99%"}, "worn flash", "99 % of its life are used"),
    (NVME, {"Used:                    3%": "Used:                    104%"}, "worn flash", "104 % of its life"),
    (NVME, {"Integrity Errors:    0": "Integrity Errors:    1,024"}, "bad sectors of a drive", "1024 times"),
    (NVME, {"Warning:                   0x00": "Warning:                   0x04"}, "drive about to fail", "is 0x04"),
    (NVME, {"Spare:                    100%": "Spare:                    4%"}, "drive about to fail", "remain 4 %"),
    (SATA_LINK + ATA, {"CURRENT": "3.0"}, "slow link of a drive", "its link runs with 3.0 instead of 6.0 Gb/s"),
    (ATA + SELF_TEST, {}, "bad sectors of a drive", "its last test of itself failed (Completed: read failure)"),
    (SAS + SAS_ERRORS, {"UNCORRECTED": "12"}, "bad sectors of a drive", "it could not correct 12 errors"),
    (NVME, {"41 Celsius": "84 Celsius"}, "drive too hot", "it has 84 °C"),
])  # fmt: skip
def test_counter_of_a_drive_is_reported(text: str, values: dict[str, str], kind: str, problem: str) -> None:
    (fault,) = find_faults(text, values)
    assert (fault.kind, fault.location) == (kind, "sdc")
    assert problem in fault.problem


@pytest.mark.parametrize(("text", "values"), [
    (ATA, {}), (SAS, {}), (NVME, {}), (ATA, {"ERRORS": "3", "REALLOCATED": "2"}), (SAS, {"list: 0": "list: 4"}),
    (SATA_LINK + ATA, {"CURRENT": "6.0"}), (SAS + SAS_ERRORS, {"UNCORRECTED": "0"}),
    (ATA + SELF_TEST, {"Completed: read failure": "Completed without error"}),
])  # fmt: skip
def test_counters_of_a_sound_drive_are_no_fault(text: str, values: dict[str, str]) -> None:
    assert find_faults(text, values) == []


def test_verdict_of_a_complete_output_is_read_too() -> None:
    verdict = "SMART overall-health self-assessment test result: FAILED!\n\n"
    (fault,) = find_faults(verdict + ATA, {"REALLOCATED": "2040"})
    assert (fault.kind, fault.location) == ("drive about to fail", "sdc")
    assert "2040 bad sectors" in fault.consequences[0]


@pytest.mark.parametrize(("text", "values", "remedy"), [
    (ATA, {"PENDING": "24"}, "scrub"), (ATA, {"REALLOCATED": "1840", "PENDING": "24"}, "replace it while"),
    (ATA + SELF_TEST, {"PENDING": "24"}, "replace it while"),
    (ATA + SELF_TEST, {"REALLOCATED": "1840", "PENDING": "24"}, "replace it while"),
    (SAS + SAS_ERRORS, {"list: 0": "list: 311", "UNCORRECTED": "12"}, "replace it while"),
])  # fmt: skip
def test_bad_sectors_of_a_drive_are_one_fault(text: str, values: dict[str, str], remedy: str) -> None:
    (fault,) = find_faults(text, values)
    assert fault.kind == "bad sectors of a drive"
    assert remedy in fault.remedy
    assert ("read failure" in fault.problem) == (SELF_TEST in text)
    assert all(value.split()[-1] in fault.problem for value in values.values())


@pytest.mark.parametrize(
    ("ranks", "setting"),
    [((2, 0), "it offers 4096 B with relative performance 0 instead of 2"), ((0, 0), None), ((0, 2), None)],
)
def test_better_format_of_sectors_is_read(ranks: tuple[int, int], setting: str | None) -> None:
    text = NVME + (
        "\nSupported LBA Sizes (NSID 0x1)\nId Fmt  Data  Metadt  Rel_Perf\n"
        f" 0 +     512       0         {ranks[0]}\n 1 -    4096       0         {ranks[1]}\n"
    )
    disk = read_smartctl_attributes(text, "host.txt, smartctl -a /dev/nvme1n1").disks["nvme1n1"]
    assert disk.settings.get("better_format") == setting


@pytest.mark.parametrize(("sectors", "model", "mount", "count"), [
    (("4096", "512"), "P4610", "", 1), (("4096", "4096"), "P4610", "", 0), (("512", "512"), "P4610", "", 0),
    (("4096", "512"), "P4618", "", 0), (("4096", "512"), "P4610", "/", 0)])  # fmt: skip
def test_smaller_sectors_of_one_model_are_reported(
    sectors: tuple[str, str], model: str, mount: str, count: int
) -> None:
    drives = [
        ObservedDisk(f"nvme{number}n1", flash=True, queue={"logical_block_size": sector},
                     settings={"model": ("P4610", model)[number], "mountpoint": ("", mount)[number]})
        for number, sector in enumerate(sectors)
    ]  # fmt: skip
    faults = check_layout(ObservedStorage((), {drive.name: drive for drive in drives})).faults
    assert [fault.location for fault in faults if fault.kind == "drive formatted with small sectors"] == [
        "nvme1n1"
    ] * count
