# SPDX-License-Identifier: Apache-2.0
"""Streams of bytes over TCP between two network namespaces of a room, without storage, as iperf3 measures them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # faults of a local file system are planted without rooms
    from daemon_namespace import Room

# The link of each host. All targets of a healthy file system here together are nearly as fast.
LINK_MEGABITS = 3000
_SECONDS = 1.5
# Segments sent again that count, as a share of all, and how many times the share on the healthy network. So many must
# be more than chance: a stream that begins may fill a queue and lose a segment, and one that waits sends few segments.
_MIN_RETRANSMITTED_FRACTION, _MIN_INCREASE, _MAX_CHANCE = 1e-3, 3.0, 0.01
_RECEIVER = """import socket, sys, time
with socket.create_server((sys.argv[1], 0)) as server:
    print(server.getsockname()[1], flush=True)
    stream, _ = server.accept()
buffer, count = bytearray(1 << 20), 0
stream.recv_into(buffer, 1)
start = time.monotonic()
while received := stream.recv_into(buffer):
    count += received
print(count / (time.monotonic() - start), flush=True)
"""
# Offsets in struct tcp_info of linux/tcp.h: tcpi_total_retrans, tcpi_segs_out.
_SENDER = """import json, socket, struct, sys, time
stream, block = socket.create_connection((sys.argv[1], int(sys.argv[2]))), bytes(1 << 18)
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    stream.sendall(block)
facts = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 140)
print(json.dumps([struct.unpack_from("=I", facts, offset)[0] for offset in (100, 136)]), flush=True)
stream.close()
"""


def _compute_poisson_tail(count: int, expected: float) -> float:
    """Probability of at least so many events where `expected` are expected."""
    term, fewer = math.exp(-expected), 0.0
    for number in range(count):
        fewer += term
        term *= expected / (number + 1)
    return max(0.0, 1.0 - fewer)


def set_link_rate(room: Room, device: str, megabits: int = LINK_MEGABITS, namespace: str = "") -> None:
    """Sets the rate at which a network device of the room, or of a network namespace in it, sends."""
    namespace_option = ("-n", namespace) if namespace else ()
    shape = ("tbf", "rate", f"{megabits}mbit", "burst", "256kb", "latency", "50ms")
    room.run("tc", *namespace_option, "qdisc", "replace", "dev", device, "root", *shape)


@dataclass(frozen=True)
class Stream:
    """Bytes per second of a stream, and its segments: all that were sent, and those that were sent again."""

    bytes_per_s: float
    sent_segments: int
    retransmitted_segments: int

    @property
    def retransmitted_fraction(self) -> float:
        return self.retransmitted_segments / max(1, self.sent_segments)

    def loses_more(self, earlier: Stream) -> bool:
        """Whether clearly more segments were sent again than in an earlier stream."""
        min_fraction = max(_MIN_RETRANSMITTED_FRACTION, _MIN_INCREASE * earlier.retransmitted_fraction)
        expected = min_fraction * self.sent_segments
        chance = _compute_poisson_tail(self.retransmitted_segments, expected)
        return self.retransmitted_fraction >= min_fraction and chance < _MAX_CHANCE


def measure_stream(room: Room, sender: Sequence[str], receiver: Sequence[str], address: str) -> Stream:
    """Measures a stream. `sender` and `receiver` are commands that execute another one in a network namespace of
    the room; `address` is one of the receiver."""
    command = (sys.executable, "-S", "-c")
    receiving = subprocess.Popen(
        room.enter_command(*receiver, *command, _RECEIVER, address), stdout=subprocess.PIPE, text=True
    )
    assert receiving.stdout is not None
    try:
        port = receiving.stdout.readline().strip()
        counts = room.output_of(*sender, *command, _SENDER, address, port, str(_SECONDS))
        rate = float(receiving.stdout.readline())
    finally:
        receiving.kill()
        receiving.wait()
        receiving.stdout.close()
    again, sent = json.loads(counts)
    return Stream(rate, sent, again)


def find_changed_stream(streams: Sequence[Stream], earlier_streams: Sequence[Stream]) -> tuple[float, bool]:
    """Returns the smallest present / earlier rate of a pair of hosts, and whether a pair lost more segments."""
    pairs = list(zip(streams, earlier_streams, strict=True))
    ratio = min(now.bytes_per_s / then.bytes_per_s for now, then in pairs)
    return ratio, any(now.loses_more(then) for now, then in pairs)
