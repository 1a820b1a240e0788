# SPDX-License-Identifier: Apache-2.0
"""Tunables, health, buffers and peers in an LNet export."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, ROUTER_EXPORT, build_site, check_outputs

from sonde.design.routes.check_host import check_host
from sonde.design.routes.table_reader import parse_host_tables

# What an NI, LNet as a whole and the peers print on a host without a mistake.
TUNABLES = """          statistics:
              send_count: 17
          health stats:
              health value: 1000
              interrupts: 0
          tunables:
              peer_timeout: 180
              peer_credits: 8
              peer_buffer_credits: 0
              credits: 256
          lnd tunables:
              conns_per_peer: 1
              timeout: 5
          dev cpt: 0
          CPT: "[0]"
"""
SETTINGS = """global:
    numa_range: 0
    discovery: 1
    retry_count: 2
    transaction_timeout: 50
    lnd_timeout: 16
"""
PEERS = "peer:\n" + "".join(
    f"""    - primary nid: 10.160.14.{number}@tcp
      Multi-Rail: True
      peer ni:
        - nid: 10.160.14.{number}@tcp
          state: up
          max_ni_tx_credits: 8
          available_tx_credits: {number}
"""
    for number in (1, 2)
)
OLD_TUNABLES = "          tunables:\n              peer_credits: 8\n"
POOL = "tiny:\n              npages: 0\n              nbuffers: 512\n"


def make_export() -> str:
    assert OLD_TUNABLES in LNET_EXPORT
    return LNET_EXPORT.replace(OLD_TUNABLES, TUNABLES).partition("peer:\n")[0] + SETTINGS + PEERS


def make_router_export() -> str:
    return ROUTER_EXPORT.replace("routing:\n", f"routing:\n    - cpt[0]:\n          {POOL}")


def test_healthy_tunables_are_no_fault(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, {"lnet": make_export()})
    assert verdict.faults == ()
    assert sum(item.subject == "a tunable of LNet" for item in verdict.comparisons) == 6
    (unread,) = [text for text in verdict.not_examined if text.endswith("of LNet")]
    assert "conns_per_peer 1" in unread


def test_healthy_router_buffers_are_no_fault(tmp_path: Path) -> None:
    assert check_outputs(tmp_path, {"lnet": make_router_export()}, "lnet1").faults == ()


@pytest.mark.parametrize(("old", "new", "fault_kind", "texts"), [
    ("peer_credits: 8", "peer_credits: 1", "LNet tunable", ("10.160.0.1@tcp has peer_credits 1",)),
    ("  credits: 256", "  credits: 4", "LNet tunable", ("credits 4",)),
    ("peer_credits: 8", "peer_credits: 512", "LNet tunable", ("credits 256 and peer_credits 512",)),
    ("peer_credits: 8", "peer_credits: 8\n              peercredits_hiw: 8", "LNet tunable", ("peercredits_hiw 8",)),
    ("peer_timeout: 180", "peer_timeout: 36000", "LNet tunable", ("peer_timeout 36000",)),
    ("health value: 1000", "health value: 400", "LNet NI unhealthy", ("400 of 1000",)),
    ("transaction_timeout: 50", "transaction_timeout: 2", "LNet tunable", ("transaction_timeout 2", "given up")),
    ("transaction_timeout: 50", "transaction_timeout: 3600", "LNet tunable", ("transaction_timeout 3600", "noticed")),
    ("state: up\n          max", "state: down\n          max", "LNet router down", ("10.160.14.1@tcp",)),
    ("retry_count: 2", "retry_count: 0", "LNet tunable", ("LNet has retry_count 0", "is not sent again")),
    ("retry_count: 2", "retry_count: 0\n    health_sensitivity: 0", "LNet tunable", ("has health_sensitivity 0",)),
    ("available_tx_credits: 1", "available_tx_credits: -212\n          tx_q_num_of_buf: 1843200", "LNet peer stuck",
     ("212 messages (1.76 MiB) wait for the gateway 10.160.14.1@tcp, which has 8 credits",)),
    ("available_tx_credits: 1", "available_tx_credits: 8\n          health stats:\n              health value: 300",
     "LNet router unhealthy", ("the gateway 10.160.14.1@tcp has a health of 300 of 1000",)),
    ("retry_count: 2", "retry_count: 2\n    router_sensitivity: 0", "LNet tunable", ("router_sensitivity 0",)),
    ("retry_count: 2", "retry_count: 2\n    recovery_interval: 3600", "LNet tunable", ("recovery_interval 3600",)),
    ("retry_count: 2", "retry_count: 2\n    recovery_limit: 5", "LNet tunable", ("recovery_limit 5",)),
    ("send_count: 17", "send_count: 17\n              recv_count: 90000\n              drop_count: 4800",
     "LNet messages dropped", ("has dropped 4800 messages and received 90000",)),
    ("retry_count: 2\n    transaction_timeout: 50\n    lnd_timeout: 16",
     "retry_count: 20\n    transaction_timeout: 50\n    lnd_timeout: 2", "LNet tunable",
     ("retry_count 20 and transaction_timeout 50, so lnd_timeout is 2",)),
    ("max_ni_tx_credits: 8", "max_ni_tx_credits: 1", "LNet peers differ",
     ("10.160.14.1@tcp has 1", "10.160.14.2@tcp has max_ni_tx_credits 8")),
    ("Multi-Rail: True", "Multi-Rail: False", "LNet peers differ", ("Multi-Rail", "False", "True")),
])  # fmt: skip
def test_wrong_tunable_is_reported(tmp_path: Path, old: str, new: str, fault_kind: str, texts: tuple[str, ...]) -> None:
    export = make_export()
    assert old in export
    (fault,) = check_outputs(tmp_path, {"lnet": export.replace(old, new, 1)}).faults
    assert fault.kind == fault_kind
    assert all(text in fault.problem for text in texts), fault


def test_short_queue_to_a_gateway_is_no_fault(tmp_path: Path) -> None:
    export = make_export().replace(
        "available_tx_credits: 1", "available_tx_credits: -9\n          min_tx_credits: -900"
    )
    verdict = check_outputs(tmp_path, {"lnet": export})
    assert verdict.faults == ()
    assert sum(item.subject == "the queue to an LNet peer" for item in verdict.comparisons) == 2


def test_usual_recovery_of_lnet_is_no_fault(tmp_path: Path) -> None:
    usual = "retry_count: 2\n    router_sensitivity: 100\n    recovery_interval: 1\n    recovery_limit: 0"
    export = make_export().replace("retry_count: 2", usual)
    export = export.replace("send_count: 17", "recv_count: 917001\n              drop_count: 3")
    assert check_outputs(tmp_path, {"lnet": export}).faults == ()


def test_remedy_for_retries_names_the_default(tmp_path: Path) -> None:
    (fault,) = check_outputs(tmp_path, {"lnet": make_export().replace("retry_count: 2", "retry_count: 0")}).faults
    assert fault.remedy == "set it to 2, its default (lnetctl set)"


def test_router_buffers_that_were_used_up_are_reported(tmp_path: Path) -> None:
    export = make_router_export().replace("nbuffers: 512", "nbuffers: 512\n              mincredits: -300")
    (fault,) = check_outputs(tmp_path, {"lnet": export}, "lnet1").faults
    assert (fault.kind, fault.location) == ("LNet router buffers used up", "routing, cpt[0] tiny")
    assert "up to 300 messages have waited for one of the 512 buffers of the pool cpt[0] tiny" in fault.problem
    assert fault.problem.startswith("since LNet was started")


def test_pools_next_to_their_partition_are_read(tmp_path: Path) -> None:
    pools = "    - cpt[1]:\n      small:\n          nbuffers: 512\n          mincredits: -300\n"
    export = ROUTER_EXPORT.replace("routing:\n", f"routing:\n{pools}")
    (fault,) = check_outputs(tmp_path, {"lnet": export}, "lnet1").faults
    assert fault.location == "routing, cpt[1] small"


@pytest.mark.parametrize("fewest", [400, 0, -63])
def test_few_messages_that_waited_for_buffers_are_no_fault(tmp_path: Path, fewest: int) -> None:
    export = make_router_export().replace("nbuffers: 512", f"nbuffers: 512\n              mincredits: {fewest}")
    assert check_outputs(tmp_path, {"lnet": export}, "lnet1").faults == ()


def test_router_without_buffers_is_reported(tmp_path: Path) -> None:
    export = make_router_export().replace("nbuffers: 512", "nbuffers: 0")
    (fault,) = check_outputs(tmp_path, {"lnet": export}, "lnet1").faults
    assert (fault.kind, fault.location) == ("LNet router without buffers", "routing, cpt[0] tiny")


def test_interface_with_another_tunable_is_reported(tmp_path: Path) -> None:
    extra = "".join(f"        - nid: 10.160.0.{number}@tcp\n          status: up\n{TUNABLES}" for number in (77, 78))
    export = make_export().replace(
        "route:\n", f"{extra.replace('conns_per_peer: 1', 'conns_per_peer: 4', 1)}route:\n", 1
    )
    first, second, fault = check_outputs(tmp_path, {"lnet": export}).faults
    assert [first.kind, second.kind, fault.kind] == [*["LNet NI not planned"] * 2, "LNet tunables differ"]
    assert fault.problem == "10.160.0.77@tcp has conns_per_peer 4; the other NIs of tcp have 1"


def test_tunables_of_both_sides_are_compared() -> None:
    tables = parse_host_tables(make_export(), "lnet")
    router = parse_host_tables(
        ROUTER_EXPORT.replace("          interfaces:", f"{TUNABLES}          interfaces:", 1), "r"
    )
    assert check_host(build_site(), "nsd1", tables, router).faults == ()
    other = parse_host_tables(
        ROUTER_EXPORT.replace("          interfaces:", f"{TUNABLES}          interfaces:", 1).replace(
            "peer_credits: 8", "peer_credits: 32"
        ),
        "r",
    )
    (fault,) = check_host(build_site(), "nsd1", tables, other).faults
    assert fault.problem == "10.160.14.1@tcp has peer_credits 32; 10.160.0.1@tcp has 8"


def test_dropped_replies_of_other_gateways_are_reported(tmp_path: Path) -> None:
    export = make_export().replace("    discovery: 1\n", "    discovery: 1\n    drop_asym_route: 1\n")
    (fault,) = check_outputs(tmp_path, {"lnet": export}).faults
    assert (fault.kind, fault.remedy) == ("LNet tunable", "set it to 0 (lnetctl set)")
    assert fault.problem.startswith("LNet has drop_asym_route 1: ")
    assert check_outputs(tmp_path, {"lnet": export.replace("asym_route: 1", "asym_route: 0")}).faults == ()


def test_peer_with_the_nid_of_another_host_is_reported(tmp_path: Path) -> None:
    export = make_export()
    before, separator, peers = export.partition("\npeer:\n")
    crossed = re.sub(
        r"(?m)^        - nid: 10.160.14.(\d)@tcp$",
        lambda match: f"        - nid: 10.160.14.{3 - int(match[1])}@tcp0",
        peers,
    )
    assert crossed != peers
    crossed = f"{before}{separator}{crossed}"
    (fault,) = check_outputs(tmp_path, {"lnet": crossed}).faults
    assert fault.kind == "LNet peer of two hosts"
    assert fault.problem.startswith("10.160.14.2@tcp0 of lnet2 is under 10.160.14.1@tcp of lnet1, 10.160.14.1@tcp0")
    second_network = export.replace("        - nid: 10.160.14.1@tcp\n", "        - nid: 10.150.254.1@kfi\n")
    assert check_outputs(tmp_path, {"lnet": second_network}).faults == ()
