# SPDX-License-Identifier: Apache-2.0
"""LNet exports: routes, NIs and forwarding of hosts and LNet routers, together with the tables of IP."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, ROUTER_EXPORT, check_outputs, print_server_outputs

from sonde.model.errors import UserError


def test_interface_on_a_routed_network_explains_its_missing_routes(tmp_path: Path) -> None:
    """LNet refuses a route to a network on which it has an NI."""
    export = LNET_EXPORT[: LNET_EXPORT.index("route:")] + LNET_EXPORT[LNET_EXPORT.index("routing:") :]
    local = "    - net type: kfi\n      local NI(s):\n        - nid: 192.168.9.7@kfi\n          status: up\n"
    export = export.replace("routing:", f"{local}          interfaces:\n              0: mgmt\nroute:\nrouting:")
    (fault,) = check_outputs(tmp_path, {"lnet.yaml": export}).faults
    assert fault.kind == "LNet NI not planned"
    assert "accepts no route to it: messages to its hosts leave by mgmt, not by the gateways" in fault.problem
    assert "lnetctl net del --net kfi --if mgmt, then add the routes of the plan" in fault.remedy


@pytest.mark.parametrize("name", ["nsd1", "stores", "storage-net"])
def test_healthy_lnet_host_has_no_fault(tmp_path: Path, name: str) -> None:
    verdict = check_outputs(tmp_path, {"lnet": LNET_EXPORT}, name)
    assert verdict.faults == ()
    assert verdict.comparisons
    assert not any(text.endswith("of LNet") for text in verdict.not_examined)
    assert "a tunable of LNet" in {item.subject for item in verdict.comparisons}


@pytest.mark.parametrize("name", ["lnet1", "lnet-routers"])
def test_lnet_router_needs_no_route_to_connected_networks(tmp_path: Path, name: str) -> None:
    verdict = check_outputs(tmp_path, {"lnet": ROUTER_EXPORT}, name)
    assert verdict.faults == ()
    assert {item.subject for item in verdict.comparisons} >= {"LNet routing", "the NIDs of an LNet network"}


@pytest.mark.parametrize(
    ("export", "name", "old", "new", "fault_kind", "texts"),
    [
        (LNET_EXPORT, "nsd1", "0: bond0", "0: mgmt", "LNet interface differs", ("mgmt", "bond0")),
        (LNET_EXPORT, "stores", "0: bond0", "0: mgmt", "LNet interface differs", ("mgmt", "bond0")),
        (LNET_EXPORT, "nsd1", "nid: 10.160.0.1@tcp", "nid: 192.168.9.7@tcp", "LNet NID differs",
         ("192.168.9.7@tcp", "10.160.0.1@tcp")),
        (LNET_EXPORT, "stores", "nid: 10.160.0.1@tcp", "nid: 192.168.9.7@tcp", "LNet NID differs",
         ("192.168.9.7@tcp", "10.160.0.1@tcp")),
        (LNET_EXPORT, "nsd1", "1@tcp\n          status: up", "1@tcp\n          status: down", "LNet NI down",
         ("10.160.0.1@tcp",)),
        (LNET_EXPORT, "nsd1", "enable: 0", "enable: 1", "LNet routing on", ("no LNet router",)),
        (ROUTER_EXPORT, "lnet1", "enable: 1", "enable: 0", "LNet routing off", ("forwards no message",)),
        (ROUTER_EXPORT, "lnet-routers", "enable: 1", "enable: 0", "LNet routing off", ("forwards no message",)),
        (ROUTER_EXPORT, "lnet1", "0: cxi0", "0: cxi1", "LNet interface differs", ("cxi1", "hsn0")),
        (ROUTER_EXPORT, "lnet1", "@kfi", "@o2ib7", "LNet NI missing",
         ("no NI is on kfi;", "10.150.254.1@kfi on hsn0", "this host has 10.150.254.1@o2ib7")),
    ],
)  # fmt: skip
def test_wrong_lnet_member_is_reported(
    tmp_path: Path, export: str, name: str, old: str, new: str, fault_kind: str, texts: tuple[str, ...]
) -> None:
    assert old in export
    faults = check_outputs(tmp_path, {"lnet": export.replace(old, new)}, name).faults
    assert [fault.kind for fault in faults] == [fault_kind]
    assert all(text in faults[0].problem for text in texts), faults


def test_net_show_leaves_lnet_routes_unknown(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, {"lnet": LNET_EXPORT.partition("route:")[0]})
    assert verdict.faults == ()
    assert {"LNet routes", "LNet routing"} <= set(verdict.unknown)


def test_lnet_file_does_not_hide_the_other_files(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    both = check_outputs(tmp_path, {"lnet": LNET_EXPORT, **outputs})
    alone = check_outputs(tmp_path, outputs)
    assert both.faults == alone.faults == ()
    assert set(alone.comparisons) < set(both.comparisons)
    outputs["addr"] = outputs["addr"].replace(
        "UP,LOWER_UP> mtu 9000 qdisc noqueue", "UP,LOWER_UP> mtu 1500 qdisc noqueue"
    )
    wrong = LNET_EXPORT.replace("0: bond0", "0: mgmt")
    faults = check_outputs(tmp_path, {**outputs, "lnet": wrong}).faults
    assert {fault.kind for fault in faults} == {"MTU mismatch", "LNet interface differs"}


def test_unused_files_are_reported(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, {"lnet": ROUTER_EXPORT, "rule": print_server_outputs()["rule"]}, "lnet1")
    assert verdict.faults == ()
    assert any(text.startswith("the files of ip and sysctl") for text in verdict.not_examined)
    with pytest.raises(UserError, match="Did you mean"):
        check_outputs(tmp_path, {"lnet": ROUTER_EXPORT, "rule": print_server_outputs()["rule"]}, "store")


def test_interface_on_a_foreign_device_is_reported(tmp_path: Path) -> None:
    extra = (
        "        - nid: 192.168.9.7@tcp\n          status: up\n          interfaces:\n              0: mgmt\n"
        "    - net type: o2ib7\n      local NI(s):\n        - nid: 10.9.9.9@o2ib7\n          status: up\n"
    )
    faults = check_outputs(tmp_path, {"lnet": LNET_EXPORT.replace("route:\n", f"{extra}route:\n", 1)}).faults
    assert [fault.kind for fault in faults] == ["LNet NI not planned"] * 2
    assert "192.168.9.7@tcp on mgmt is an NI of this host, which has 10.160.0.1@tcp only on tcp" in faults[0].problem
    assert "10.9.9.9@o2ib7 on an unknown device is an NI of this host, which has NIs on tcp only" in faults[1].problem


def test_boot_file_of_lnet_is_compared_with_the_plan(tmp_path: Path) -> None:
    routes = [f"- net: kfi\n  gateway: 10.160.14.{number}@tcp\n" for number in (1, 2)]
    healthy = check_outputs(tmp_path, {"export": LNET_EXPORT, "lnet.conf": "route:\n" + "".join(routes)})
    assert healthy.faults == ()
    (fault,) = check_outputs(tmp_path, {"export": LNET_EXPORT, "lnet.conf": f"route:\n{routes[0]}"}).faults
    assert (fault.kind, fault.location) == (
        "LNet route missing", "kfi by 10.160.14.2@tcp in the configuration files"
    )  # fmt: skip
    assert fault.remedy == "add the gateways to the routes in lnet.conf; the running host has these routes"
    (alone,) = check_outputs(tmp_path / "alone", {"lnet.conf": f"route:\n{routes[0]}"}).faults
    assert alone.location == "kfi by 10.160.14.2@tcp"


SECOND_GATEWAY = "gateway: 10.160.14.2@tcp"
WRONG_FILE = f"route:\n- net: kfi\n  gateway: 10.160.14.1@tcp\n- net: kfi\n  {SECOND_GATEWAY}1\n"


def test_missing_route_with_its_cause_in_the_file_is_one_fault(tmp_path: Path) -> None:
    second = LNET_EXPORT[LNET_EXPORT.rindex("    - net: kfi") : LNET_EXPORT.index("routing:")]
    export = LNET_EXPORT.replace(second, "")
    (fault,) = check_outputs(tmp_path, {"export": export, "lnet.conf": WRONG_FILE}).faults
    assert (fault.kind, fault.location) == ("LNet route missing", "kfi by 10.160.14.2@tcp")
    assert "in lnet.conf, route 2 the route to kfi by 10.160.14.2@tcp1 names no router" in fault.problem
    assert fault.remedy == (
        "lnetctl route add --net kfi --gateway 10.160.14.2@tcp;"
        " correct lnet.conf, route 2, which brings this back at the next start"
    )


def test_wrong_route_of_the_host_and_its_file_is_one_fault(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace(SECOND_GATEWAY, f"{SECOND_GATEWAY}1")
    (fault,) = check_outputs(tmp_path, {"export": export, "lnet.conf": WRONG_FILE}).faults
    assert (fault.kind, fault.location) == ("unknown LNet route", "export, route 2")
    assert fault.remedy.startswith("exchange it: lnetctl route del")
    assert fault.remedy.endswith("; correct lnet.conf, route 2, which brings this back at the next start")


def test_wrong_route_of_a_file_alone_changes_the_file(tmp_path: Path) -> None:
    (fault,) = check_outputs(tmp_path, {"export": LNET_EXPORT, "lnet.conf": WRONG_FILE}).faults
    assert fault.kind == "unknown LNet route"
    assert fault.remedy == "correct lnet.conf, route 2, which takes effect at the next start"


def test_file_with_more_wrong_routes_than_the_host_is_corrected(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace(SECOND_GATEWAY, f"{SECOND_GATEWAY}1")
    file_text = WRONG_FILE.replace("14.1@tcp", "14.1@tcp1")
    faults = check_outputs(tmp_path, {"export": export, "lnet.conf": file_text}).faults
    (fault,) = [fault for fault in faults if fault.location.startswith("lnet.conf")]
    assert fault.remedy.endswith("lnet.conf, route 2, which takes effect at the next start")


def test_boot_file_without_nids_is_read(tmp_path: Path) -> None:
    text = "net:\n- net type: tcp\n  local NI(s):\n  - interfaces:\n      0: bond0\n"
    assert check_outputs(tmp_path, {"export": LNET_EXPORT, "lnet.conf": text}).faults == ()
