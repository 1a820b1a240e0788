# SPDX-License-Identifier: Apache-2.0
"""Policies of LNet for the choice of NIs and gateways (UDSP)."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, check_outputs

from sonde.design.routes.check_lnet_policies import match_nids


def make_policies(*rows: tuple[str, str, str]) -> str:
    return "udsp:\n" + "".join(
        f"    - idx: {number}\n      src: {source}\n      dst: {destination}\n      rte: {gateways}\n"
        for number, (source, destination, gateways) in enumerate(rows)
    )


def test_policy_for_some_gateways_is_a_fault(tmp_path: Path) -> None:
    export = LNET_EXPORT + make_policies(("tcp", "NA", "10.160.14.2@tcp"))
    (fault,) = check_outputs(tmp_path, {"lnet": export}).faults
    assert (fault.kind, fault.location) == ("LNet policy", "lnet, udsp 0")
    assert "messages from tcp takes 1 of 2 gateways (10.160.14.2@tcp): others carry none" in fault.problem
    assert fault.remedy.startswith("lnetctl udsp del --idx 0")


@pytest.mark.parametrize(
    "rows",
    [
        [("tcp", "NA", "10.160.14.[1-2]@tcp")],
        [("NA", "10.150.0.[1-8]@kfi", "10.160.14.1@tcp"), ("NA", "10.150.0.[9-16]@kfi", "10.160.14.2@tcp0")],
        [("10.160.0.1@tcp", "10.150.0.1@kfi", "NA")],
    ],
)
def test_policies_for_all_gateways_are_no_fault(tmp_path: Path, rows: list[tuple[str, str, str]]) -> None:
    assert check_outputs(tmp_path, {"lnet": LNET_EXPORT + make_policies(*rows)}).faults == ()


def test_policy_for_a_foreign_gateway_has_no_effect(tmp_path: Path) -> None:
    export = LNET_EXPORT + make_policies(("NA", "NA", "10.160.14.99@tcp"))
    (fault,) = check_outputs(tmp_path, {"lnet": export}).faults
    assert "takes 0 of 2 gateways: none of them is among these, so LNet uses all" in fault.problem


def test_policy_for_one_ni_of_two_is_a_fault(tmp_path: Path) -> None:
    second = "        - nid: 10.160.0.99@tcp\n          status: up\nroute:\n"
    rows = make_policies(("10.160.0.1@tcp", "kfi", "NA"))
    faults = check_outputs(tmp_path, {"lnet": LNET_EXPORT.replace("route:\n", second, 1) + rows}).faults
    (policy,) = [fault for fault in faults if fault.kind == "LNet policy"]
    assert "from 10.160.0.1@tcp to kfi takes 1 of 2 NIs of tcp (10.160.0.1@tcp)" in policy.problem


def test_policy_of_a_network_is_not_examined(tmp_path: Path) -> None:
    check = check_outputs(tmp_path, {"lnet": LNET_EXPORT + make_policies(("tcp", "NA", "NA"))})
    assert check.faults == ()
    assert "the policy 0 of udsp (src tcp, dst NA)" in " ".join(check.not_examined)


@pytest.mark.parametrize(
    ("expression", "is_match"),
    [
        ("10.1.0.[6-9]@kfi", True), ("10.1.0.[1-5,7]@kfi", True), ("10.1.0.[1, 7]@kfi", True), ("*@kfi", True),
        ("10.1.*.[3-9/2]@kfi", True), ("kfi", True), ("10.9.0.1@kfi 10.1.0.7@kfi", True), ("10.1.0.[2-8/2]@kfi", False),
        ("10.1.0.[8-9]@kfi", False), ("10.1.0.7@tcp", False), ("tcp", False), ("", False),
    ],
)  # fmt: skip
def test_nid_ranges_match_as_in_lnet(expression: str, is_match: bool) -> None:
    assert match_nids(expression, "10.1.0.7@kfi", lambda nid: nid) is is_match
