# SPDX-License-Identifier: Apache-2.0
"""IPsec policies on a host and a router: what drops or encrypts packets between the networks of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError

TEMPLATE = "\ttmpl src 10.160.0.1 dst 10.150.255.1\n\t\tproto esp reqid 1 mode tunnel\n"
SOCKET = "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tsocket in priority 0 ptype main \n"
FAR, OWN = "10.150.0.0/16", "10.160.0.0/20"


def print_policy(
    source: str, target: str, direction: str, *, more: str = "", priority: int = 100, end: str = ""
) -> str:
    return f"src {source} dst {target} {more}\n\tdir {direction} priority {priority} ptype main \n{end}"


OUT, IN = print_policy(OWN, FAR, "out", end=TEMPLATE), print_policy(FAR, OWN, "in", end=TEMPLATE)
BYPASS = print_policy("0.0.0.0/0", FAR, "out", priority=5)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", []),
        (SOCKET, []),
        (SOCKET + OUT + IN + print_policy(FAR, OWN, "fwd", end=TEMPLATE), [("traffic encrypted", "xfrm, line 3")]),
        (print_policy("0.0.0.0/0", "0.0.0.0/0", "out", end=TEMPLATE), [("traffic encrypted", "xfrm, line 1")]),
        (print_policy(OWN, FAR, "out", more="proto tcp dport 988"), []),
        (print_policy(OWN, FAR, "out", more="dport 988", end=TEMPLATE), [("traffic encrypted", "xfrm, line 1")]),
        (print_policy(FAR, "10.160.0.1/32", "in action block"), [("traffic discarded", "xfrm, line 1")]),
        (print_policy(OWN, "10.160.0.2/32", "out action block"), [("traffic discarded", "xfrm, line 1")]),
        (print_policy("fd00:160::/64", "fd00:150::/64", "out", end=TEMPLATE), [("traffic encrypted", "xfrm, line 1")]),
        (BYPASS + OUT, []),
        (print_policy("0.0.0.0/0", FAR, "out", priority=500) + OUT, [("traffic encrypted", "xfrm, line 3")]),
        (print_policy("10.160.0.9/32", FAR, "out", end=TEMPLATE), []),
        (print_policy("192.168.9.0/24", "192.168.7.0/24", "out", end=TEMPLATE), []),
    ],
)  # fmt: skip
def test_policy_on_storage_traffic_is_reported(tmp_path: Path, text: str, faults: list[tuple[str, str]]) -> None:
    verdict = check_outputs(tmp_path, {**print_server_outputs(), "xfrm": text})
    assert [(fault.kind, fault.location) for fault in verdict.faults] == faults
    assert ("the IPsec policies", "storage-net") in {(item.subject, item.location) for item in verdict.comparisons}
    assert not any("IPsec" in item for item in verdict.not_examined)


def test_fault_of_a_policy_states_its_selectors(tmp_path: Path) -> None:
    text = print_policy(OWN, FAR, "out", more="proto tcp dport 988", end=TEMPLATE)
    (fault,) = check_outputs(tmp_path, {**print_server_outputs(), "xfrm": text}).faults
    assert (
        "between this host and hsn through esp in mode tunnel (out from 10.160.0.0/20 to 10.150.0.0/16 with proto tcp"
        " dport 988)" in fault.problem
    )


def test_policy_after_other_listings_of_one_file_is_read(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["rule"] += OUT
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == ["traffic encrypted"]


def test_policy_of_a_router_is_reported(tmp_path: Path) -> None:
    addresses = (
        "2: hsn0: <UP,LOWER_UP> mtu 9000 state UP\n    inet 10.150.255.2/16 scope global hsn0\n"
        "3: eth0: <UP,LOWER_UP> mtu 9000 state UP\n    inet 10.160.15.2/20 scope global eth0\n"
    )
    outputs = {"addr": addresses, "xfrm": print_policy(FAR, OWN, "fwd action block")}
    faults = [fault for fault in check_outputs(tmp_path, outputs, "gw2").faults if fault.location == "xfrm, line 1"]
    assert [fault.kind for fault in faults] == ["traffic discarded"]
    assert "packets between hsn and storage-net" in faults[0].problem


def test_policies_that_were_not_printed_are_not_examined(tmp_path: Path) -> None:
    assert any(
        text.startswith("IPsec policies") for text in check_outputs(tmp_path, print_server_outputs()).not_examined
    )


def test_states_without_policies_are_refused() -> None:
    state = "src 10.160.0.1 dst 10.150.255.1\n\tproto esp spi 0x1 reqid 1 mode tunnel\n"
    with pytest.raises(UserError, match="ip xfrm policy"):
        parse_host_tables(state, "xfrm")
    assert len(parse_host_tables(state + OUT, "xfrm").security_policies or ()) == 1
