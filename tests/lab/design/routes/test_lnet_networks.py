# SPDX-License-Identifier: Apache-2.0
"""The option networks of the module lnet against the planned interfaces of a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, check_outputs

CONFIGURATION = "net:\n    - net type: tcp\n      local NI(s):\n        - interfaces:\n              0: {}\n"


@pytest.mark.parametrize(("networks", "kinds"), [
    ("tcp(bond0)", []), ("tcp0(bond0)", []), ("tcp", []), ("tcp(bond0[0,1])", []), ("tcp(eth9,bond0)", []),
    ("tcp(bond0),tcp(eth9)", []),
    ("o2ib(ib0),tcp(bond0)", []), ("tcp(eth0)", ["LNet interface differs"]), ("o2ib(ib0)", ["LNet NI missing"]),
    ("tcp1(bond0)", ["LNet NI missing"]),
])  # fmt: skip
def test_networks_of_the_module_are_compared_with_the_plan(tmp_path: Path, networks: str, kinds: list[str]) -> None:
    text = f'options lnet networks="{networks}"\n'
    for name, outputs in (("alone", {}), ("live", {"lnet": LNET_EXPORT})):
        faults = check_outputs(tmp_path / name, outputs | {"lnet.conf": text}).faults
        assert [fault.kind for fault in faults if "lnet.conf" in fault.location] == kinds
    assert all("write tcp(bond0) in lnet.conf" in fault.remedy for fault in faults)


@pytest.mark.parametrize(("device", "kinds"), [("bond0", []), ("eth0", ["LNet interface differs"])])
def test_interface_in_a_configuration_of_lnet_is_compared(tmp_path: Path, device: str, kinds: list[str]) -> None:
    outputs = {"lnet": LNET_EXPORT, "lnet.conf": CONFIGURATION.format(device)}
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == kinds
    alone = {"lnet.conf": CONFIGURATION.format(device)}
    assert [fault.kind for fault in check_outputs(tmp_path / "alone", alone).faults] == kinds
