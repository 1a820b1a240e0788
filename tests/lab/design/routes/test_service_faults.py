# SPDX-License-Identifier: Apache-2.0
"""Faults of services on a host: ports of GPFS, options of LNet, routers that do not forward, queues that shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import build_site, check_outputs, print_server_outputs

from sonde.design.routes.fabric import find_fabrics

PORTS = "net.ipv4.ip_local_port_range = {}\nnet.ipv4.ip_local_reserved_ports = {}\n"


@pytest.mark.parametrize(("ports", "reserved", "kinds"), [
    ("1024 65535", "", ["ports of storage taken"]), ("1024 65535", "1191", []), ("1024 65535", "1000-1200,3260", []),
    ("32768 60999", "", []), ("1192 65535", "", []),
])  # fmt: skip
def test_open_port_of_gpfs_is_reported(tmp_path: Path, ports: str, reserved: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += PORTS.format(ports, reserved)
    faults = check_outputs(tmp_path, outputs, has_gpfs=True).faults
    assert [fault.kind for fault in faults] == kinds
    assert all("GPFS (1191)" in fault.problem for fault in faults)


@pytest.mark.parametrize(("options", "kinds"), [
    ('networks="tcp(bond0)"\noptions lnet ip2nets="tcp(bond0) 10.160.*.*"', ["LNet does not start"]),
    ('networks="tcp(bond0)"', []), ('ip2nets="tcp(bond0) 10.160.*.*"', []),
])  # fmt: skip
def test_networks_and_ip2nets_exclude_each_other(tmp_path: Path, options: str, kinds: list[str]) -> None:
    faults = check_outputs(tmp_path, {"modprobe.d/lustre.conf": f"options lnet {options}\n"}).faults
    assert [fault.kind for fault in faults if "start" in fault.kind] == kinds


def print_neighbors(lacking: int, state: str = "REACHABLE", is_json: bool = False) -> str:
    routers = find_fabrics(build_site())[1].routers
    lines = []
    for number, router in enumerate(routers):
        flag = number >= lacking
        if is_json:
            extra = '"router":null,' if flag else ""
            lines.append(f'{{"dst":"{router.far_address}","dev":"bond0","lladdr":"52:54:00:a0:01:{number:02x}",{extra}'
                         f'"state":["{state}"]}}')  # fmt: skip
        else:
            extra = "router " if flag else ""
            lines.append(f"{router.far_address} dev bond0 lladdr 52:54:00:a0:01:{number:02x} {extra}{state}")
    return f"[{','.join(lines)}]" if is_json else "\n".join(lines) + "\n"


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(("lacking", "state", "kinds"), [
    (1, "REACHABLE", ["router does not forward"]), (1, "STALE", ["router does not forward"]), (0, "REACHABLE", []),
    (4, "REACHABLE", []), (3, "REACHABLE", []),
])  # fmt: skip
def test_router_without_router_flag_is_reported(
    tmp_path: Path, lacking: int, state: str, kinds: list[str], is_json: bool
) -> None:
    outputs = print_server_outputs() | {"neigh": print_neighbors(lacking, state, is_json)}
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.kind for fault in faults] == kinds
    assert all(fault.problem.startswith("gw1 (fd00:160::f001) answers without") for fault in faults)


@pytest.mark.parametrize("queue", ["htb", "hfsc", "tbf", "netem"])
def test_queue_that_shapes_is_reported(tmp_path: Path, queue: str) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace("9000 qdisc noqueue", f"9000 qdisc {queue}")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("interface slowed down", "bond0")


@pytest.mark.parametrize("queue", ["fq", "fq_codel", "mq", "noqueue", "pfifo_fast", "cake"])
def test_fair_queue_is_no_fault(tmp_path: Path, queue: str) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace("9000 qdisc noqueue", f"9000 qdisc {queue}")
    assert check_outputs(tmp_path, outputs).faults == ()
