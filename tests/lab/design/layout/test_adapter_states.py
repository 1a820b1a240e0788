# SPDX-License-Identifier: Apache-2.0
"""Outputs of storcli2 and perccli2, states that no rule is about, and what a failed battery of ssacli explains."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutCheck

# Shortened from public samples of storcli2 8.11.
STORCLI2 = """CLI Version = 008.0011.0000.0014 Sep 26, 2024
Operating system = Linux6.11.0-8-generic
Controller = 0
Status = Success
Description = None

Virtual Drives = 1

VD LIST :
=======

-----------------------------------------------------------------------
DG/VD TYPE  State Access CurrentCache DefaultCache      Size Name
-----------------------------------------------------------------------
0/1   RAID6 Optl  RW     NR,WB        NR,WB        6.985 TiB ost0
-----------------------------------------------------------------------

Physical Drives = 2

PD LIST :
=======

------------------------------------------------------------------------------------------------------
EID:Slt PID State Status DG        Size Intf Med SED_Type SeSz Model                Sp LU/NS Count Alt-EID
------------------------------------------------------------------------------------------------------
308:0   283 Conf  Online  0 223.062 GiB SATA SSD Opal     512B SAMSUNG MZ7777777777 U            1 -
308:4   287 UConf Good    - 223.062 GiB SATA SSD Opal     512B SAMSUNG MZ7777777777 U            1 -
------------------------------------------------------------------------------------------------------

Energy Pack Info :
================

---------------------------------------------------
Type     SubType Voltage(mV) Temperature(C) Status
---------------------------------------------------
Supercap FBU345         8937             23 Optimal
---------------------------------------------------
"""
RESPONSE: dict[str, Any] = {
    "Virtual Drives": 1,
    "VD LIST": [{"DG/VD": "0/1", "TYPE": "RAID6", "State": "Optl", "Access": "RW", "CurrentCache": "NR,WB",
                 "DefaultCache": "NR,WB", "Size": "6.985 TiB", "Name": "ost0"}],
    "Physical Drives": 2,
    "PD LIST": [
        {"EID:Slt": "308:0", "PID": 283, "State": "Conf", "Status": "Online", "DG": 0, "Size": "223.062 GiB"},
        {"EID:Slt": "308:4", "PID": 287, "State": "UConf", "Status": "Good", "DG": "-", "Size": "223.062 GiB"},
    ],
    "Energy Pack Info": [{"Type": "Supercap", "SubType": "FBU345", "Voltage(mV)": 8937, "Status": "Optimal"}],
}  # fmt: skip
SSACLI = """
Smart Array P440ar in Slot 0 (Embedded)
   Controller Status: OK
   Cache Board Present: True
   Cache Status: OK
   Battery/Capacitor Status: OK

   Array: A

      Logical Drive: 1
         Size: 43.6 TB
         Status: OK
         Caching:  Enabled
         LD Acceleration Method: Controller Cache

      physicaldrive 1I:1:1
         Status: OK
         Interface Type: SAS
"""


def make_json(response: dict[str, Any]) -> str:
    status = {"CLI Version": "008.0011.0000.0014 Sep 26, 2024", "Controller": "0", "Status": "Success"}
    return json.dumps({"Controllers": [{"Command Status": status, "Response Data": response}]})


def check(name: str, text: str) -> LayoutCheck:
    return check_outputs(make_server_outputs() | {name: text})


@pytest.mark.parametrize("text", [STORCLI2, make_json(RESPONSE), SSACLI])
def test_sound_adapter_has_no_fault_and_no_unknown_state(text: str) -> None:
    result = check("adapter", text)
    assert not result.faults
    assert not [each for each in result.unknown if "adapter" in each or "RAID" in each]


@pytest.mark.parametrize(("old", "new", "kind", "location"), [
    ("RAID6 Optl", "RAID6 Dgrd", "degraded", "c0 v0/1 (ost0)"),
    ("NR,WB        NR,WB", "NR,WT        NR,WB", "write-through cache", "c0 v0/1 (ost0)"),
    ("Conf  Online ", "Conf  Failed ", "failed drive of an adapter", "c0 308:0"),
    ("UConf Good ", "Unusbl Good ", "failed drive of an adapter", "c0 308:4"),
    ("23 Optimal", "23 Failed", "cache battery failed", "c0 FBU345"),
])  # fmt: skip
def test_fault_of_storcli2_is_reported(old: str, new: str, kind: str, location: str) -> None:
    text = STORCLI2.replace("SATA SSD", "SATA HDD")
    assert old in text
    (fault,) = check("storcli2", text.replace(old, new, 1)).faults
    assert (fault.kind, fault.location) == (kind, location)


def test_fault_of_storcli2_in_json_is_reported() -> None:
    drive = {"EID:Slt": "308:0", "State": "Conf", "Status": "Offline", "DG": 0}
    (fault,) = check("storcli2 J", make_json({**RESPONSE, "PD LIST": [drive, RESPONSE["PD LIST"][1]]})).faults
    assert (fault.kind, fault.location) == ("failed drive of an adapter", "c0 308:0")


@pytest.mark.parametrize(("text", "old", "new", "message"), [
    (STORCLI2, "Conf  Online", "Conf  Sulking", "the state Sulking of the RAID drive c0 308:0"),
    (STORCLI2, "UConf ", "Moved ", "the configuration Moved of the RAID drive c0 308:4"),
    (STORCLI2, "RAID6 Optl", "RAID6 Chng", "the state Chng of the RAID volume c0 v0/1 (ost0)"),
    (SSACLI, "TB\n         Status: OK", "TB\n         Status: Queued for Expansion",
     "the Status Queued for Expansion of the RAID volume slot 0 volume 1"),
])  # fmt: skip
def test_state_without_a_rule_is_not_examined(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    result = check("adapter", text.replace(old, new, 1))
    assert not result.faults
    assert f"{message}, which no rule is about" in result.unknown


BATTERY = SSACLI.replace("Capacitor Status: OK", "Capacitor Status: Failed (Replace Batteries)")


@pytest.mark.parametrize(("text", "kinds"), [
    (SSACLI, ["write-through cache"]), (BATTERY, ["cache battery failed"]),
    (BATTERY.replace("Cache Status: OK", "Cache Status: Permanently Disabled"), ["cache battery failed"]),
    (SSACLI.replace("Type: SAS", "Type: Solid State SAS"), []), (SSACLI.replace("Present: True", "Present: False"), []),
])  # fmt: skip
def test_disabled_cache_of_a_volume_has_one_cause(text: str, kinds: list[str]) -> None:
    disabled = text.replace("Caching:  Enabled", "Caching:  Disabled").replace("Controller Cache", "All disabled")
    assert [fault.kind for fault in check("ssacli", disabled).faults] == kinds
