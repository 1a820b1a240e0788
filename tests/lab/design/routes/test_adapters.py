# SPDX-License-Identifier: Apache-2.0
"""Outputs of ethtool and ibstat: adapters that are slower than they can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dual_stack_host import build_site, check_outputs, print_server_outputs

from sonde.design.routes.adapter_outputs import parse_ethtool_outputs
from sonde.design.routes.check_adapters import find_adapter_faults
from sonde.design.routes.check_router import check_router_tables
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.table_reader import parse_host_tables

ETHTOOL = """Settings for eth2:
	Supported ports: [ FIBRE ]
	Supported link modes:   10000baseT/Full
		100000baseCR4/Full
	Supported pause frame use: Symmetric
	Speed: 100000Mb/s
	Duplex: Full
	Link detected: yes
Ring parameters for eth2:
Pre-set maximums:
RX:		8192
RX Mini:	n/a
TX:		8192
Current hardware settings:
RX:		1024
RX Mini:	n/a
TX:		1024
Channel parameters for eth2:
Pre-set maximums:
RX:		n/a
Combined:	63
Current hardware settings:
RX:		n/a
Combined:	32
Features for eth2:
rx-checksumming: on
tx-checksumming: on
	tx-checksum-ipv4: off [fixed]
scatter-gather: on
tcp-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off
Coalesce parameters for eth2:
Adaptive RX: on  TX: on
rx-usecs:	8
rx-frames:	128
Pause parameters for eth2:
Autonegotiate:	off
RX:		on
TX:		on
"""
IBSTAT = """CA 'mlx5_0'
	CA type: MT4115
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 100
		Base lid: 12
		SM lid: 1
		Link layer: InfiniBand
CA 'mlx5_1'
	Port 1:
		State: Down
		Physical state: Polling
		Rate: 10
		Base lid: 65535
		SM lid: 0
		Link layer: InfiniBand
CA 'mlx5_2'
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 25
		Base lid: 0
		SM lid: 0
		Link layer: Ethernet
