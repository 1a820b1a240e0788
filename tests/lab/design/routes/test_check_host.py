# SPDX-License-Identifier: Apache-2.0
"""A server's live state and its configuration files, given together, are each held against the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, make_files_of_format, print_server_outputs

HOP = "MultiPathRoute=10.160.15.2@bond0"


def make_configuration() -> dict[str, str]:
    files = make_files_of_format("networkd")
    assert any(HOP in text for text in files.values())
    return files


@pytest.mark.parametrize("is_first", [True, False])
def test_healthy_server_with_its_configuration_has_no_fault(tmp_path: Path, is_first: bool) -> None:
    live, files = print_server_outputs(), make_configuration()
    verdict = check_outputs(tmp_path, {**files, **live} if is_first else {**live, **files})
    assert verdict.faults == ()
    assert any("configuration files" in item.subject for item in verdict.comparisons)
    assert not any("configuration files" in text for text in verdict.not_examined)


def test_router_missing_in_a_configuration_file_is_reported_with_it(tmp_path: Path) -> None:
    files = {
        name: "\n".join(line for line in text.splitlines() if not line.startswith(HOP)) + "\n"
        for name, text in make_configuration().items()
    }
    (fault,) = check_outputs(tmp_path, {**print_server_outputs(), **files}).faults
    assert fault.kind == "router not used"
    assert "routes-4.conf" in fault.location
    assert fault.location.endswith("in the configuration files")


@pytest.mark.parametrize("is_first", [True, False])
def test_setting_of_a_configuration_file_is_no_live_setting(tmp_path: Path, is_first: bool) -> None:
    name = "90-routes-bond0-ipv4.conf"
    wrong = {name: "net.ipv4.fib_multipath_hash_policy = 0\n"}
    live = print_server_outputs()
    (fault,) = check_outputs(tmp_path, {**wrong, **live} if is_first else {**live, **wrong}).faults
    assert fault.location == "net.ipv4.fib_multipath_hash_policy = 0 in the configuration files"


def test_settings_file_replaces_missing_sysctl_output(tmp_path: Path) -> None:
    live = print_server_outputs()
    live["saved.conf"] = live.pop("sysctl").replace(
        "ipv4.fib_multipath_hash_policy = 1", "ipv4.fib_multipath_hash_policy = 0"
    )
    (fault,) = check_outputs(tmp_path, live).faults
    assert fault.location == "net.ipv4.fib_multipath_hash_policy = 0"


def test_configuration_files_alone_are_one_state(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, make_configuration())
    assert verdict.faults == ()
    assert {"routes", "rules", "settings (sysctl)"} & set(verdict.unknown) == set()
    assert not any("configuration files" in item.subject for item in verdict.comparisons)


def test_absent_configuration_files_are_reported(tmp_path: Path) -> None:
    assert any("configuration files" in text for text in check_outputs(tmp_path, print_server_outputs()).not_examined)


@pytest.mark.parametrize("listing", ["rule", "rule6"])
def test_mark_without_a_rule_of_its_ip_version_is_reported(tmp_path: Path, listing: str) -> None:
    outputs = print_server_outputs()
    lines = [line for line in outputs[listing].splitlines() if "fwmark 0x2 " not in line]
    assert len(lines) == len(outputs[listing].splitlines()) - 1
    outputs[listing] = "\n".join(lines) + "\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("mark without a rule", "rules")


def test_ipv4_rules_alone_leave_ipv6_marks_unchecked(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    del outputs["rule6"]
    assert not [fault for fault in check_outputs(tmp_path, outputs).faults if fault.kind == "mark without a rule"]


@pytest.mark.parametrize(("file_format", "old", "new", "fault_kind"), [
    ("networkd", "FirewallMark=2\n", "FirewallMark=2\nTypeOfService=16\n", "mark without a rule"),
    ("networkd", "FirewallMark=2\n", "FirewallMark=2\nIncomingInterface=eth9\n", "mark without a rule"),
    ("networkd", "MTUBytes=9000\n", "MTUBytes=9000\nInitialCongestionWindow=4\n", "connections limited"),
    ("networkmanager", "fwmark 2 ", "fwmark 2 dport 988 ", "mark without a rule"),
    ("networkmanager", "mtu=9000", "mtu=9000,initcwnd=4", "connections limited"),
    ("nmstate", "fwmark: '0x2'\n", "fwmark: '0x2'\n    iif: eth9\n", "mark without a rule"),
])  # fmt: skip
def test_attribute_in_a_configuration_file_is_read(
    tmp_path: Path, file_format: str, old: str, new: str, fault_kind: str
) -> None:
    files = make_files_of_format(file_format)
    assert any(old in text for text in files.values()), list(files.values())
    assert check_outputs(tmp_path / "good", files).faults == ()
    faults = check_outputs(tmp_path / "bad", {name: text.replace(old, new) for name, text in files.items()}).faults
    assert {fault.kind for fault in faults} == {fault_kind}


@pytest.mark.parametrize("listing", ["rule", "rule6"])
@pytest.mark.parametrize("change", ["", " suppress_prefixlength 64"])
def test_main_table_is_reached_by_a_rule_of_its_ip_version(tmp_path: Path, listing: str, change: str) -> None:
    outputs = print_server_outputs()
    main = "32766:\tfrom all lookup main\n"
    assert main in outputs[listing]
    outputs[listing] = outputs[listing].replace(main, main.replace("\n", f"{change}\n") if change else "")
    assert {fault.kind for fault in check_outputs(tmp_path, outputs).faults} >= {"no route"}


@pytest.mark.parametrize("selector", ["ipproto udp", "iif eth9", "dport 988"])
def test_rule_for_some_packets_of_a_mark_is_reported(tmp_path: Path, selector: str) -> None:
    outputs = print_server_outputs()
    outputs["rule"] = outputs["rule"].replace("fwmark 0x2 ", f"fwmark 0x2 {selector} ")
    faults = check_outputs(tmp_path, outputs).faults
    assert ("mark without a rule", "rules") in [(fault.kind, fault.location) for fault in faults]


def test_narrow_route_in_a_table_is_no_missing_table(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    lines = outputs["route"].splitlines()
    line_index = next(number for number, line in enumerate(lines) if "10.160.15.2" in line and "table 2" in line)
    lines[line_index] = lines[line_index].replace("10.150.0.0/16", "10.150.0.0/29")
    outputs["route"] = "\n".join(lines) + "\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("table for a part", "table 2")
