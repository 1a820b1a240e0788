# SPDX-License-Identifier: Apache-2.0
"""Which router a flow takes: the hash and the choice of Linux, for any number of flows at once.

The kernel (``fib_multipath_hash`` and ``flow_hash_from_keys_seed``, Linux 6.11 and later) hashes addresses, and with
policy 1 ports and protocol too; with policy 0 IPv6 hashes protocol and flow label, which each connection and each
direction has of its own unless ``net.ipv6.auto_flowlabels`` is 0. It hashes by SipHash-2-4 with a key made from
``fib_multipath_hash_seed``. Source and destination are sorted first, so both directions of a flow give the same hash.
The upper 31 bits are compared with bounds that divide the range by the weights of the next hops. Without a seed the key
is random at boot, and only the distribution is known. Tests hold this module against the kernel they run on.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Words = NDArray[np.uint64]
Layer = int  # 3: addresses (policy 0); 4: addresses and ports (policy 1)
TCP = 6

# What is hashed begins with protocol (4 bytes), tags (4), two VLAN keys (16), key id (4), ports (4) and ICMP (4).
_LABEL, _BEFORE_PORTS, _PORTS_END = 4, 28, 36
_IPV4 = 4  # bytes of an address
# … the addresses follow, and what fills the structure up to a multiple of 8 bytes is hashed too.
_PADDING = 4
_RANGE = 1 << 31


def flow_hashes(
    sources: Sequence[str] | NDArray[np.uint8],
    destinations: Sequence[str] | NDArray[np.uint8],
    source_ports: ArrayLike = 0,
    destination_ports: ArrayLike = 0,
    *,
    layer: Layer = 4,
    seed: int,
    protocol: int = TCP,
    labels: ArrayLike = 0,
) -> NDArray[np.uint32]:
    """The 31-bit hash of each flow as the kernel computes it on a little-endian machine. Addresses are texts of one IP
    version or what `packed` makes of them; ports and flow labels are arrays of their length or one number for all."""
    count = len(sources)
    first, second = (one if isinstance(one, np.ndarray) else packed(one) for one in (sources, destinations))
    size = first.shape[1]
    words = _PORTS_END + 2 * size + _PADDING
    data = np.zeros((count, words), dtype=np.uint8)
    low, high = _sorted_addresses(first, second)
    data[:, _PORTS_END : _PORTS_END + size] = low
    data[:, _PORTS_END + size : _PORTS_END + 2 * size] = high
    if layer == 4 or size > _IPV4:
        data[:, 2] = protocol
    if layer == 3 and size > _IPV4:
        label = np.broadcast_to(np.asarray(labels), count)
        for place in range(3):
            data[:, _LABEL + 3 - place] = label >> 8 * place & 0xFF
    if layer == 4:
        ports = [_as_network(np.broadcast_to(np.asarray(one), count)) for one in (source_ports, destination_ports)]
        swap = ports[1] < ports[0]
        for place, port in enumerate((np.where(swap, ports[1], ports[0]), np.where(swap, ports[0], ports[1]))):
            data[:, _BEFORE_PORTS + 2 * place] = port & 0xFF
            data[:, _BEFORE_PORTS + 2 * place + 1] = port >> 8
    hashed = siphash(data, seed) & np.uint64(0xFFFFFFFF)
    hashed[hashed == 0] = 1
    result: NDArray[np.uint32] = (hashed >> np.uint64(1)).astype(np.uint32)
    return result


def bounds(weights: Sequence[int]) -> NDArray[np.int64]:
    """The largest hash that still belongs to each next hop."""
    if not weights or min(weights) < 1:
        raise ValueError("next hops need weights of 1 and more")
    total = sum(weights)
    reached = np.cumsum(np.asarray(weights, dtype=np.int64))
    upper: NDArray[np.int64] = (reached * _RANGE + total // 2) // total - 1
    return upper


def chosen(hashes: ArrayLike, weights: Sequence[int]) -> NDArray[np.int64]:
    """The position of the next hop that each hash leads to."""
    places: NDArray[np.int64] = np.searchsorted(bounds(weights), np.asarray(hashes, dtype=np.int64), side="left")
    return places


def siphash(data: NDArray[np.uint8], seed: int) -> Words:
    """SipHash-2-4 of each row, a multiple of 8 bytes long; the key is the seed four times, as the kernel makes it."""
    length = data.shape[1]
    key = np.uint64((seed & 0xFFFFFFFF) << 32 | (seed & 0xFFFFFFFF))
    state = [
        np.full(len(data), np.uint64(start) ^ key, dtype=np.uint64)
        for start in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    ]
    blocks = np.ascontiguousarray(data).view("<u8").astype(np.uint64)
    for at in range(length // 8):
        _compress(state, blocks[:, at])
    _compress(state, np.full(len(data), np.uint64((length & 0xFF) << 56), dtype=np.uint64))
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(state)
    found: Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    return found


def _compress(state: list[Words], block: Words) -> None:
    state[3] ^= block
    _round(state)
    _round(state)
    state[0] ^= block


def _round(v: list[Words]) -> None:
    v[0] = v[0] + v[1]
    v[1] = _rotated(v[1], 13) ^ v[0]
    v[0] = _rotated(v[0], 32)
    v[2] = v[2] + v[3]
    v[3] = _rotated(v[3], 16) ^ v[2]
    v[0] = v[0] + v[3]
    v[3] = _rotated(v[3], 21) ^ v[0]
    v[2] = v[2] + v[1]
    v[1] = _rotated(v[1], 17) ^ v[2]
    v[2] = _rotated(v[2], 32)


def _rotated(values: Words, bits: int) -> Words:
    turned: Words = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return turned


def packed(addresses: Sequence[str]) -> NDArray[np.uint8]:
    """Addresses of one IP version as rows of bytes in network order."""
    rows = [ipaddress.ip_address(one).packed for one in addresses]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("flows of one call have one IP version")
    found: NDArray[np.uint8] = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    return found


def _sorted_addresses(
    source: NDArray[np.uint8], destination: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """IPv4 addresses are compared as the little-endian numbers that network order makes of them, IPv6 byte by byte."""
    if source.shape[1] == 4:
        swap = destination.copy().view("<u4")[:, 0] < source.copy().view("<u4")[:, 0]
    else:
        differ = source != destination
        place = np.argmax(differ, axis=1)
        rows = np.arange(len(source))
        swap = destination[rows, place] < source[rows, place]
    turned = swap[:, None]
    return np.where(turned, destination, source), np.where(turned, source, destination)


def _as_network(ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ports as a little-endian machine sees them in network order."""
    values = ports.astype(np.int64)
    swapped: NDArray[np.int64] = ((values & 0xFF) << 8) | (values >> 8)
    return swapped