"""
MODERATION = "Adaptive RX: on  TX: on\nrx-usecs:	8\nrx-frames:	128"
MODERATION_OFF = "Adaptive RX: off  TX: on\nrx-usecs:	0\nrx-frames:	1"
RINGS = "Current hardware settings:\nRX:		1024"


def test_healthy_adapters_have_no_fault(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, print_server_outputs() | {"ethtool": ETHTOOL, "ibstat": IBSTAT})
    assert verdict.faults == ()
    compared = {(item.subject, item.location) for item in verdict.comparisons}
    assert {("the adapter of an interface", "eth2"), ("an InfiniBand port", "mlx5_0 port 1")} <= compared
    assert not any("ethtool" in text for text in verdict.not_examined)
    assert any("ethtool" in text for text in check_outputs(tmp_path / "less", print_server_outputs()).not_examined)


@pytest.mark.parametrize(
    ("old", "new", "fault_kind", "expected_sentence"),
    [
        (RINGS, RINGS.replace("1024", "256"), "packets dropped early", "holds 256 received packets of at most 8192"),
        ("Combined:	32", "Combined:	1", "single queue", "one queue of at most 63"),
        ("tcp-segmentation-offload: on", "tcp-segmentation-offload: off", "offload off", "into single packets"),
        ("generic-receive-offload: on", "generic-receive-offload: off", "offload off", "each received packet"),
        ("scatter-gather: on", "scatter-gather: off [requested on]", "offload off", "is copied"),
        ("rx-usecs:	8", "rx-usecs:	3000", "late interrupts", "up to 3000 µs late"),
        ("Speed: 100000Mb/s", "Speed: 10000Mb/s", "slow link", "runs at 10000 Mbit/s, and offers 100000 Mbit/s"),
        ("Duplex: Full", "Duplex: Half", "half duplex", "in turn"),
        (MODERATION, MODERATION_OFF, "interrupt for each packet", "rx-usecs 0, rx-frames 1), at 100 Gbit/s"),
        (
            MODERATION,
            MODERATION_OFF.replace("frames:	1", "frames:	n/a"),
            "interrupt for each packet",
            "rx-usecs 0)",
        ),
    ],
)
def test_slow_adapter_is_reported(tmp_path: Path, old: str, new: str, fault_kind: str, expected_sentence: str) -> None:
    assert old in ETHTOOL
    outputs = print_server_outputs() | {"ethtool": ETHTOOL.replace(old, new)}
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location.partition(":")[0]) == (fault_kind, "eth2")
    assert expected_sentence in fault.problem


@pytest.mark.parametrize(("old", "new", "sentence"), [
    ("RX:		on", "RX:		off", "the pause frames of the ports of bond0 differ: eth2 has RX on, eth3 has RX off"),
    ("RX:		1024", "RX:		512", "the rings of the ports of bond0 differ: eth2 has RX 1024, eth3 has RX 512"),
    ("Combined:	32", "Combined:	4", "the queues of the ports of bond0 differ: eth2 has Combined 32, eth3"),
    ("Adaptive RX: on", "Adaptive RX: off", "the interrupt delays of the ports of bond0 differ: eth2 has Adaptive"),
    ("Speed: 100000", "Speed: 40000", "the speeds of the ports of bond0 differ: eth2 has Speed 100000Mb/s, eth3 has"),
])  # fmt: skip
def test_ports_of_a_bond_with_other_settings_are_reported(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    other = ETHTOOL.replace("eth2", "eth3")
    for name, text, kinds in (("alike", other, []), ("unlike", other.replace(old, new), ["bond ports differ"])):
        faults = check_outputs(tmp_path / name, print_server_outputs() | {"ethtool": ETHTOOL + text}).faults
        assert [fault.kind for fault in faults] == kinds
    assert sentence in faults[0].problem


@pytest.mark.parametrize(("old", "new", "kinds"), [
    (RINGS, RINGS.replace("1024", "256"), ["packets dropped early"]),
    ("Combined:	32", "Combined:	1", ["single queue"]),
    (MODERATION, MODERATION_OFF, ["interrupt for each packet"]),
    ("Speed: 100000Mb/s", "Speed: 10000Mb/s", ["slow link"]),
    (MODERATION, MODERATION.replace("usecs:	8", "usecs:	32"), []),
])  # fmt: skip
def test_fault_of_one_port_explains_its_difference(tmp_path: Path, old: str, new: str, kinds: list[str]) -> None:
    other = ETHTOOL.replace("eth2", "eth3")
    assert old in other
    outputs = print_server_outputs() | {"ethtool": ETHTOOL + other.replace(old, new)}
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == kinds


def test_full_ring_of_another_adapter_is_no_fault(tmp_path: Path) -> None:
    smaller = (
        ETHTOOL.replace("eth2", "eth3")
        .replace("RX:		1024", "RX:		768")
        .replace("RX:		8192", "RX:		768")
    )
    outputs = print_server_outputs() | {"ethtool": ETHTOOL + smaller}
    assert check_outputs(tmp_path, outputs).faults == ()


@pytest.mark.parametrize(("line", "count"), [("large-receive-offload: on", 2), ("rx-gro-hw: on", 0)])
def test_merged_packets_are_a_fault_of_routers_only(tmp_path: Path, line: str, count: int) -> None:
    text = ETHTOOL.replace("large-receive-offload: off", line)
    assert check_outputs(tmp_path, print_server_outputs() | {"ethtool": text}).faults == ()
    tables = HostTables(adapters={"eth0": parse_ethtool_outputs(text)["eth2"]})
    kinds = [getattr(item, "kind", "") for item in check_router_tables(find_fabrics(build_site()), tables, "gw1")]
    assert kinds.count("packets merged before forwarding") == count  # of both IP versions


@pytest.mark.parametrize(("old", "new", "fault_kind"), [
    ("Rate: 100", "Rate: 10", "slow link"), ("State: Active", "State: Initializing", "no subnet manager"),
    ("SM lid: 1", "SM lid: 0", "no subnet manager"),
])  # fmt: skip
def test_fault_of_an_infiniband_port_is_reported(tmp_path: Path, old: str, new: str, fault_kind: str) -> None:
    outputs = print_server_outputs() | {"ibstat": IBSTAT.replace(old, new, 1)}
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == (fault_kind, "mlx5_0 port 1")


def test_connected_ipoib_needs_no_offloads() -> None:
    values = parse_ethtool_outputs(ETHTOOL.replace("tcp-segmentation-offload: on", "tcp-segmentation-offload: off"))
    modes = [HostTables(adapters=values, transport_modes={"eth2": mode}) for mode in ("datagram", "connected")]
    faults = [
        [item for item in find_adapter_faults("eth2", tables) if isinstance(item, RouteFault)] for tables in modes
    ]
    assert [len(each) for each in faults] == [1, 0]


def test_values_of_ethtool_are_read_by_device() -> None:
    values = parse_ethtool_outputs(ETHTOOL)["eth2"]
    assert (values["ring RX"], values["maximum ring RX"], values["channels Combined"]) == ("1024", "8192", "32")
    assert "feature tx-checksum-ipv4" not in values
    assert values["link Supported link modes"] == "10000baseT/Full 100000baseCR4/Full"
    assert [port.adapter for port in parse_host_tables(IBSTAT, "ibstat").infiniband_ports] == ["mlx5_0", "mlx5_1"]


def test_adapter_without_a_queue_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs() | {"ethtool": ETHTOOL}
    without_queue = outputs["addr"].replace("qdisc mq master bond0", "qdisc noqueue master bond0", 1)
    assert without_queue != outputs["addr"]
    (fault,) = check_outputs(tmp_path / "port", outputs | {"addr": without_queue}).faults
    assert (fault.kind, fault.location) == ("interface slowed down", "eth2")
    assert fault.problem.startswith("eth2 has no queue (noqueue), which is for virtual devices")
    assert "noqueue" in outputs["addr"]
    assert check_outputs(tmp_path / "bond", outputs).faults == ()


def test_port_without_a_link_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    flags = "4: eth3: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP>"
    assert flags in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(flags, "4: eth3: <NO-CARRIER,BROADCAST,MULTICAST,SLAVE,UP>")
    other = ETHTOOL.replace("eth2", "eth3").replace("Speed: 100000Mb/s", "Speed: Unknown!")
    (fault,) = check_outputs(tmp_path, outputs | {"ethtool": ETHTOOL + other}).faults
    assert (fault.kind, fault.location) == ("bond port down", "eth3")


@pytest.mark.parametrize(("state", "is_listed"), [("off", True), ("on", False)])
def test_pause_frames_that_are_off_are_not_examined(tmp_path: Path, state: str, is_listed: bool) -> None:
    pause = f"Pause parameters for eth2:\nAutonegotiate:\toff\nRX:\t\t{state}\nTX:\t\t{state}\n"
    verdict = check_outputs(tmp_path, print_server_outputs() | {"ethtool-a-eth2": pause})
    assert verdict.faults == ()
    assert any(text.startswith("pause frames, which are off on eth2") for text in verdict.not_examined) == is_listed


@pytest.mark.parametrize("program", ["name xdp_drop tag 57cd311f2e27366b jited", "tag 57cd311f2e27366b"])
def test_program_for_received_packets_is_not_examined(tmp_path: Path, program: str) -> None:
    outputs = print_server_outputs()
    old = "link/ether 52:54:00:a0:00:01 brd ff:ff:ff:ff:ff:ff\n"
    outputs["addr"] = outputs["addr"].replace(old, f"{old}    prog/xdp id 42 {program}\n", 1)
    name = "xdp_drop" if "xdp_drop" in program else "42"
    verdict = check_outputs(tmp_path, outputs)
    assert f"what the program {name} (XDP) of eth2 does with received packets" in verdict.not_examined
    row = {"ifname": "eth2", "addr_info": [], "xdp": {"mode": 1, "prog": {"id": 42, "name": "xdp_drop"}}}
    assert parse_host_tables(json.dumps([row]), "addr").link_details["eth2"].packet_program == "xdp_drop"
