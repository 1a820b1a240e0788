# SPDX-License-Identifier: Apache-2.0
"""Plans of routes: the worked example against its published listings, random fabrics against their own check."""

from __future__ import annotations

import configparser
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml
from fabric_builders import build_fabric, find_direction_faults
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.configurations import (
    make_ansible_files,
    make_keyfile_files,
    make_lnet_files,
    make_networkd_files,
    make_nmstate_files,
)
from sonde.design.routes.diagram import draw_fabric
from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import HostPlan, plan_routes
from sonde.design.routes.scripts import (
    make_host_script,
    make_network_script_files,
    make_route_arguments,
    make_router_script,
    make_rule_arguments,
)
from sonde.design.routes.table_reader import parse_host_tables, read_host_tables
from sonde.model.errors import UserError
from sonde.model.shell import quote_command
from sonde.model.system import make_system, read_system

ROOT = Path(__file__).resolve().parents[4]
LISTINGS = ROOT / "tests" / "data" / "routes"


def make_planned_tables(host: HostPlan) -> HostTables:
    """The tables of a host after the plan is applied, from the commands that apply it."""
    ip = "ip -6" if host.version == 6 else "ip"
    commands = [f"{ip} route add {quote_command(make_route_arguments(route, host.mtu))}" for route in host.routes]
    commands += [f"{ip} rule add {quote_command(make_rule_arguments(rule))}" for rule in host.rules]
    return parse_host_tables("\n".join(commands), "plan")


def test_cumulus_has_published_addresses(cumulus: Fabric) -> None:
    assert [router.near_address for router in cumulus.routers] == [f"10.100.0.{k}" for k in range(91, 97)]
    assert [router.far_address for router in cumulus.routers] == [f"10.10.1.{k}" for k in range(91, 97)]
    assert {host_class.name: (host_class.device, len(host_class.hosts)) for host_class in cumulus.near.classes}[
        "compute"
    ] == ("ipogif0", 112)


def test_compute_routes_equal_correct_part_of_listing(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus).find_host_plan("compute")
    published = read_host_tables([LISTINGS / "compute-route-show"]).routes
    planned = make_planned_tables(plan).routes
    assert published is not None
    assert planned is not None
    assert [route.hops for route in planned if route.table == "main"] == [
        route.hops for route in published if route.table == "main"
    ]

    def by_table(routes: object) -> dict[str, list[str]]:
        return {
            route.table: [hop.via for hop in route.hops]
            for route in routes  # type: ignore[attr-defined]
            if route.table != "main" and route.hops
        }

    assert by_table(planned) == by_table(published) == {str(k): [f"10.100.0.{90 + k}"] for k in range(1, 7)}


def test_server_files_equal_correct_part_of_listing(cumulus: Fabric) -> None:
    files = make_network_script_files(plan_routes(cumulus).find_host_plan("wolf-servers"))
    assert set(files) == {"etc/sysconfig/network-scripts/rule-ib1", "etc/sysconfig/network-scripts/route-ib1"}
    planned_text = files["etc/sysconfig/network-scripts/route-ib1"]
    published_text = (LISTINGS / "storage-route-interface").read_text()
    multipath = re.compile(r"10\.100\.0\.0/16 scope global \\\n(?:nexthop dev ib1 via \S+(?: \\)?\n?){6}")
    # equal text, once the next hops have the addresses of the listing's tables
    (planned_route,), (published_route,) = multipath.findall(planned_text), multipath.findall(published_text)
    assert planned_route.strip() == re.sub(r"10\.10\.0\.1(\d)", r"10.10.1.9\1", published_route).strip()
    for table in range(1, 7):
        assert f"via 10.10.1.9{table} dev ib1 table {table}" in planned_text
        assert f"default via 10.10.1.9{table} table {table}" in published_text
        assert f"10.10.1.0/24 dev ib1 scope link table {table}" in planned_text, (
            "the network of this side, not the far one"
        )


