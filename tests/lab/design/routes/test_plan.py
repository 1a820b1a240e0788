# SPDX-License-Identifier: Apache-2.0
"""Plans of routes: the worked example against its published listings, and random topologies against their own check."""

from __future__ import annotations

import configparser
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from made_fabric import made

from sonde.design.routes.check import check_both, check_host
from sonde.design.routes.configurations import ansible_files, keyfile_files, lnet_files, networkd_files, nmstate_files
from sonde.design.routes.diagram import diagram
from sonde.design.routes.fabric import Fabric, fabrics
from sonde.design.routes.plan import HostPlan, plan_routes
from sonde.design.routes.scripts import host_script, legacy_files, route_words, router_script, rule_words
from sonde.design.routes.tables import HostTables, read_tables, read_text
from sonde.model.errors import UserError
from sonde.model.system import read_system, system_from_document

ROOT = Path(__file__).resolve().parents[4]
LISTINGS = ROOT / "tests" / "data" / "routes"


def as_seen(host: HostPlan) -> HostTables:
    """What a host has once the plan is applied, by way of the words that apply it."""
    words = [f"ip route add {route_words(route, host.mtu)}" for route in host.routes]
    words += [f"ip rule add {rule_words(rule)}" for rule in host.rules]
    return read_text("\n".join(words), "plan")


def test_the_worked_example_has_the_published_numbers(cumulus: Fabric) -> None:
    assert [way.near for way in cumulus.ways] == [f"10.100.0.{k}" for k in range(91, 97)]
    assert [way.far for way in cumulus.ways] == [f"10.10.1.{k}" for k in range(91, 97)]
    assert {one.name: (one.device, len(one.hosts)) for one in cumulus.near.classes}["compute"] == ("ipogif0", 112)


def test_routes_of_compute_nodes_equal_the_listing_where_it_is_right(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus).of("compute")
    listed = read_tables([LISTINGS / "compute-route-show"]).routes
    planned = as_seen(plan).routes
    assert listed is not None
    assert planned is not None
    assert [one.hops for one in planned if one.table == "main"] == [one.hops for one in listed if one.table == "main"]

    def by_table(routes: object) -> dict[str, list[str]]:
        return {
            one.table: [hop.via for hop in one.hops]
            for one in routes  # type: ignore[attr-defined]
            if one.table != "main" and one.hops
        }

    assert by_table(planned) == by_table(listed) == {str(k): [f"10.100.0.{90 + k}"] for k in range(1, 7)}


def test_files_of_storage_servers_equal_the_listing_where_it_is_right(cumulus: Fabric) -> None:
    files = legacy_files(plan_routes(cumulus).of("wolf-servers"))
    assert set(files) == {"etc/sysconfig/network-scripts/rule-ib1", "etc/sysconfig/network-scripts/route-ib1"}
    ours = files["etc/sysconfig/network-scripts/route-ib1"]
    theirs = (LISTINGS / "storage-route-interface").read_text()
    multipath = re.compile(r"10\.100\.0\.0/16 scope global \\\n(?:nexthop dev ib1 via \S+(?: \\)?\n?){6}")
    # word for word, once the next hops have the one set of addresses that the listing's tables have
    (own,), (listed,) = multipath.findall(ours), multipath.findall(theirs)
    assert own.strip() == re.sub(r"10\.10\.0\.1(\d)", r"10.10.1.9\1", listed).strip()
    for table in range(1, 7):
        assert f"via 10.10.1.9{table} dev ib1 table {table}" in ours
        assert f"default via 10.10.1.9{table} table {table}" in theirs
        assert f"10.10.1.0/24 dev ib1 scope link table {table}" in ours, "the network of this side, not the far one"


