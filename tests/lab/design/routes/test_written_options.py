# SPDX-License-Identifier: Apache-2.0
"""Every option that the files of a route plan write is compared by a check, or its report says why it is not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from fabric_builders import build_fabric

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.check_lnet import check_lnet_routes
from sonde.design.routes.check_written import COMPARISONS, REASONS, describe_options_not_compared
from sonde.design.routes.configurations import make_lnet_files
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck, RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import ROUTERS
from sonde.design.routes.plan import plan_all_routes
from sonde.design.routes.plan_files import FORMATS, make_plan_files
from sonde.design.routes.table_reader import parse_host_tables
from sonde.design.routes.written_options import (
    WrittenOption,
    list_written_options,
    normalize_setting_name,
    parse_written_options,
)
from sonde.model.bundled_files import find_system_file
from sonde.model.system import System, make_system

SITE_SETTINGS = {"net.core.rmem_max": "268435456", "net.ipv4.tcp_rmem": "4096 87380 16777216"}
# What a wrong host has instead in IPv4 and IPv6, by the last word of an option or setting.
OTHER_VALUES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("destination", "Destination"), ("10.77.0.0/16", "fd77::/64")),
    **dict.fromkeys(("via", "gateway", "Gateway", "next-hop-address"), ("10.1.0.77", "fd01::77")),
    **dict.fromkeys(("dev", "interface-name", "next-hop-interface"), ("eth9", "eth9")),
    **dict.fromkeys(("table", "Table", "table-id", "route-table"), ("77", "77")),
    **dict.fromkeys(("metric", "Metric"), ("0", "1024")),
    **dict.fromkeys(("weight",), ("7", "7")),
    **dict.fromkeys(("mtu", "MTUBytes"), ("1500", "1500")),
    **dict.fromkeys(("pref", "priority", "Priority"), ("40000", "40000")),
    **dict.fromkeys(("fwmark", "FirewallMark"), ("77", "77")),
    **dict.fromkeys(("family", "Family"), ("ipv6", "ipv4")),
    "fib_multipath_hash_policy": ("0", "0"), "accept_redirects": ("1", "1"), "fib_multipath_use_neigh": ("0", "0"),
    "rp_filter": ("1", "1"), "ip_forward": ("0", "0"), "send_redirects": ("1", "1"), "forwarding": ("0", "0"),
    "rmem_max": ("212992", "212992"), "tcp_rmem": ("4096 87380 6291456", "4096 87380 6291456"),
}  # fmt: skip
LNET_VALUES = {"net": "o2ib77", "gateway": "10.9.9.9@o2ib", "hop": "7", "priority": "7"}
# The active route of IPv6 states its metric; larger than that of the standby it is as wrong as the opposite.
ACTIVE_METRIC = ("1024", "5000")


@cache
def build_planned_fabric(version: int) -> Fabric:
    """Two routers and a standby, and a class of hosts whose system file asks for settings."""
    fabric = build_fabric(3, ip_version=version)
    near = replace(fabric.near, classes=tuple(replace(each, settings=SITE_SETTINGS) for each in fabric.near.classes))
    routers = (*fabric.routers[:-1], replace(fabric.routers[-1], priority=1))
    return replace(fabric, near=near, routers=routers)


@cache
def make_files(version: int, file_format: str, name: str) -> dict[str, str]:
    """The files of a class of hosts, or of the routers, that hold options."""
    class_name = None if name == ROUTERS else name
    files = make_plan_files(plan_all_routes([build_planned_fabric(version)]), file_format, class_name)
    if file_format == "ansible" or name == ROUTERS:
        return {file: text for file, text in files.items() if file.startswith(f"routes-{name}") or file == "routes.yml"}
    return files


@cache
def parse_file(text: str, file: str) -> HostTables:
    """Of many files with one change, most are the same."""
    return parse_host_tables(text, file)


def check_files(version: int, name: str, files: Mapping[str, str]) -> RouteCheck:
    """Checks the files as `route check` does."""
    tables = HostTables()
    for file, text in files.items():
        tables = tables.merge_tables(parse_file(text, file))
    return check_host_routes([build_planned_fabric(version)], name, tables)


def choose_other_value(option: WrittenOption, version: int) -> str:
    """A wrong value of an option."""
    value = OTHER_VALUES[option.name.rpartition(".")[2].split()[-1]][0 if version == 4 else 1]
    return ACTIVE_METRIC[1] if option.value == ACTIVE_METRIC[0] == value else value


def change(files: Mapping[str, str], option: WrittenOption, value: str) -> dict[str, str]:
    """The files with another value of one option; a setting changes for all interfaces together."""
    changed = {}
    for file, text in files.items():
        same = [each for each in parse_written_options(file, text) if each == option or (
            option.group == "sysctl" and each.key == option.key)]  # fmt: skip
        for each in reversed(same):
            text = text[: each.begin] + value + text[each.end :]
        changed[file] = text
    assert changed != files
    return changed


CASES = [(version, file_format, "clients") for version in (4, 6) for file_format in FORMATS] + [
    (version, "iproute2", ROUTERS) for version in (4, 6)
]


@pytest.mark.parametrize(("version", "file_format", "name"), CASES)
def test_files_as_written_have_no_fault(version: int, file_format: str, name: str) -> None:
    files = make_files(version, file_format, name)
    verdict = check_files(version, name, files)
    assert verdict.faults == ()
    reported = " ".join(verdict.not_compared)
    for option in list_written_options(files):
        text = normalize_setting_name(option.name) if option.group == "sysctl" else f"{option.group} {option.name}"
        if reason := REASONS.get(option.key):
            assert any(text in line and reason in line for line in verdict.not_compared), text
        else:
            assert f"{text}," not in reported


def list_options() -> Iterator[tuple[int, str, str, WrittenOption]]:
    """Each option of each file that is compared; options of equal text in several files once."""
    for version, file_format, name in CASES:
        for option in dict.fromkeys(list_written_options(make_files(version, file_format, name))):
            if option.key not in REASONS:
                yield version, file_format, name, option


def test_every_option_that_is_changed_is_reported() -> None:
    silent = []
    for version, file_format, name, option in list_options():
        files = make_files(version, file_format, name)
        value = choose_other_value(option, version)
        if not check_files(version, name, change(files, option, value)).faults:
            silent.append((version, file_format, option, value))
    assert silent == []


def test_every_option_has_a_comparison_or_a_reason() -> None:
    written = {option.key for version, file_format, name in CASES
               for option in list_written_options(make_files(version, file_format, name))}  # fmt: skip
    written |= {option.key for option in list_written_options(make_lnet_files(read_lnet_system()))}
    options = {key for key in written if key[0] != "sysctl"}
    assert options - COMPARISONS.keys() - REASONS.keys() == set()
    assert COMPARISONS.keys() - options == set(), "comparisons of what no plan writes"
    assert REASONS.keys() - written == set()


def read_lnet_system() -> System:
    """A described machine with LNet routers that also state hops and a priority."""
    file = find_system_file("edison")
    document = tomllib.loads(Path(file).read_text())
    (routers,) = document["routers"]
    routers.update(id="lnet[01-02]", hops=2, priority=1)
    for interface, nids in zip(routers["interfaces"], ("[6001-6002]@gni", "10.151.0.[1-2]@o2ib"), strict=True):
        interface["nids"] = nids
    return make_system(document, file)


def test_every_lnet_option_that_is_changed_is_reported() -> None:
    system, silent = read_lnet_system(), []
    files = make_lnet_files(system)
    for file, text in files.items():
        network = file.removeprefix("lnet-").removesuffix(".yaml")
        for option in dict.fromkeys(parse_written_options(file, text)):
            changed = change({file: text}, option, LNET_VALUES[option.name])[file]
            routes = parse_host_tables(changed, file).lnet_routes or ()
            if not any(isinstance(result, RouteFault) for result in check_lnet_routes(system, network, routes)):
                silent.append(option)
    assert silent == []


def test_unobserved_options_appear_in_the_report() -> None:
    options = list_written_options(make_files(6, "networkd", "clients"))
    assert describe_options_not_compared(options, ()) == (
        "[RoutingPolicyRule] Family, [RoutingPolicyRule] Priority, [RoutingPolicyRule] FirewallMark,"
        " [RoutingPolicyRule] Table, [Route] Destination, [Route] Table, [Route] Gateway, [Route] MTUBytes,"
        " [Route] Metric, [Route] MultiPathRoute via, [Route] MultiPathRoute dev, [Route] MultiPathRoute weight,"
        " net.core.rmem_max, net.ipv4.tcp_rmem, net.ipv6.fib_multipath_hash_policy,"
        " net.ipv6.conf.DEVICE.accept_redirects, because no output shows it",
        f"[Route] Scope, because {REASONS['[Route]', 'Scope']}",
        f"net.ipv4.fib_multipath_hash_seed, because {REASONS['sysctl', 'net.ipv4.fib_multipath_hash_seed']}",
    )
    new = WrittenOption("ip route", "onlink", "1", 0, 1)
    assert describe_options_not_compared([new], ()) == ("ip route onlink, because no rule reads it",)


def test_tables_of_other_side_compare_the_hash_seed() -> None:
    tables = [parse_host_tables(next(iter(make_files(4, "iproute2", name).values())), name)
              for name in ("clients", "stores")]  # fmt: skip
    verdict = check_host_routes([build_planned_fabric(4)], "clients", *tables)
    assert verdict.faults == ()
    assert "hash_seed" not in " ".join(verdict.not_compared)


def test_setting_that_differs_from_system_file_is_reported() -> None:
    tables = HostTables(settings={"net.core.rmem_max": "212992"})
    (fault,) = check_host_routes([build_planned_fabric(4)], "clients", tables).faults
    assert (fault.kind, fault.location) == ("setting not as planned", "net.core.rmem_max = 212992")
    assert "268435456" in fault.problem
