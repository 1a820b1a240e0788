# SPDX-License-Identifier: Apache-2.0
"""Outputs of tc: a queueing discipline is a fault where it slows the interface down, not by its kind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.queue_outputs import parse_queue_output

COUNTS = " Sent {} bytes {} pkt (dropped {}, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
HTB = "qdisc htb 1: dev eth2 root refcnt 33 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n"
CLASSES = """class htb 1:10 parent 1:1 leaf 8004: prio 0 rate 10Gbit ceil 10Gbit burst 0b cburst 0b
 Sent 9000000 bytes 1000 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
 lended: 0 borrowed: 0 giants: 0
 tokens: 14 ctokens: 14

class htb 1:1 root rate 100Gbit ceil 100Gbit burst 0b cburst 0b
class htb 1:20 parent 1:1 prio 0 rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b
"""
HFSC = "qdisc hfsc 1: dev eth2 root refcnt 33 default 10\n"
HFSC_CLASS = "class hfsc 1:10 parent 1: sc m1 0bit d 0us m2 10Gbit ul m1 0bit d 0us m2 {}\n"
SPEED = "Settings for eth2:\n\tSpeed: 100000Mb/s\n\tDuplex: Full\n"


def check_queues(folder: Path, text: str, speed: str = SPEED, name: str = "tc") -> tuple[RouteFault, ...]:
    """The faults of a healthy server with one more output of tc, whose kind of queue `ip addr` prints too."""
    outputs = print_server_outputs() | {name: text} | ({"ethtool": speed} if speed else {})
    if root := re.search(r"qdisc (\w+) \S+ (?:dev eth2 )?root", text):
        outputs["addr"] = outputs["addr"].replace("qdisc mq master", f"qdisc {root[1]} master", 1)
    return check_outputs(folder, outputs).faults


@pytest.mark.parametrize("text", [
    HTB + CLASSES.replace("10Gbit", "100Gbit"),
    HTB.replace("0x10", "0") + CLASSES.replace("1000 pkt", "0 pkt"),
    HFSC + HFSC_CLASS.format("100Gbit"), HFSC + HFSC_CLASS.partition(" ul")[0] + "\n",
    "qdisc tbf 8002: dev eth2 root refcnt 3 rate 100Gbit burst 1048500b lat 50ms\n",
    "qdisc cake 8003: dev eth2 root refcnt 2 bandwidth unlimited diffserv3 triple-isolate\n",
    "qdisc netem 8004: dev eth2 root refcnt 33 limit 1000\n",
    "qdisc mq 0: dev eth2 root\nqdisc fq_codel 0: dev eth2 parent :1 limit 10240p flows 1024 quantum 9014\n",
    "qdisc fq 8005: dev eth2 root refcnt 33 limit 10000p flow_limit 100p\n" + COUNTS.format(9 * 10**9, 10**6, 40),
    "qdisc pfifo_fast 0: dev eth2 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n",
])  # fmt: skip
def test_queue_at_the_rate_of_its_interface_is_no_fault(tmp_path: Path, text: str) -> None:
    assert check_queues(tmp_path, text) == ()


@pytest.mark.parametrize(("text", "expected_sentence"), [
    (HTB + CLASSES, "the class 1:10 of eth2 (htb) limits packets that no filter selects to 1.25 GB/s of 12.5 GB/s"),
    (HTB + CLASSES.replace("10Gbit", "100Gbit").replace("root rate 100Gbit ceil 100Gbit", "root rate 1Gbit ceil 1Gbit"),
     "the class 1:1 of eth2 (htb) limits packets that no filter selects to 125 MB/s"),
    (HTB.replace("0x10", "0") + CLASSES, "the class 1:10 of eth2 (htb) limits most packets to 1.25 GB/s"),
    (HTB, "which limits packets by the rates of its classes, and no output has these"),
    (HFSC + HFSC_CLASS.format("1Gbit"), "the class 1:10 of eth2 (hfsc) limits packets that no filter selects to"),
    (HFSC.replace("10", "30") + HFSC_CLASS.format("1Gbit"), "has no class 1:30 (default): it drops each packet"),
    ("qdisc tbf 8002: dev eth2 root refcnt 3 rate 10Gbit burst 1048500b lat 50ms\n" + COUNTS.format(1, 1, 7),
     "the queueing discipline of eth2 (tbf) limits it to 1.25 GB/s of 12.5 GB/s, and has dropped 7 packets"),
    ("qdisc cake 8003: dev eth2 root refcnt 2 bandwidth 40Gbit diffserv3\n", "(cake) limits it to 5.00 GB/s of"),
    ("qdisc fq 8003: dev eth2 root refcnt 2 limit 10000p maxrate 1Gbit\n", "limits each connection to 125 MB/s"),
    ("qdisc netem 8004: dev eth2 root refcnt 33 limit 1000 delay 1ms  200us loss 0.5%\n",
     "(netem) delays each packet by 1ms, loses 0.5% of them"),
    ("qdisc mq 1: dev eth2 root\nqdisc netem 0: dev eth2 parent 1:4 limit 1000 loss 1%\n", "(netem) loses 1% of them"),
])  # fmt: skip
def test_queue_below_the_rate_of_its_interface_is_reported(tmp_path: Path, text: str, expected_sentence: str) -> None:
    (fault,) = check_queues(tmp_path, text)
    assert (fault.kind, fault.location) == ("interface slowed down", "eth2")
    assert expected_sentence in fault.problem


def test_queue_of_few_packets_is_reported(tmp_path: Path) -> None:
    (fault,) = check_queues(tmp_path, "qdisc pfifo 8003: dev eth2 root refcnt 3 limit 10p\n")
    assert (fault.kind, fault.location) == ("short queue", "eth2")


def test_drops_of_a_queue_are_reported(tmp_path: Path) -> None:
    text = "qdisc mq 0: dev eth2 root\n" + COUNTS.format(9 * 10**9, 10**6, 30_000)
    (fault,) = check_queues(tmp_path, text)
    assert (fault.kind, fault.location) == ("packets not sent", "eth2")
    assert "(mq) dropped 30000 of 1030000 packets" in fault.problem


def test_limit_of_an_unknown_rate_is_reported(tmp_path: Path) -> None:
    (fault,) = check_queues(tmp_path, "qdisc tbf 8002: dev eth2 root refcnt 3 rate 10Gbit burst 1b lat 50ms\n", "")
    assert fault.problem.endswith(
        "to 1.25 GB/s (the system file states no rate of eth2: state it where it is this one)"
    )


@pytest.mark.parametrize(("name", "head"), [("tc-eth2.txt", ""), ("tc", "# tc -s qdisc show dev eth2\n")])  # fmt: skip
def test_device_of_a_queue_comes_from_file_or_command(tmp_path: Path, name: str, head: str) -> None:
    text = f"{head}{HTB.replace('dev eth2 ', '')}{CLASSES}"
    assert [fault.location for fault in check_queues(tmp_path, text, name=name)] == ["eth2"]


def test_queues_follow_other_outputs_in_one_file(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] += HTB + CLASSES
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("interface slowed down", "eth2")


def test_rate_without_a_number_is_unlimited() -> None:
    (entry,) = parse_queue_output("qdisc cake 1: dev eth2 root bandwidth unlimited\n", "tc")
    assert entry.find_rate("bandwidth") is None


def print_queue_json(kind: str, options: dict[str, object], dropped: int = 0) -> str:
    """One discipline of eth2 as `tc -j -s qdisc` prints it."""
    counts = {"bytes": 9 * 10**12, "packets": 10**9, "drops": dropped, "overlimits": 0, "requeues": 0}
    root = {"kind": kind, "handle": "8001:", "dev": "eth2", "root": True, "refcnt": 33, "options": options, **counts}
    inner = {"kind": "fq_codel", "handle": "0:", "dev": "eth2", "parent": ":1", "options": {"limit": 10240}, **counts}
    return json.dumps([root, inner])


@pytest.mark.parametrize(("kind", "options", "dropped", "expected_sentence"), [
    ("tbf", {"rate": 1250000000, "burst": 131072, "lat": 50000}, 7, "(tbf) limits it to 1.25 GB/s of 12.5 GB/s, and"),
    ("netem", {"limit": 1000, "delay": {"delay": 0.01, "jitter": 0, "correlation": 0},
               "loss-random": {"loss": 0.001, "correlation": 0}}, 0, "(netem) delays each packet by 10ms, loses 0.1%"),
    ("netem", {"limit": 1000, "rate": {"rate": 125000000, "packetoverhead": 0}}, 0, "limits it to 125 MB/s"),
    ("pfifo", {"limit": 10}, 991231, "(pfifo) holds 10 (limit)"),
    ("cake", {"bandwidth": 1250000000, "diffserv": "diffserv3"}, 0, "(cake) limits it to 1.25 GB/s"),
    ("mq", {}, 10**8, "(mq) dropped 100000000 of 1100000000 packets"),
    ("cake", {"bandwidth": "unlimited"}, 0, ""),
    ("mq", {}, 0, ""),
])  # fmt: skip
def test_queue_in_json_is_judged_as_in_text(
    tmp_path: Path, kind: str, options: dict[str, object], dropped: int, expected_sentence: str
) -> None:
    faults = check_queues(tmp_path, print_queue_json(kind, options, dropped), name="tc-j-s-qdisc.json")
    assert [expected_sentence in fault.problem for fault in faults] == [True] * bool(expected_sentence)


def test_classes_in_json_are_judged_as_in_text(tmp_path: Path) -> None:
    htb = {"kind": "htb", "handle": "1:", "dev": "eth2", "root": True, "options": {"r2q": 10, "default": "0x10"}}
    row = {"class": "htb", "handle": "1:10", "parent": "1:1", "prio": 0, "rate": 1250000000, "ceil": 1250000000,
           "stats": {"bytes": 9, "packets": 1000, "drops": 0}}  # fmt: skip
    outputs = {"tc-j-qdisc.json": json.dumps([htb]), "tc-j-class-eth2.json": json.dumps([row]), "ethtool": SPEED}
    (fault,) = check_outputs(tmp_path, print_server_outputs() | outputs).faults
    assert "the class 1:10 of eth2 (htb) limits packets that no filter selects to 1.25 GB/s" in fault.problem


@pytest.mark.parametrize(("kind", "length", "is_fault"), [("mq", "0", True), ("mq", "1000", False),
                                                          ("noqueue", "0", False)])  # fmt: skip
def test_queue_without_room_is_reported(tmp_path: Path, kind: str, length: str, is_fault: bool) -> None:
    outputs = print_server_outputs()
    old = "qdisc mq master bond0 state UP qlen 1000"
    assert old in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(old, f"qdisc {kind} master bond0 state UP qlen {length}", 1)
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == ["short queue"] * is_fault
