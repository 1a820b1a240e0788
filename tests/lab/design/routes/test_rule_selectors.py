# SPDX-License-Identifier: Apache-2.0
"""Rules that take some packets only, rules that do something else than look up a table, and what they do to marks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.ip_lines import parse_rule_line
from sonde.design.routes.table_reader import parse_host_tables

MARK2 = "1001:\tfrom all fwmark 0x2 lookup 2\n"


def describe(faults: Iterable[RouteFault]) -> list[tuple[str, str]]:
    return [(fault.kind, fault.location) for fault in faults]


def check_with_rule(folder: Path, rule: str, replaced: str = "") -> tuple[RouteFault, ...]:
    """The faults of the server after a rule is added or replaces another one."""
    outputs = print_server_outputs()
    assert replaced in outputs["rule"]
    outputs["rule"] = outputs["rule"].replace(replaced, rule) if replaced else outputs["rule"] + rule
    return check_outputs(folder, outputs).faults


@pytest.mark.parametrize("selector", [
    "tos 0x10", "dsfield 0x10", "oif bond0", "iif bond0", "iif old0 [detached]", "sport 988", "dport 988-990",
    "ipproto tcp", "uidrange 0-0", "tun_id 4",
])  # fmt: skip
def test_rule_of_a_mark_with_selectors_is_no_rule_of_the_mark(tmp_path: Path, selector: str) -> None:
    rule = MARK2.replace("fwmark 0x2", f"fwmark 0x2 {selector}")
    (fault,) = check_with_rule(tmp_path, rule, MARK2)
    assert fault.kind == "mark without a rule"
    assert "rule, line 3 only takes packets with" in fault.problem


@pytest.mark.parametrize(("change", "expected_text"), [
    ("from 10.160.0.9", "from 10.160.0.9"), ("from all to 10.150.3.0/24", "to 10.150.3.0/24"),
])  # fmt: skip
def test_rule_of_a_mark_for_some_addresses_is_reported(tmp_path: Path, change: str, expected_text: str) -> None:
    (fault,) = check_with_rule(tmp_path, MARK2.replace("from all", change), MARK2)
    assert fault.kind == "mark without a rule"
    assert expected_text in fault.problem


@pytest.mark.parametrize("action", ["goto 32767", "goto 40000 [unresolved]", "nop"])
def test_rule_of_a_mark_without_its_table_is_reported(tmp_path: Path, action: str) -> None:
    faults = check_with_rule(tmp_path, MARK2.replace("lookup 2", action), MARK2)
    assert describe(faults) == [("mark without a rule", "rules")]


@pytest.mark.parametrize("action", ["blackhole", "prohibit", "unreachable"])
def test_rule_of_a_mark_that_discards_is_reported_once(tmp_path: Path, action: str) -> None:
    faults = check_with_rule(tmp_path, MARK2.replace("lookup 2", action), MARK2)
    assert describe(faults) == [("traffic discarded", "rule, line 3")]
    assert "mark 2 of gw2" in faults[0].problem


@pytest.mark.parametrize(("rule", "fault_kind", "expected_text"), [
    (MARK2.replace("lookup 2", "lookup main"), "mark of several routers", "table main spreads them over gw1, gw2, gw3"),
    (MARK2.replace("lookup 2", "lookup 3"), "mark of another router", "leads to gw3:"),
    (MARK2.replace("lookup 2", "lookup 2 suppress_prefixlength 16"), "mark without effect", "suppress_prefixlength 16"),
    (f"900:\tfrom all lookup main\n{MARK2}", "mark without effect", "comes after rule, line 3"),
])  # fmt: skip
def test_mark_led_elsewhere_is_reported(tmp_path: Path, rule: str, fault_kind: str, expected_text: str) -> None:
    faults = check_with_rule(tmp_path, rule, MARK2)
    assert {fault.kind for fault in faults} == {fault_kind}
    assert expected_text in faults[0].problem


def test_throw_route_in_the_table_of_a_mark_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] += "throw 10.150.4.0/24 table 2\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "mark without effect"
    assert "throw" in fault.problem


@pytest.mark.parametrize("rule", [
    "500:\tfrom all nop\n", "500:\tfrom all goto 600 [unresolved]\n", "500:\tfrom all iif old0 [detached] lookup 1\n",
    "500:\tfrom all iif eth9 lookup 1\n", "500:\tfrom all goto 1000\n",
])  # fmt: skip
def test_rule_that_takes_no_packet_of_the_host_is_no_fault(tmp_path: Path, rule: str) -> None:
    assert check_with_rule(tmp_path, rule) == ()


@pytest.mark.parametrize(("rule", "fault_kind", "expected_text"), [
    ("500:\tfrom all tos 0x10 lookup 1\n", "traffic diverted", "with tos 0x10"),
    ("500:\tfrom all ipproto tcp dport 988 unreachable\n", "traffic discarded", "with ipproto tcp dport 988"),
    ("500:\tnot from all fwmark 0x1 lookup 4\n", "traffic diverted", "table 4"),
    ("500:\tfrom all fwmark 0/0xff lookup 1\n", "traffic diverted", "table 1"),
    ("500:\tfrom all fwmark 0/0x1 lookup 2\n", "traffic diverted", "table 2"),
    ("500:\tfrom all goto 32767\n", "no route", "goto 32767"),
])  # fmt: skip
def test_rule_that_takes_packets_from_the_plan_is_reported(
    tmp_path: Path, rule: str, fault_kind: str, expected_text: str
) -> None:
    faults = check_with_rule(tmp_path, rule)
    assert {fault.kind for fault in faults} == {fault_kind}
    assert expected_text in faults[0].problem


def test_selecting_rule_does_not_hide_faults_of_other_packets(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["rule"] += "500:\tfrom all ipproto udp lookup 1\n"
    outputs["route"] = outputs["route"].replace("nexthop via 10.160.15.2 dev bond0 weight 1", "", 1)
    kinds = {fault.kind for fault in check_outputs(tmp_path, outputs).faults}
    assert kinds == {"traffic diverted", "router not used"}


@pytest.mark.parametrize(("row", "line"), [
    ('{"priority":5,"src":"10.0.0.0","srclen":8,"tos":"0x10","iif":"lo","sport_start":1,"sport_end":5,"table":"5"}',
     "5: from 10.0.0.0/8 tos 0x10 iif lo sport 1-5 lookup 5"),
    ('{"priority":6,"src":"all","goto":40,"unresolved":null}', "6: from all goto 40 [unresolved]"),
    ('{"priority":7,"src":"all","nop":null}', "7: from all nop"),
    ('{"priority":8,"not":null,"src":"all","fwmark":"0x3","action":"prohibit"}', "8: not from all fwmark 0x3 prohibit"),
    ('{"priority":9,"src":"all","oif":"x0","oif_detached":null,"table":"5"}', "9: from all oif x0 [detached] lookup 5"),
    ('{"priority":9,"src":"all","uid_start":0,"uid_end":7,"table":"5"}', "9: from all uidrange 0-7 lookup 5"),
    ('{"priority":1,"src":"all","l3mdev":null}', "1: from all lookup [l3mdev-table]"),
    ('{"priority":4,"src":"all","table":"4","flow_to":"3","protocol":"static"}', "4: from all lookup 4 realms 3"),
])  # fmt: skip
def test_json_of_a_rule_equals_its_line(row: str, line: str) -> None:
    (rule,) = parse_host_tables(f"[{row}]", "rules").rules or ()
    assert rule == parse_rule_line(line.split(), line, "rules, entry 1")


@pytest.mark.parametrize(("rule", "kinds"), [
    ("900:\tfrom all fwmark 0x2 lookup 2\n", ["rule repeated"]), (MARK2, []),
    ("900:\tfrom all to 10.150.0.0/16 fwmark 0x2 lookup 2\n", []),
])  # fmt: skip
def test_rule_of_a_mark_that_is_repeated_is_reported(tmp_path: Path, rule: str, kinds: list[str]) -> None:
    faults = check_with_rule(tmp_path, rule)
    assert [fault.kind for fault in faults] == kinds
    assert all("preference 900 repeats that with 1001" in fault.problem for fault in faults)
    assert all(fault.remedy == "ip rule del pref 900 fwmark 2 table 2" for fault in faults)