def test_cumulus_plan_has_no_fault(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    for host in plan.host_plans:
        assert check_host_routes([cumulus], host.name, make_planned_tables(host)).faults == ()
    assert (
        find_direction_faults(
            cumulus,
            make_planned_tables(plan.find_host_plan("compute")),
            make_planned_tables(plan.find_host_plan("wolf-servers")),
        )
        == []
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 16), st.integers(1, 5), st.integers(1, 4), st.sampled_from([4, 6]))
def test_every_host_reaches_other_side_by_every_router(routers: int, clients: int, servers: int, version: int) -> None:
    fabric = build_fabric(routers, clients, servers, ip_version=version)
    plan = plan_routes(fabric)
    for own_side, other_side in ((fabric.near, fabric.far), (fabric.far, fabric.near)):
        gateways = [router.near_address if own_side is fabric.near else router.far_address for router in fabric.routers]
        for host_class in own_side.classes:
            host = plan.find_host_plan(host_class.name)
            (main,) = [route for route in host.routes if route.table == "main"]
            assert [hop.via for hop in main.hops] == gateways
            assert main.destination == other_side.ranges[0]
            for rule, gateway in zip(host.rules, gateways, strict=True):
                onward = [route for route in host.routes if route.table == rule.table and route.hops]
                assert [(route.destination, route.hops[0].via) for route in onward] == [(other_side.ranges[0], gateway)]
            assert check_host_routes([fabric], host_class.name, make_planned_tables(host)).faults == ()
    assert (
        find_direction_faults(
            fabric,
            make_planned_tables(plan.find_host_plan("clients")),
            make_planned_tables(plan.find_host_plan("stores")),
        )
        == []
    )


def test_standby_routers_have_route_of_higher_metric() -> None:
    document = read_system(ROOT / "systems" / "cumulus.toml")
    fabric = find_fabrics(document)[0]
    routers = (
        *fabric.routers[:4],
        *(type(router)(**{**router.__dict__, "priority": 1}) for router in fabric.routers[4:]),
    )
    plan = plan_routes(type(fabric)(fabric.name, 4, fabric.near, fabric.far, routers))
    main = [route for route in plan.find_host_plan("compute").routes if route.table == "main"]
    assert [(len(route.hops), route.metric) for route in main] == [(4, None), (2, 101)]


def test_scripts_contain_all_routes_and_rules(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    text = make_host_script(plan, plan.host_plans[0], "routes-compute.sh")
    assert text.count("ip route replace") == len(plan.host_plans[0].routes)
    assert text.count("ip rule add") == 6
    assert "net.ipv4.ip_forward=1" in make_router_script(plan, "routes-routers.sh")
    assert "! " not in text


def test_other_formats_contain_same_routes(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    host = plan.find_host_plan("wolf-servers")
    unit = next(
        text for name, text in make_networkd_files(host).items() if name.endswith(".conf") and "network.d" in name
    )
    assert re.findall(r"MultiPathRoute=(\S+)@ib1 1", unit) == [router.far_address for router in cumulus.routers]
    assert unit.count("[RoutingPolicyRule]") == 6
    profile = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    profile.read_string(next(text for name, text in make_keyfile_files(host).items() if name.endswith(".nmconnection")))
    routes = [value for name, value in profile["ipv4"].items() if re.fullmatch(r"route\d+", name)]
    assert [route for route in routes if route.startswith("10.100.0.0/16")][-6:] == [
        f"10.100.0.0/16,{router.far_address}" for router in cumulus.routers
    ]
    assert profile["connection"]["interface-name"] == "ib1"
    state = yaml.safe_load(next(iter(make_nmstate_files(host).values())))
    weighted = [route["next-hop-address"] for route in state["routes"]["config"] if "weight" in route]
    assert weighted == [router.far_address for router in cumulus.routers]
    plays = yaml.safe_load(make_ansible_files([plan])["routes.yml"])
    assert [play["hosts"] for play in plays] == ["compute", "logins", "wolf-servers", "routers"]
    sources = [play["tasks"][0]["ansible.builtin.copy"]["src"] for play in plays]
    assert set(sources) <= set(make_ansible_files([plan]))


def test_lnet_gateways_are_on_other_network_than_target() -> None:
    files = make_lnet_files(read_system(ROOT / "systems" / "edison.toml"))
    for text in files.values():
        routes = yaml.safe_load(text)["route"]
        assert routes
        for route in routes:
            assert route["gateway"].partition("@")[2] != route["net"]
    with pytest.raises(UserError, match="no LNet router"):
        make_lnet_files(read_system(ROOT / "systems" / "cumulus.toml"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"routers": []}, "has no router that forwards IP"),
        ({"nodes": []}, "has no router that forwards IP"),
        ({"routers.between": ["near"]}, "joins 1 networks"),
        ({"routers.interfaces": "far only"}, "join one network only"),
        ({"nodes.device": ""}, "without a device name"),
        ({"routers.twice": True}, "has 2 IPv4 addresses on near"),
    ],
)
def test_unplannable_system_is_one_sentence(change: dict[str, object], message: str) -> None:
    router_ends = [
        {"network": "near", "device": "eth0", "addresses": "10.1.0.1"},
        {"network": "far", "device": "eth1", "addresses": "10.2.0.1"},
    ]
    router: dict[str, Any] = {"id": "router1", "protocol": "ip", "between": ["near", "far"], "interfaces": router_ends}
    client_end = {"network": "near", "device": "eth0", "addresses": "10.1.0.100"}
    document: dict[str, Any] = {
        "schema": "sonde-system/2",
        "id": "made",
        "networks": [
            {"id": "near", "kind": "ethernet", "addresses": ["10.1.0.0/16"]},
            {"id": "far", "kind": "ethernet", "addresses": ["10.2.0.0/16"]},
        ],
        "nodes": [{"id": "client1", "interfaces": [client_end]}],
        "servers": [{"id": "store1", "interfaces": [{"network": "far", "device": "eth1", "addresses": "10.2.0.100"}]}],
        "routers": [router],
    }
    for member, value in change.items():
        if member in ("routers", "nodes"):
            document[member] = value
        elif member == "routers.between":
            router["between"] = value
        elif member == "routers.interfaces":
            router["interfaces"] = router_ends[1:]
        elif member == "routers.twice":
            router_ends.append({"network": "near", "device": "eth2", "addresses": "10.1.0.2"})
        else:
            del client_end["device"]
    with pytest.raises(UserError) as reason:
        find_fabrics(make_system(document, "made.toml"))
    assert message in str(reason.value)
    assert "\n" not in str(reason.value)