def test_a_plan_checked_has_no_fault(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    for host in plan.hosts:
        assert check_host(cumulus, host.name, as_seen(host)).faults == ()
    assert check_both(cumulus, as_seen(plan.of("compute")), as_seen(plan.of("wolf-servers"))) == []


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 16), st.integers(1, 5), st.integers(1, 4), st.sampled_from([4, 6]))
def test_every_host_reaches_the_other_side_by_every_router_and_replies_return(
    routers: int, clients: int, servers: int, version: int
) -> None:
    fabric = made(routers, clients, servers, version=version)
    plan = plan_routes(fabric)
    for own, other in ((fabric.near, fabric.far), (fabric.far, fabric.near)):
        gateways = [way.near if own is fabric.near else way.far for way in fabric.ways]
        for group in own.classes:
            host = plan.of(group.name)
            (main,) = [route for route in host.routes if route.table == "main"]
            assert [hop.via for hop in main.hops] == gateways
            assert main.to == other.ranges[0]
            for rule, gateway in zip(host.rules, gateways, strict=True):
                onward = [route for route in host.routes if route.table == rule.table and route.hops]
                assert [(route.to, route.hops[0].via) for route in onward] == [(other.ranges[0], gateway)]
            assert check_host(fabric, group.name, as_seen(host)).faults == ()
    assert check_both(fabric, as_seen(plan.of("clients")), as_seen(plan.of("stores"))) == []


def test_a_standby_router_has_a_route_of_its_own_behind_the_others() -> None:
    document = read_system(ROOT / "systems" / "cumulus.toml")
    fabric = fabrics(document)[0]
    ways = (*fabric.ways[:4], *(type(way)(**{**way.__dict__, "priority": 1}) for way in fabric.ways[4:]))
    plan = plan_routes(type(fabric)(fabric.name, 4, fabric.near, fabric.far, ways))
    main = [route for route in plan.of("compute").routes if route.table == "main"]
    assert [(len(route.hops), route.metric) for route in main] == [(4, None), (2, 101)]


def test_scripts_say_what_they_do_and_refuse_what_they_do_not_know(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    text = host_script(plan, plan.hosts[0], "routes-compute.sh")
    assert text.count("ip route replace") == len(plan.hosts[0].routes)
    assert text.count("ip rule add") == 6
    assert "net.ipv4.ip_forward=1" in router_script(plan, "routes-routers.sh")
    assert "! " not in text


def test_other_forms_say_the_same_routes(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    host = plan.of("wolf-servers")
    unit = next(text for name, text in networkd_files(host).items() if name.endswith(".conf") and "network.d" in name)
    assert re.findall(r"MultiPathRoute=(\S+)@ib1 1", unit) == [way.far for way in cumulus.ways]
    assert unit.count("[RoutingPolicyRule]") == 6
    profile = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    profile.read_string(next(text for name, text in keyfile_files(host).items() if name.endswith(".nmconnection")))
    routes = [value for name, value in profile["ipv4"].items() if re.fullmatch(r"route\d+", name)]
    assert [one for one in routes if one.startswith("10.100.0.0/16")][-6:] == [
        f"10.100.0.0/16,{way.far}" for way in cumulus.ways
    ]
    assert profile["connection"]["interface-name"] == "ib1"
    state = yaml.safe_load(next(iter(nmstate_files(host).values())))
    weighted = [one["next-hop-address"] for one in state["routes"]["config"] if "weight" in one]
    assert weighted == [way.far for way in cumulus.ways]
    plays = yaml.safe_load(ansible_files(plan)["routes.yml"])
    assert [play["hosts"] for play in plays] == ["compute", "logins", "wolf-servers", "routers"]
    sources = [play["tasks"][0]["ansible.builtin.copy"]["src"] for play in plays]
    assert set(sources) <= set(ansible_files(plan))


def test_lnet_routes_name_each_gateway_by_its_id_on_this_side() -> None:
    files = lnet_files(read_system(ROOT / "systems" / "edison.toml"))
    for text in files.values():
        routes = yaml.safe_load(text)["route"]
        assert routes
        for route in routes:
            assert route["gateway"].partition("@")[2] != route["net"]
    with pytest.raises(UserError, match="no LNet router"):
        lnet_files(read_system(ROOT / "systems" / "cumulus.toml"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"routers": []}, "has no router that forwards IP"),
        ({"nodes": []}, "has no router that forwards IP"),
        ({"routers.between": ["near"]}, "joins 1 networks"),
        ({"routers.interfaces": "far only"}, "join one network only"),
        ({"nodes.device": ""}, "without a device name"),
        ({"routers.twice": True}, "has 2 IPv4 addresses on near"),
    ],
)
def test_a_system_that_cannot_be_planned_is_one_sentence(change: dict[str, object], said: str) -> None:
    router_ends = [
        {"network": "near", "device": "eth0", "addresses": "10.1.0.1"},
        {"network": "far", "device": "eth1", "addresses": "10.2.0.1"},
    ]
    router: dict[str, Any] = {"id": "router1", "protocol": "ip", "between": ["near", "far"], "interfaces": router_ends}
    client_end = {"network": "near", "device": "eth0", "addresses": "10.1.0.100"}
    document: dict[str, Any] = {
        "schema": "sonde-system/1",
        "id": "made",
        "networks": [
            {"id": "near", "kind": "ethernet", "addresses": ["10.1.0.0/16"]},
            {"id": "far", "kind": "ethernet", "addresses": ["10.2.0.0/16"]},
        ],
        "nodes": [{"id": "client1", "interfaces": [client_end]}],
        "servers": [{"id": "store1", "interfaces": [{"network": "far", "device": "eth1", "addresses": "10.2.0.100"}]}],
        "routers": [router],
    }
    for place, value in change.items():
        if place in ("routers", "nodes"):
            document[place] = value
        elif place == "routers.between":
            router["between"] = value
        elif place == "routers.interfaces":
            router["interfaces"] = router_ends[1:]
        elif place == "routers.twice":
            router_ends.append({"network": "near", "device": "eth2", "addresses": "10.1.0.2"})
        else:
            del client_end["device"]
    with pytest.raises(UserError) as reason:
        fabrics(system_from_document(document, "made.toml"))
    assert said in str(reason.value)
    assert "\n" not in str(reason.value)


