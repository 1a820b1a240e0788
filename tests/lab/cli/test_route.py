# SPDX-License-Identifier: Apache-2.0
"""``sonde route`` as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.design.routes.plan_files import FORMATS

LISTINGS = Path(__file__).resolve().parents[2] / "data" / "routes"


def test_route_plan_writes_files_and_picture(sonde: Any, tmp_path: Path) -> None:
    result = sonde("route", "plan", "cumulus", "-o", tmp_path / "routes")
    assert result.code == 0, result.err
    assert {path.name for path in (tmp_path / "routes").iterdir()} == {
        "aries-to-wolf-ib.svg",
        *(f"routes-{name}.sh" for name in ("compute", "logins", "wolf-servers", "routers")),
    }
    assert "compute (ipogif0)" in result.out
    only = sonde("route", "plan", "cumulus", "--format", "network-scripts", "--class", "wolf-servers", "--json").json
    assert list(only["files"]) == [
        f"wolf-servers/etc/sysconfig/network-scripts/{name}-ib1" for name in ("rule", "route")
    ]


def test_route_check_reports_faults_and_missing_inputs(sonde: Any) -> None:
    result = sonde("route", "check", "cumulus", "--as", "compute", LISTINGS / "create_routes_incoming.sh")
    assert result.code == 1
    assert "all rules in one table" in result.out
    assert "not checked: addresses, neighbors, settings (sysctl), kernel options, the other side" in result.out
    both = sonde(
        *("route", "check", "cumulus", "--as", "compute", LISTINGS / "compute-route-show"),
        *("--other-side", LISTINGS / "storage-route-interface", "--json"),
    ).json
    assert "the other side, so whether replies return the same way" not in both["not_given"]


def test_check_without_comparison_has_exit_code_6(sonde: Any, tmp_path: Path) -> None:
    plays = tmp_path / "routes.yml"
    plays.write_text("- name: Routes\n  hosts: compute\n  tasks: []\n", encoding="utf-8")
    result = sonde("route", "check", "cumulus", "--as", "compute", plays)
    assert result.code == 6
    assert "Nothing could be compared, so nothing is known" in result.out
    assert "Nothing wrong" not in result.out
    assert sonde("route", "check", "cumulus", "--as", "compute", plays, "--json").json["compared"] == []


def test_good_check_counts_its_comparisons(sonde: Any, tmp_path: Path) -> None:
    assert sonde("route", "plan", "slingshot-routed", "-o", tmp_path).code == 0
    result = sonde("route", "check", "slingshot-routed", "--as", "compute", tmp_path / "routes-compute.sh",
                   tmp_path / "routes-compute-ipv6.sh")  # fmt: skip
    assert result.code == 0, result.out
    assert "compute: Nothing wrong in " in result.out
    assert "comparisons." in result.out
    first_only = sonde("route", "check", "slingshot-routed", "--as", "compute", tmp_path / "routes-compute.sh")
    assert first_only.code == 1, "the routes of IPv6 are missing"


def test_prediction_lists_cost_of_each_router(sonde: Any) -> None:
    (prediction,) = sonde("route", "simulate", "cumulus", "--clients", "10", "--json").json
    assert (prediction["clients"], prediction["servers"], len(prediction["one_lost"])) == (10, 6, 6)
    assert "without router3:" in sonde("route", "simulate", "cumulus", "--clients", "10").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "cumuls"), 'Did you mean "cumulus"?'),
        (("plan", "laptop-md"), "has no router that forwards IP"),
        (("plan", "cumulus", "--class", "nobody"), 'There is no class of hosts "nobody"'),
        (("plan", "cumulus", "--format", "lnet"), "has no LNet router"),
        (("check", "cumulus", "--as", "computer", str(LISTINGS / "compute-route-show")), "Did you mean"),
        (("check", "cumulus", "--as", "compute", str(Path(__file__))), "is no address range"),
        (("simulate", "cumulus", "--connections", "0"), "connections"),
    ],
)
def test_impossible_request_prints_one_sentence(sonde: Any, arguments: tuple[str, ...], message: str) -> None:
    result = sonde("route", *arguments)
    assert result.code == 2
    assert len(result.sentences) == 1
    assert message in result.err


MIXED_SITE = """schema = "sonde-system/2"
id = "mixed"
networks = [
    {id = "fab", kind = "infiniband", addresses = ["172.20.0.0/16", "fd20::/64"], mtu = "4092 B"},
    {id = "stor", kind = "ethernet", addresses = ["172.30.8.0/22", "fd30::/64"], mtu = "9000 B"},
]
nodes = [{id = "c[1-4]", group = "compute", interfaces = [
    {network = "fab", device = "ib0", addresses = "172.20.1.[1-4]"},
    {network = "fab", device = "ib0", addresses = "fd20::1 .. fd20::4"}]}]
servers = [{id = "nfs[1-2]", group = "filers", interfaces = [
    {network = "stor", device = "ens3", addresses = "172.30.8.[11-12]"},
    {network = "stor", device = "ens3", addresses = "fd30::11 .. fd30::12"}]}]
routers = [{id = "rt[1-2]", group = "routers", protocol = "ip", between = ["fab", "stor"], interfaces = [
    {network = "fab", device = "ib0", addresses = "172.20.255.[1-2]"},
    {network = "fab", device = "ib0", addresses = "fd20::f1 .. fd20::f2"},
    {network = "stor", device = "ens3", addresses = "172.30.11.[1-2]"},
    {network = "stor", device = "ens3", addresses = "fd30::f1 .. fd30::f2"}]}]
"""


@pytest.mark.parametrize("file_format", FORMATS)
def test_folder_that_plan_writes_has_no_fault_with_its_pictures(sonde: Any, tmp_path: Path, file_format: str) -> None:
    (tmp_path / "mixed.toml").write_text(MIXED_SITE, encoding="utf-8")
    plan = ("route", "plan", tmp_path / "mixed.toml", "--format", file_format, "--class", "filers")
    assert sonde(*plan, "-o", tmp_path / "plan").code == 0
    assert len(list((tmp_path / "plan").glob("*.svg"))) == 2
    result = sonde("route", "check", tmp_path / "mixed.toml", "--as", "filers", tmp_path / "plan")
    assert result.code == 0, result.out
    assert "fab-to-stor.svg (a picture)" in result.out


def test_pictures_alone_compare_no_table(sonde: Any, tmp_path: Path) -> None:
    assert sonde("route", "plan", "cumulus", "-o", tmp_path).code == 0
    result = sonde("route", "check", "cumulus", "--as", "compute", tmp_path / "aries-to-wolf-ib.svg")
    assert result.code == 6
    assert "Not examined: aries-to-wolf-ib.svg (a picture)" in result.out


def test_empty_folder_is_refused(sonde: Any, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    result = sonde("route", "check", "cumulus", "--as", "compute", tmp_path / "outputs")
    assert result.code == 2
    assert "outputs holds no file; name the folder that has the saved outputs." in result.err