def test_drawing_shows_every_router_with_both_addresses(cumulus: Fabric) -> None:
    picture = ElementTree.fromstring(draw_fabric(cumulus))
    texts = [text for element in picture.iter("{http://www.w3.org/2000/svg}text") for text in element.itertext()]
    for router in cumulus.routers:
        assert any(text.startswith(router.name) for text in texts)
        assert f"{router.near_address}  |  {router.far_address}" in texts
    assert "compute: 112 hosts" in texts
    assert sum(element.get("class") == "link" for element in picture.iter("{http://www.w3.org/2000/svg}path")) == 12


def test_wrong_site_settings_are_omitted_with_a_note(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    planned = plan.find_host_plan("wolf-servers").settings
    assert planned["net.core.rmem_max"] == "536870912"
    assert "net.ipv4.tcp_mem" not in planned
    assert planned["net.ipv4.tcp_low_latency"] == "1", "its kernel, of RHEL 7, has it"
    notes = " ".join(plan.notes)
    assert "wolf-servers: net.ipv4.tcp_tw_recycle = 1 is kept, but it drops connections" in notes
    assert "net.ipv4.tcp_timestamps = 0 is kept, but" in notes
    assert "Kernels of all hosts need CONFIG_IP_ADVANCED_ROUTER" in notes


def test_slingshot_site_plans_ipv4_ipv6_and_lnet() -> None:
    site = read_system(ROOT / "systems" / "slingshot-routed.toml")
    both = find_fabrics(site)
    assert [(fabric.version, len(fabric.routers), len(fabric.near.classes[0].hosts)) for fabric in both] == [
        (4, 16, 1024),
        (6, 16, 1024),
    ]
    for fabric in both:
        for host in plan_routes(fabric).host_plans:
            assert check_host_routes([fabric], host.name, make_planned_tables(host)).faults == ()
    (near, far) = (yaml.safe_load(text)["route"] for text in make_lnet_files(site).values())
    assert [route["gateway"] for route in near] == [f"10.150.254.{k}@kfi" for k in range(1, 17)]
    assert {route["net"] for route in far} == {"kfi"}