def test_the_picture_shows_every_router_with_both_addresses(cumulus: Fabric) -> None:
    picture = ElementTree.fromstring(diagram(cumulus))
    words = [text for one in picture.iter("{http://www.w3.org/2000/svg}text") for text in one.itertext()]
    for way in cumulus.ways:
        assert any(word.startswith(way.router) for word in words)
        assert f"{way.near}  |  {way.far}" in words
    assert "compute: 112 hosts" in words
    assert sum(one.get("class") == "link" for one in picture.iter("{http://www.w3.org/2000/svg}path")) == 12


def test_of_the_settings_of_a_site_the_wrong_ones_are_left_out_and_told(cumulus: Fabric) -> None:
    plan = plan_routes(cumulus)
    planned = plan.of("wolf-servers").settings
    assert planned["net.core.rmem_max"] == "536870912"
    assert {"net.ipv4.tcp_tw_recycle", "net.ipv4.tcp_mem", "net.ipv4.tcp_low_latency"}.isdisjoint(planned)
    notes = " ".join(plan.notes)
    assert "wolf-servers: net.ipv4.tcp_tw_recycle = 1 is left out: removed in Linux 4.12" in notes
    assert "net.ipv4.tcp_timestamps = 0 is kept, but" in notes
    assert "Kernels of all hosts need CONFIG_IP_ADVANCED_ROUTER" in notes


def test_a_present_day_site_has_sixteen_routers_two_versions_of_ip_and_lnet_beside() -> None:
    site = read_system(ROOT / "systems" / "slingshot-routed.toml")
    both = fabrics(site)
    assert [(one.version, len(one.ways), len(one.near.classes[0].hosts)) for one in both] == [
        (4, 16, 1024),
        (6, 16, 1024),
    ]
    for fabric in both:
        for host in plan_routes(fabric).hosts:
            assert check_host(fabric, host.name, as_seen(host)).faults == ()
    (near, far) = (yaml.safe_load(text)["route"] for text in lnet_files(site).values())
    assert [route["gateway"] for route in near] == [f"10.150.254.{k}@kfi" for k in range(1, 17)]
    assert {route["net"] for route in far} == {"kfi"}
