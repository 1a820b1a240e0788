# SPDX-License-Identifier: Apache-2.0
"""Files of interfaces(5) and sysctl.d, ports in files, and files that no check reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import VLAN, check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError

INTERFACES = """# ifupdown
auto lo
iface lo inet loopback

auto bond0
iface bond0 inet static
    address 10.160.0.1/20
    mtu 9000
    bond-slaves eth2 eth3
    bond-mode 802.3ad
    bond-miimon 100
    bond-xmit-hash-policy layer3+4
    up ip route add 172.20.0.0/16 via 10.160.0.254 || true

iface bond0 inet6 static
    address fd00:160::1
    netmask 64

allow-hotplug mgmt
iface mgmt inet static
    address 192.168.9.7
    netmask 255.255.255.0
    gateway 192.168.9.1
"""
POLICY = "net.ipv4.fib_multipath_hash_policy = {}\n"
SLES = """STARTMODE='{}'
BOOTPROTO='static'
IPADDR='10.160.0.{}/20'
MTU='9000'
BONDING_MASTER='yes'
BONDING_MODULE_OPTS='mode=802.3ad miimon=100 xmit_hash_policy=layer3+4'
BONDING_SLAVE_0='eth2'
BONDING_SLAVE_1='eth3'
"""


def check_server(folder: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    faults = check_outputs(folder, print_server_outputs() | files).faults
    return [(fault.kind, fault.remedy) for fault in faults]


@pytest.mark.parametrize(("old", "new", "kind", "remedy"), [
    ("", "", "", ""),
    ("10.160.0.1/20", "10.160.0.2/20", "another address in a file", "write 10.160.0.1/20 in interfaces"),
    ("netmask 64", "netmask 48", "another prefix in a file", "write fd00:160::1/64 in interfaces"),
    ("mtu 9000", "mtu 1500", "MTU mismatch",
     "correct interfaces, line 8 (mtu 1500), which does not hold for the running host yet"),
    ("bond-mode 802.3ad", "bond-mode 0", "bond mode",
     "correct interfaces, line 10 (bond-mode 0), which does not hold for the running host yet"),
    ("auto bond0\n", "", "not applied at the start", "write auto bond0"),
])  # fmt: skip
def test_file_of_ifupdown_is_compared(tmp_path: Path, old: str, new: str, kind: str, remedy: str) -> None:
    faults = check_server(tmp_path, {"interfaces": INTERFACES.replace(old, new)})
    assert faults == ([(kind, remedy)] if kind else [])


def test_commands_of_ifupdown_are_read() -> None:
    text = (
        "iface hsn0 inet manual\n  up ip rule add fwmark 3 lookup 103 pref 90\n"
        "  post-up /sbin/ip -6 route add fd00:1::/64 via fd00:2::1 dev $IFACE table 103\n  down ip route del default\n"
    )
    tables = parse_host_tables(text, "interfaces")
    (rule,), (route,) = tables.rules or (), tables.routes or ()
    assert (rule.preference, rule.mark, rule.table, rule.version) == (90, 3, "103", 4)
    assert (route.destination, route.table, route.hops[0].device, route.version) == ("fd00:1::/64", "103", "hsn0", 6)


@pytest.mark.parametrize(("weak", "strong"), [("usr/lib", "etc"), ("usr/lib", "run"), ("run", "etc")])
@pytest.mark.parametrize("values", [("0", "1"), ("1", "0")])
def test_file_of_a_stronger_folder_replaces_the_other(
    tmp_path: Path, weak: str, strong: str, values: tuple[str, str]
) -> None:
    files = {f"{strong}/sysctl.d/50-a.conf": POLICY.format(values[0]),
             f"{weak}/sysctl.d/50-a.conf": POLICY.format(values[1])}  # fmt: skip
    for order in (files, dict(reversed(files.items()))):
        kinds = [kind for kind, _ in check_server(tmp_path, order)]
        assert kinds == (["hash by address only"] if values[0] == "0" else [])


def test_files_of_equal_names_elsewhere_are_all_read(tmp_path: Path) -> None:
    files = {"a/50-a.conf": POLICY.format(1), "b/50-a.conf": "net.ipv4.fib_multipath_use_neigh = 0\n"}
    assert [kind for kind, _ in check_server(tmp_path, files)] == ["dead routers are used"]


@pytest.mark.parametrize(("name", "text", "expected_text"), [
    ("resolv.conf", "search site\nnameserver 10.1.0.9\n", "a configuration of the DNS resolver, which no check reads"),
    ("70-mtu.rules", 'ACTION=="add", SUBSYSTEM=="net", ATTR{mtu}="1500"\n', "a rule of udev that names no interface"),
    ("99-a.conf", "[keyfile]\nunmanaged-devices=interface-name:eth2\n", "a configuration of NetworkManager itself"),
    ("b.yml", "interfaces:\n- name: bond0\n  mtu: 1500\n", "a state of nmstate without routes and route-rules"),
])  # fmt: skip
def test_file_that_no_check_reads_has_a_sentence(name: str, text: str, expected_text: str) -> None:
    with pytest.raises(UserError, match=f"^{name} is {expected_text}"):
        parse_host_tables(text, name)


def test_route_file_without_an_address_is_rejected() -> None:
    with pytest.raises(UserError, match=r"^route-bond0, line 2: there is no address after via"):
        parse_host_tables("10.150.0.0/16 via 10.160.15.1\n10.151.0.0/16 via\n", "route-bond0")


@pytest.mark.parametrize(("name", "text", "kinds"), [
    ("ifcfg-eth3", "DEVICE=eth3\nONBOOT=yes\nMASTER={}\nSLAVE=yes\n", ["port of another bond"]),
    ("50-eth3.network", "[Match]\nName=eth3\n\n[Network]\nBond={}\n", ["port of another bond"]),
    ("eth3.nmconnection", "[connection]\nid=a\ninterface-name=eth3\nmaster={}\nslave-type=bond\n",
     ["port of another bond"]),
    ("eth3.nmconnection", "[connection]\nid=a\ninterface-name=eth3\nmaster=profile-of-{}\nslave-type=bond\n", []),
    ("60.yaml", "network:\n  bonds:\n    {}:\n      interfaces: [eth3]\n      parameters: {{mode: 802.3ad}}\n",
     ["port of another bond"]),
])  # fmt: skip
def test_port_of_another_bond_in_a_file_is_reported(tmp_path: Path, name: str, text: str, kinds: list[str]) -> None:
    assert check_server(tmp_path / "right", {name: text.format("bond0")}) == []
    faults = check_server(tmp_path / "wrong", {name: text.format("bond1")})
    assert faults == [(kind, "write bond0 there") for kind in kinds]


@pytest.mark.parametrize(("primary", "kinds"), [("eth3", []), ("eth9", ["primary is no port"])])
def test_primary_port_in_a_file_is_compared(tmp_path: Path, primary: str, kinds: list[str]) -> None:
    text = f'DEVICE=bond0\nONBOOT=yes\nBONDING_OPTS="mode=1 miimon=100 primary={primary}"\n'
    assert [kind for kind, _ in check_server(tmp_path, {"ifcfg-bond0": text})] == kinds


@pytest.mark.parametrize(("address", "kinds"), [
    ("10.160.0.1/20", []), ("10.160.0.1", ["another prefix in a file"])
])  # fmt: skip
def test_networkd_address_without_a_prefix_is_reported(tmp_path: Path, address: str, kinds: list[str]) -> None:
    text = f"[Match]\nName=bond0\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress={address}\n"
    faults = check_outputs(tmp_path, print_server_outputs() | {"50-bond0.network": text}).faults
    assert [fault.kind for fault in faults] == kinds
    assert all("bond0 has 10.160.0.1/8 after the next start" in fault.problem for fault in faults)


@pytest.mark.parametrize(("section", "remedies"), [
    ("Network", []), ("Networks", ["write [Network]"]), ("X-Site", []), ("IPv6AcceptRA", [])
])  # fmt: skip
def test_misspelled_section_of_networkd_is_reported(tmp_path: Path, section: str, remedies: list[str]) -> None:
    text = f"[Match]\nName=bond0\n\n[{section}]\nDHCP=no\n"
    assert [remedy for _, remedy in check_server(tmp_path, {"50-bond0.network": text})] == remedies


@pytest.mark.parametrize(("mode", "number", "kinds"), [
    ("auto", "1", []), ("auto", "2", ["another address in a file"])
])  # fmt: skip
def test_file_of_wicked_is_compared(tmp_path: Path, mode: str, number: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in check_server(tmp_path, {"ifcfg-bond0": SLES.format(mode, number)})] == kinds


BONDING = 'DEVICE=bond0\nONBOOT=yes\nBONDING_OPTS="{}"\n'


@pytest.mark.parametrize(("options", "kinds"), [
    ("mode=4 miimon=100 xmit_hash_policy=layer3+4", []),
    ("mode=4 miimon=100 xmit_hash_policy=layer2", ["bond hash by address"]),  # of the two ports that the bond has now
    ("mode=4 miimon=100 min_links=3", ["bond needs more ports"]),
    ("mode=lacp miimon=100", ["bond mode"]),
    ("mode=1 arp_interval=1000 arp_ip_target=+10.99.0.1", ["bond asks a silent address"]),
    ("mode=1 arp_interval=1000 arp_ip_target=10.99.0.1,10.160.15.1", []),
])  # fmt: skip
def test_option_of_a_bond_in_a_file_is_judged(tmp_path: Path, options: str, kinds: list[str]) -> None:
    faults = check_server(tmp_path, {"ifcfg-bond0": BONDING.format(options)})
    assert [kind for kind, _ in faults] == kinds


def test_mtu_of_a_port_is_that_of_its_bond(tmp_path: Path) -> None:
    files = {"ifcfg-bond0": "DEVICE=bond0\nMTU=9000\n", "ifcfg-eth3": "DEVICE=eth3\nMTU=1500\nMASTER=bond0\n"}
    assert check_server(tmp_path, files) == []


@pytest.mark.parametrize(("mtu", "kinds"), [("9000", []), ("1500", ["MTU mismatch"])])
def test_mtu_below_a_vlan_in_a_file_is_compared(tmp_path: Path, mtu: str, kinds: list[str]) -> None:
    files = {f"ifcfg-{VLAN}": f"DEVICE={VLAN}\nVLAN=yes\nONBOOT=yes\nMTU=9000\n",
             "ifcfg-bond0": f"DEVICE=bond0\nONBOOT=yes\nMTU={mtu}\n"}  # fmt: skip
    faults = check_outputs(tmp_path, print_server_outputs(VLAN) | files, device=VLAN).faults
    assert [fault.kind for fault in faults] == kinds
    assert all("bond0, which carries bond0.210, takes packets of 1500 B" in fault.problem for fault in faults)


@pytest.mark.parametrize(("name", "text"), [
    ("ifroute-bond0", "# site\n10.150.0.0/16 10.160.15.1 - -\nfd00:150::/64 fd00:160::f001 - bond0\n"),
    ("routes", "10.150.0.0 10.160.15.1 255.255.0.0 bond0\nfd00:150::/64 fd00:160::f001 - bond0\n"),
])  # fmt: skip
def test_routes_of_wicked_are_read(name: str, text: str) -> None:
    tables = parse_host_tables(text, name)
    routes = [(route.destination, route.hops[0].via, route.hops[0].device) for route in tables.routes or ()]
    assert routes == [("10.150.0.0/16", "10.160.15.1", "bond0"), ("fd00:150::/64", "fd00:160::f001", "bond0")]
    assert tables.formats == ("wicked",)


def test_line_of_sysctl_without_a_sign_is_reported(tmp_path: Path) -> None:
    text = "# site\nnet.ipv4.fib_multipath_hash_policy 1\nnet.ipv4.fib_multipath_use_neigh = 1\n"
    assert check_server(tmp_path, {"90-a.conf": text}) == [
        ("not applied at the start", "write net.ipv4.fib_multipath_hash_policy = 1")
    ]


@pytest.mark.parametrize(("name", "text"), [
    ("10-mgmt.network", "[Match]\nName=mgmt\n\n[Network]\nAddress=192.168.9.7/24\n\n[Route]\nGateway=192.168.9.1\n"
     "Table=200\n\n[RoutingPolicyRule]\nFrom=192.168.9.7\nTable=200\nPriority=500\n"),
    ("interfaces", "source /etc/network/interfaces.d/*\n"),
    ("01-network-manager-all.yaml", "network:\n  version: 2\n  renderer: NetworkManager\n"),
])  # fmt: skip
def test_file_of_another_network_is_no_fault(tmp_path: Path, name: str, text: str) -> None:
    assert check_server(tmp_path, {name: text}) == []


@pytest.mark.parametrize(("mtus", "kinds"), [(("1500", "9000"), []), (("9000", "1500"), ["MTU mismatch"])])
def test_last_file_of_netplan_by_name_decides(tmp_path: Path, mtus: tuple[str, str], kinds: list[str]) -> None:
    text = "network:\n  bonds:\n    bond0:\n      mtu: {}\n"
    files = {"60-b.yaml": text.format(mtus[1]), "50-a.yaml": text.format(mtus[0])}
    assert [kind for kind, _ in check_server(tmp_path, files)] == kinds
