# SPDX-License-Identifier: Apache-2.0
"""Predicts the router of each flow by Linux's flow hash and choice of a next hop, for any number of flows at once.

The kernel (``fib_multipath_hash`` and ``flow_hash_from_keys_seed``, Linux 6.11 and later) hashes addresses, and with
policy 1 ports and protocol too. With policy 0 IPv6 hashes protocol and flow label; each connection and each direction
has its own label unless ``net.ipv6.auto_flowlabels`` is 0. The hash function is SipHash-2-4 with a key made from
``fib_multipath_hash_seed``. Source and destination are sorted first, so both directions of a flow have the same hash.
The upper 31 bits are compared with bounds that divide the range by the weights of the next hops. Without a seed the key
is random at boot, and only the distribution is known. Tests compare this module with the running kernel.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Uint64Array = NDArray[np.uint64]
HashLayer = int  # 3: addresses (policy 0); 4: addresses and ports (policy 1)
TCP = 6

# The hashed structure begins with protocol (4 bytes), flow label (4), two VLAN keys (16), key id (4), ports (4) and
# ICMP (4).
_LABEL_OFFSET, _PORTS_OFFSET, _ADDRESSES_OFFSET = 4, 28, 36
_IPV4_SIZE = 4  # bytes of an IPv4 address
# The addresses follow, and padding up to a multiple of 8 bytes, which is hashed too.
_PADDING = 4
_RANGE = 1 << 31


def compute_flow_hashes(
    sources: Sequence[str] | NDArray[np.uint8],
    destinations: Sequence[str] | NDArray[np.uint8],
    source_ports: ArrayLike = 0,
    destination_ports: ArrayLike = 0,
    *,
    hash_layer: HashLayer = 4,
    seed: int,
    protocol: int = TCP,
    labels: ArrayLike = 0,
) -> NDArray[np.uint32]:
    """The 31-bit hash of each flow as the kernel computes it on a little-endian machine. Addresses are texts of one IP
    version or the result of `pack_addresses`; ports and flow labels are arrays of the same length or one number for
    all."""
    count = len(sources)
    first, second = (
        values if isinstance(values, np.ndarray) else pack_addresses(values) for values in (sources, destinations)
    )
    size = first.shape[1]
    length = _ADDRESSES_OFFSET + 2 * size + _PADDING
    data = np.zeros((count, length), dtype=np.uint8)
    low, high = _sort_address_pairs(first, second)
    data[:, _ADDRESSES_OFFSET : _ADDRESSES_OFFSET + size] = low
    data[:, _ADDRESSES_OFFSET + size : _ADDRESSES_OFFSET + 2 * size] = high
    if hash_layer == 4 or size > _IPV4_SIZE:
        data[:, 2] = protocol
    if hash_layer == 3 and size > _IPV4_SIZE:
        label = np.broadcast_to(np.asarray(labels), count)
        for index in range(3):
            data[:, _LABEL_OFFSET + 3 - index] = label >> 8 * index & 0xFF
    if hash_layer == 4:
        ports = [
            _swap_port_bytes(np.broadcast_to(np.asarray(values), count)) for values in (source_ports, destination_ports)
        ]
        swap = ports[1] < ports[0]
        for index, port in enumerate((np.where(swap, ports[1], ports[0]), np.where(swap, ports[0], ports[1]))):
            data[:, _PORTS_OFFSET + 2 * index] = port & 0xFF
            data[:, _PORTS_OFFSET + 2 * index + 1] = port >> 8
    hashed = compute_siphash(data, seed) & np.uint64(0xFFFFFFFF)
    hashed[hashed == 0] = 1
    result: NDArray[np.uint32] = (hashed >> np.uint64(1)).astype(np.uint32)
    return result


def compute_hash_bounds(weights: Sequence[int]) -> NDArray[np.int64]:
    """The largest hash that still belongs to each next hop."""
    if not weights or min(weights) < 1:
        raise ValueError("next hops need weights of 1 and more")
    total = sum(weights)
    reached = np.cumsum(np.asarray(weights, dtype=np.int64))
    upper: NDArray[np.int64] = (reached * _RANGE + total // 2) // total - 1
    return upper


def choose_next_hops(flow_hashes: ArrayLike, weights: Sequence[int]) -> NDArray[np.int64]:
    """The index of the next hop that each hash selects."""
    positions: NDArray[np.int64] = np.searchsorted(
        compute_hash_bounds(weights), np.asarray(flow_hashes, dtype=np.int64), side="left"
    )
    return positions


def compute_siphash(message_rows: NDArray[np.uint8], seed: int) -> Uint64Array:
    """SipHash-2-4 of each row, which is a multiple of 8 bytes long; the key is the seed four times, as in the
    kernel."""
    length = message_rows.shape[1]
    key = np.uint64((seed & 0xFFFFFFFF) << 32 | (seed & 0xFFFFFFFF))
    state = [
        np.full(len(message_rows), np.uint64(start) ^ key, dtype=np.uint64)
        for start in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    ]
    blocks = np.ascontiguousarray(message_rows).view("<u8").astype(np.uint64)
    for index in range(length // 8):
        _compress_siphash_block(state, blocks[:, index])
    _compress_siphash_block(state, np.full(len(message_rows), np.uint64((length & 0xFF) << 56), dtype=np.uint64))
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _mix_siphash_state(state)
    hashes: Uint64Array = state[0] ^ state[1] ^ state[2] ^ state[3]
    return hashes


def _compress_siphash_block(hash_state: list[Uint64Array], message_words: Uint64Array) -> None:
    hash_state[3] ^= message_words
    _mix_siphash_state(hash_state)
    _mix_siphash_state(hash_state)
    hash_state[0] ^= message_words


def _mix_siphash_state(hash_state: list[Uint64Array]) -> None:
    hash_state[0] = hash_state[0] + hash_state[1]
    hash_state[1] = _rotate_left(hash_state[1], 13) ^ hash_state[0]
    hash_state[0] = _rotate_left(hash_state[0], 32)
    hash_state[2] = hash_state[2] + hash_state[3]
    hash_state[3] = _rotate_left(hash_state[3], 16) ^ hash_state[2]
    hash_state[0] = hash_state[0] + hash_state[3]
    hash_state[3] = _rotate_left(hash_state[3], 21) ^ hash_state[0]
    hash_state[2] = hash_state[2] + hash_state[1]
    hash_state[1] = _rotate_left(hash_state[1], 17) ^ hash_state[2]
    hash_state[2] = _rotate_left(hash_state[2], 32)


def _rotate_left(values: Uint64Array, bit_count: int) -> Uint64Array:
    rotated: Uint64Array = (values << np.uint64(bit_count)) | (values >> np.uint64(64 - bit_count))
    return rotated


def pack_addresses(addresses: Sequence[str]) -> NDArray[np.uint8]:
    """Addresses of one IP version as rows of bytes in network order."""
    rows = [ipaddress.ip_address(address).packed for address in addresses]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("flows of one call have one IP version")
    packed_rows: NDArray[np.uint8] = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    return packed_rows


def _sort_address_pairs(
    source_addresses: NDArray[np.uint8], destination_addresses: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """IPv4 addresses are compared as the little-endian numbers of their bytes in network order, IPv6 byte by byte."""
    if source_addresses.shape[1] == 4:
        swap = destination_addresses.copy().view("<u4")[:, 0] < source_addresses.copy().view("<u4")[:, 0]
    else:
        differ = source_addresses != destination_addresses
        first_difference = np.argmax(differ, axis=1)
        rows = np.arange(len(source_addresses))
        swap = destination_addresses[rows, first_difference] < source_addresses[rows, first_difference]
    swap_column = swap[:, None]
    return np.where(swap_column, destination_addresses, source_addresses), np.where(
        swap_column, source_addresses, destination_addresses
    )


def _swap_port_bytes(ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ports as a little-endian machine reads their bytes in network order."""
    values = ports.astype(np.int64)
    swapped_values: NDArray[np.int64] = ((values & 0xFF) << 8) | (values >> 8)
    return swapped_values
