# SPDX-License-Identifier: Apache-2.0
"""Names of hosts in /etc/hosts, whose addresses the system file states."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

HOSTS = """127.0.0.1 localhost localhost.localdomain
::1 localhost ip6-localhost
192.168.9.7 nsd1-mgmt nsd1
10.160.0.1 nsd1.site nsd1-san
10.160.0.2\tnsd2
fd00:160::2 nsd2
10.150.255.1 gw1 # on the side of the clients
10.160.0.77 printer
192.168.9.8 nsd2 # a second address, which few programs try
"""


def test_usual_names_are_no_fault(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, print_server_outputs() | {"hosts": HOSTS})
    assert verdict.faults == ()
    compared = [item.location for item in verdict.comparisons if item.subject == "the address of a name"]
    assert compared == ["nsd1", "nsd1.site", "nsd2", "gw1"]
    assert not any("/etc/hosts" in text for text in verdict.not_examined)


@pytest.mark.parametrize(
    ("old", "new", "fault_kind", "location", "expected_sentence"),
    [
        ("10.160.0.2\tnsd2", "10.160.0.3\tnsd2", "name with another address", "hosts, line 5",
         "nsd2 has the address 10.160.0.3, that of nsd3; the system file says 10.160.0.2"),
        ("fd00:160::2 nsd2", "fd00:160::99 nsd2", "name with another address", "hosts, line 6", "says fd00:160::2"),
        ("10.160.0.2\tnsd2", "192.168.9.8\tnsd2", "name outside of the networks", "hosts, line 5",
         "no other name has 10.160.0.2"),
        ("10.160.0.2\tnsd2", "192.168.9.8\tnsd2 # old\n10.160.0.2 nsd2", "name outside of the networks",
         "hosts, line 5", "go past the routers"),
        ("nsd1.site nsd1-san", "nsd1.site", "name outside of the networks", "hosts, line 3", "192.168.9.7"),
        ("192.168.9.7 nsd1-mgmt", "127.0.1.1 nsd1.site", "name on loopback", "hosts, line 3", "127.0.1.1"),
    ],
)  # fmt: skip
def test_name_with_a_wrong_address_is_reported(
    tmp_path: Path, old: str, new: str, fault_kind: str, location: str, expected_sentence: str
) -> None:
    assert old in HOSTS
    faults = check_outputs(tmp_path, print_server_outputs() | {"hosts": HOSTS.replace(old, new)}).faults
    assert {(fault.kind, fault.location) for fault in faults} == {(fault_kind, location)}
    assert expected_sentence in faults[0].problem
