# SPDX-License-Identifier: Apache-2.0
"""Systems with several fabrics: files and numbers of their own, a check that knows all, and every file read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fabric_builders import build_fabric

from sonde.design.checked_items import split_faults_and_comparisons
from sonde.design.routes.check import check_host_routes
from sonde.design.routes.check_lnet import check_lnet_routes
from sonde.design.routes.configurations import make_lnet_files
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import plan_all_routes, plan_routes
from sonde.design.routes.plan_files import FORMATS, make_plan_files
from sonde.design.routes.scripts import make_host_script
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError
from sonde.model.system import System, make_system, read_system

SYSTEMS = Path(__file__).resolve().parents[4] / "systems"
IP_FORMATS = [name for name in FORMATS if name != "ansible"]


def build_site(storage_networks: tuple[int, int] = (3, 3), **router_members: Any) -> System:
    """Two compute fabrics and one storage network, or one for each: the servers belong to both."""
    document: dict[str, Any] = {
        "schema": "sonde-system/2",
        "id": "site",
        "networks": [
            {"id": f"net{number}", "kind": "ethernet", "addresses": [f"10.{number}.0.0/16", f"fd0{number}::/64"],
             "mtu": "9000 B"}
            for number in (1, 2, *dict.fromkeys(storage_networks))
        ],
        "nodes": [
            {"id": f"n{number}-[1-2]", "group": f"compute{number}",
             "interfaces": make_interfaces(f"net{number}", "eth0", number, 100)}
            for number in (1, 2)
        ],
        "servers": [{"id": "store[1-2]", "group": "stores", "interfaces": [
            interface
            for index, number in enumerate(dict.fromkeys(storage_networks))
            for interface in make_interfaces(f"net{number}", f"ib{index}", number, 100)
        ]}],
        "routers": [
            {"id": f"r{number}-[1-2]", "group": f"gateways{number}", "protocol": "ip",
             "between": [f"net{number}", f"net{storage}"], **(router_members if number == 1 else {}),
             "interfaces": [*make_interfaces(f"net{number}", "eth0", number, 1),
                            *make_interfaces(f"net{storage}", "ib0", storage, 10 * number)]}
            for number, storage in enumerate(storage_networks, start=1)
        ],
    }  # fmt: skip
    return make_system(document, "site.toml")


def make_interfaces(network: str, device: str, number: int, first: int) -> list[dict[str, Any]]:
    return [
        {"network": network, "device": device, "addresses": f"10.{number}.0.[{first}-{first + 1}]"},
        {"network": network, "device": device, "addresses": f"fd0{number}::{first:x} .. fd0{number}::{first + 1:x}"},
    ]


def test_routers_of_several_fabrics_share_no_number() -> None:
    fabrics = find_fabrics(build_site())
    assert len(fabrics) == 4, "two pairs of networks, two versions"
    numbers = {router.name: (router.table, router.mark, router.preference)
               for fabric in fabrics for router in fabric.routers}  # fmt: skip
    assert numbers == {"r1-1": (1, 1, 1000), "r1-2": (2, 2, 1001), "r2-1": (3, 3, 1002), "r2-2": (4, 4, 1003)}


def test_stated_numbers_of_routers_are_used() -> None:
    (first, *_) = find_fabrics(build_site(table=100, mark=0x100, preference=5))
    assert [(router.table, router.mark, router.preference) for router in first.routers] == [
        (100, 0x100, 5), (101, 0x101, 6)
    ]  # fmt: skip
    with pytest.raises(UserError, match="table of router r1-2 is 253"):
        find_fabrics(build_site(table=252))


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_of_fabrics_do_not_overwrite_each_other(file_format: str) -> None:
    fabrics = find_fabrics(build_site())
    files = make_plan_files(plan_all_routes(fabrics), file_format, None)
    text = "\n".join(files.values())
    for fabric in fabrics:
        for router in fabric.routers:
            assert router.near_address in text, (fabric.name, "compute to storage")
            assert router.far_address in text, (fabric.name, "storage to compute")


@pytest.mark.parametrize("file_format", IP_FORMATS)
def test_check_reads_plan_of_several_fabrics(file_format: str) -> None:
    fabrics = find_fabrics(build_site())
    for name in ("compute1", "compute2", "stores"):
        files = make_plan_files(plan_all_routes(fabrics), file_format, name)
        tables = HostTables()
        for path, text in files.items():
            tables = tables.merge_tables(parse_host_tables(text, path))
        verdict = check_host_routes(fabrics, name, tables)
        assert verdict.faults == ()
        assert len([item for item in verdict.comparisons if item.subject == "the way to the other side"]) >= 2
    without_second = {path: text for path, text in files.items() if "fd02" not in text and "10.2." not in text}
    tables = HostTables()
    for path, text in without_second.items():
        tables = tables.merge_tables(parse_host_tables(text, path))
    if without_second and tables.routes:
        assert "no route" in {fault.kind for fault in check_host_routes(fabrics, "stores", tables).faults}


@pytest.mark.parametrize("system", sorted(path.stem for path in SYSTEMS.glob("*.toml")))
@pytest.mark.parametrize("file_format", [*FORMATS, "lnet"])
def test_check_reads_all_files_of_a_plan(system: str, file_format: str) -> None:
    machine = read_system(SYSTEMS / f"{system}.toml")
    try:
        if file_format == "lnet":
            for path, text in make_lnet_files(machine).items():
                network = path.removeprefix("lnet-").removesuffix(".yaml")
                routes = parse_host_tables(text, path).lnet_routes
                faults, comparisons = split_faults_and_comparisons(check_lnet_routes(machine, network, routes or ()))
                assert faults == ()
                assert comparisons
            return
        fabrics = find_fabrics(machine)
    except UserError:
        return  # a system without such routers has no plan
    plans = plan_all_routes(fabrics)
    names = list(dict.fromkeys(host.name for plan in plans for host in plan.host_plans))
    for name in names:
        tables = HostTables()
        for path, text in make_plan_files(plans, file_format, None if file_format == "ansible" else name).items():
            if file_format != "ansible" or path == "routes.yml":
                tables = tables.merge_tables(parse_host_tables(text, path))
        verdict = check_host_routes(fabrics, name, tables)
        harmless = {"setting risky"}  # what the system file itself asks for
        assert {fault.kind for fault in verdict.faults} <= harmless
        assert bool(verdict.comparisons) == (file_format != "ansible")


def test_ipv6_active_routers_have_the_lower_metric() -> None:
    fabric = build_fabric(3, ip_version=6)
    fabric = replace(fabric, routers=(*fabric.routers[:2], replace(fabric.routers[2], priority=1)))
    host = plan_routes(fabric).find_host_plan("clients")
    main = [(len(route.hops), route.metric) for route in host.routes if route.table == "main"]
    assert main == [(2, 1024), (1, 1125)], "the kernel gives 1024 to an IPv6 route without a metric"
    assert [route.metric for route in host.active_routes] == [1024]


def test_script_deletes_only_rules_with_its_marks_and_tables() -> None:
    plan = plan_routes(build_fabric(2))
    text = make_host_script(plan, plan.host_plans[0], "routes.sh")
    deletions = [line.strip() for line in text.splitlines() if "rule del" in line]
    assert deletions
    assert all("fwmark" in line and "table" in line for line in deletions)


def test_different_lnet_routes_are_reported() -> None:
    machine = read_system(SYSTEMS / "edison.toml")
    path, text = next(iter(make_lnet_files(machine).items()))
    network = path.removeprefix("lnet-").removesuffix(".yaml")
    routes = list(parse_host_tables(text, path).lnet_routes or ())
    lines = "".join(
        f"net {route.network:>18} hops 4294967295 gw {route.gateway:>32} {'down' if number == 1 else 'up'} pri 0\n"
        for number, route in enumerate(routes[1:])
    )
    observed = parse_host_tables(lines + "net o2ib99 hops 1 gw 10.99.0.1@o2ib up pri 0\n", "route_list").lnet_routes
    faults, _ = split_faults_and_comparisons(check_lnet_routes(machine, network, observed or ()))
    assert {fault.kind for fault in faults} == {"LNet route missing", "LNet router down", "unknown LNet route"}


@pytest.mark.parametrize(("silent_router", "kinds"), [
    ("10.4.0.20", {"wrong device", "router does not answer"}), ("10.3.0.10", {"wrong device"}),
])  # fmt: skip
def test_silent_router_with_a_correct_device_is_reported(silent_router: str, kinds: set[str]) -> None:
    fabrics = find_fabrics(build_site((3, 4)))
    tables = HostTables()
    for path, text in make_plan_files(plan_all_routes(fabrics), "iproute2", "stores").items():
        tables = tables.merge_tables(parse_host_tables(text.replace("10.3.0.10 dev ib0", "10.3.0.10 dev ib1"), path))
    tables = tables.merge_tables(parse_host_tables(f"{silent_router} dev ib1 FAILED\n", "neigh"))
    assert {fault.kind for fault in check_host_routes(fabrics, "stores", tables).faults} == kinds
