# SPDX-License-Identifier: Apache-2.0
"""Network interfaces and TCP: /proc/net/dev and /proc/net/snmp (proc(5)), of this process's network namespace."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.telemetry.source import LocalSource, ReadingsByPart, open_kernel_files

_DEVICES_FILE, _PROTOCOLS_FILE = "proc/net/dev", "proc/net/snmp"
_COUNTERS_PER_DEVICE = 16  # eight of receiving, eight of sending


def parse_net_dev(net_dev_text: str) -> ReadingsByPart:
    """Bytes, packets, and errors plus drops of each interface in the order of the columns of `INTERFACES`."""
    readings: ReadingsByPart = {}
    for line in net_dev_text.splitlines():
        name, separator, counter_text = line.partition(":")
        fields = counter_text.split()
        if not separator or len(fields) < _COUNTERS_PER_DEVICE or not fields[0].isdigit():
            continue
        counters = [int(field) for field in fields]
        readings[name.strip()] = (
            counters[0], counters[1], counters[2] + counters[3], counters[8], counters[9], counters[10] + counters[11],
        )  # fmt: skip
    return readings


def parse_tcp_segments(snmp_text: str) -> ReadingsByPart:
    """Segments that TCP sent and sent again."""
    lines = [line.split() for line in snmp_text.splitlines() if line.startswith("Tcp:")]
    if len(lines) != 2:
        return {}
    counters = dict(zip(lines[0][1:], lines[1][1:], strict=False))
    return {"tcp": (float(counters["OutSegs"]), float(counters["RetransSegs"]))}


def _parse_net_dev_file(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    return {name: values for name, values in parse_net_dev(texts_by_path[_DEVICES_FILE]).items() if any(values)}


def _parse_snmp_file(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    return parse_tcp_segments(texts_by_path[_PROTOCOLS_FILE])


INTERFACES_SOURCE = LocalSource(
    "interfaces",
    "bytes, packets and errors of every network interface",
    "node",
    (
        "network_received_bytes", "network_received_packets", "network_receive_errors", "network_sent_bytes",
        "network_sent_packets", "network_send_errors",
    ),
    lambda root: open_kernel_files(root, (_DEVICES_FILE,), _parse_net_dev_file, "mount /proc."),
)  # fmt: skip
TCP_SOURCE = LocalSource(
    "tcp",
    "TCP segments and retransmissions",
    "node",
    ("tcp_sent_segments", "tcp_retransmitted_segments"),
    lambda root: open_kernel_files(root, (_PROTOCOLS_FILE,), _parse_snmp_file, "mount /proc."),
)
