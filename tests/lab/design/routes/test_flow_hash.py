# SPDX-License-Identifier: Apache-2.0
"""The flow hash against the running kernel, fair rates against arithmetic, and plans applied in a network namespace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fabric_builders import build_fabric
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.design.routes.flow_hash import choose_next_hops, compute_flow_hashes, compute_hash_bounds, compute_siphash
from sonde.design.routes.flows import compute_fair_rates, simulate_flows
from sonde.design.routes.plan import HASH_SEED, plan_routes
from sonde.design.routes.scripts import PROTOCOL, make_host_script

SEED_FILE = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed")


def test_siphash_equals_reference() -> None:
    """The key 00 01 … 0f of the paper is not one that the kernel makes from a seed: the seed 0 and an empty message
    are checked against an independent implementation instead."""
    assert int(compute_siphash(np.zeros((1, 0), dtype=np.uint8), 0)[0]) == 0x1E924B9D737700D7
    assert int(compute_siphash(np.zeros((1, 8), dtype=np.uint8), 0)[0]) == compute_reference_siphash(bytes(8), 0)
    message = bytes(range(48))
    rows = np.frombuffer(message, dtype=np.uint8).reshape(1, -1)
    assert int(compute_siphash(rows, 0xDEADBEEF)[0]) == compute_reference_siphash(message, 0xDEADBEEF)


def compute_reference_siphash(message: bytes, seed: int) -> int:
    """SipHash-2-4 as in the paper of Aumasson and Bernstein, word by word, for messages of whole words."""
    mask = 2**64 - 1

    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> (64 - bits)) & mask

    key = (seed << 32 | seed) & mask
    state = [0x736F6D6570736575 ^ key, 0x646F72616E646F6D ^ key, 0x6C7967656E657261 ^ key, 0x7465646279746573 ^ key]

    def rounds(count: int) -> None:
        for _ in range(count):
            state[0] = (state[0] + state[1]) & mask
            state[2] = (state[2] + state[3]) & mask
            state[1], state[3] = rotate(state[1], 13) ^ state[0], rotate(state[3], 16) ^ state[2]
            state[0] = rotate(state[0], 32)
            state[2] = (state[2] + state[1]) & mask
            state[0] = (state[0] + state[3]) & mask
            state[1], state[3] = rotate(state[1], 17) ^ state[2], rotate(state[3], 21) ^ state[0]
            state[2] = rotate(state[2], 32)

    blocks = [int.from_bytes(message[start : start + 8], "little") for start in range(0, len(message), 8)]
    for block in [*blocks, (len(message) & 0xFF) << 56]:
        state[3] ^= block
        rounds(2)
        state[0] ^= block
    state[2] ^= 0xFF
    rounds(4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 65535), st.integers(1, 65535))
def test_both_directions_of_flow_have_same_hash(source: int, target: int, port: int, other_port: int) -> None:
    a, b = (".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0)) for address in (source, target))
    forward, backward = (
        compute_flow_hashes([a], [b], port, other_port, seed=7),
        compute_flow_hashes([b], [a], other_port, port, seed=7),
    )
    assert forward == backward


@given(st.lists(st.integers(1, 100), min_size=1, max_size=20))
def test_hash_bounds_divide_range_by_weights(weights: list[int]) -> None:
    upper = compute_hash_bounds(weights)
    assert upper[-1] == 2**31 - 1
    sizes = np.diff(np.concatenate([[-1], upper]))
    assert np.abs(sizes - 2**31 * np.asarray(weights) / sum(weights)).max() <= 1
    assert list(choose_next_hops([0, 2**31 - 1], weights)) == [0, len(weights) - 1]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 30), st.integers(0, 10))
def test_fair_rates_fill_one_link_of_every_flow(first: int, second: int, flows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    links = np.stack([random.integers(0, first, flows), first + random.integers(0, second, flows)])
    capacities = random.uniform(1, 10, first + second)
    rates = compute_fair_rates(links, capacities)
    used = sum(np.bincount(row, weights=rates, minlength=first + second) for row in links)
    assert np.all(used <= capacities * (1 + 1e-9))
    full = used >= capacities * (1 - 1e-6)
    assert np.all(full[links].any(axis=0)), "every flow is held back by a full link"


def test_rates_equal_arithmetic_of_two_routers() -> None:
    """Two routers of 1 GB/s; clients have 1 GB/s, servers 2: two clients cannot exceed what the routers carry."""
    fabric = build_fabric(2, clients=50, servers=2)
    clients, servers = (list(side.classes[0].addresses) for side in (fabric.near, fabric.far))
    traffic = simulate_flows(fabric, clients, servers, connections_per_pair=4, hash_layer=4, seed=HASH_SEED)
    assert traffic.all_up.flows == 400
    assert traffic.all_up.total == pytest.approx(2e9, rel=1e-6)
    assert traffic.all_up.bottleneck == "every router is full"
    assert [result.total for result in traffic.one_lost] == pytest.approx([1e9, 1e9], rel=1e-6)
    assert sum(traffic.all_up.shares) == pytest.approx(1.0)


def test_two_hosts_hashed_by_address_use_one_router() -> None:
    fabric = build_fabric(6, clients=1, servers=1)
    traffic = simulate_flows(
        fabric, ["10.1.0.100"], ["10.2.0.100"], connections_per_pair=24, hash_layer=3, seed=HASH_SEED
    )
    assert sorted(traffic.all_up.shares) == [0, 0, 0, 0, 0, 1.0]
    spread = simulate_flows(
        fabric, ["10.1.0.100"], ["10.2.0.100"], connections_per_pair=24, hash_layer=4, seed=HASH_SEED
    )
    assert sum(share > 0 for share in spread.all_up.shares) >= 5


def test_flow_labels_spread_connections_over_ipv6_only() -> None:
    """With policy 0 two hosts use one router over IPv4, but the label of each connection counts over IPv6."""
    old = simulate_flows(
        build_fabric(6, 1, 1), ["10.1.0.100"], ["10.2.0.100"], connections_per_pair=60, hash_layer=3, seed=1
    )
    new = simulate_flows(
        build_fabric(6, 1, 1, ip_version=6), ["fd01::64"], ["fd02::64"], connections_per_pair=60, hash_layer=3, seed=1
    )
    assert max(old.all_up.shares) == 1.0
    assert max(new.all_up.shares) < 0.5


def test_many_flows_spread_within_binomial_interval() -> None:
    sources = [f"10.{128 + number // 65536}.{number // 256 % 256}.{number % 256}" for number in range(100_000)]
    hop_indexes = choose_next_hops(
        compute_flow_hashes(sources, ["10.2.0.1"] * len(sources), 40000, 988, seed=3), [1] * 16
    )
    counts = np.bincount(hop_indexes, minlength=16)
    expected = len(sources) / 16
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))


# --- against the kernel

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
)
NAMESPACE = f"sonde-routes-{os.getpid()}"


def run_ip(*arguments: str, check: bool = True) -> str:
    completed = subprocess.run(["ip", "-n", NAMESPACE, *arguments], capture_output=True, text=True, check=False)
    assert completed.returncode == 0 or not check, completed.stderr
    return completed.stdout


def run_in_namespace(*command: str) -> str:
    completed = subprocess.run(
        ["ip", "netns", "exec", NAMESPACE, *command], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.fixture
def namespace() -> Iterator[None]:
    """A host of its own with an interface on the near network."""
    if subprocess.run(["ip", "netns", "add", NAMESPACE], capture_output=True).returncode:
        pytest.skip("network namespaces are not allowed here")
    try:
        run_ip("link", "set", "lo", "up")
        # No link-local address: the kernel would add routes of it a second later, when nobody else has answered to it.
        run_ip("link", "add", "eth0", "mtu", "9000", "type", "veth", "peer", "name", "other", "mtu", "9000")
        for name in ("eth0", "other"):
            run_ip("link", "set", name, "addrgenmode", "none")
        run_ip("link", "set", "other", "up")
        run_ip("link", "set", "eth0", "up")
        run_ip("addr", "add", "10.1.0.100/16", "dev", "eth0")
        run_ip("addr", "add", "fd01::64/64", "dev", "eth0", "nodad")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True)


def find_kernel_next_hop(target: str, port: int, version: int = 4) -> str:
    """The next hop that the kernel chooses for a connection."""
    source = "10.1.0.100" if version == 4 else "fd01::64"
    selector = ["ipproto", "tcp", "sport", str(port), "dport", "1191"]
    output = run_ip(f"-{version}", "route", "get", target, "from", source, *selector)
    return str(re.findall(r"via (\S+)", output)[0])


@needs_root
@pytest.mark.root
@pytest.mark.parametrize(("routers", "version"), [(2, 4), (6, 4), (8, 4), (5, 6)])
def test_applied_plan_spreads_as_predicted_and_is_removed(
    namespace: None, tmp_path: Path, routers: int, version: int
) -> None:
    if not SEED_FILE.exists():
        pytest.skip("this kernel has no fib_multipath_hash_seed (it came with Linux 6.11)")
    fabric = build_fabric(routers, clients=1, servers=3, ip_version=version)
    plan = plan_routes(fabric)
    script = tmp_path / "routes.sh"
    script.write_text(make_host_script(plan, plan.find_host_plan("clients"), script.name))
    family = f"-{version}"
    # A route that the plan of another fabric made: it stays.
    run_ip(
        family, "route", "add", "blackhole", "203.0.113.0/24" if version == 4 else "2001:db8:9::/48", "proto", PROTOCOL
    )
    before = (run_ip(family, "rule"), run_ip(family, "route", "show", "table", "all"))
    run_in_namespace("sh", str(script), "apply")
    once = (run_ip(family, "rule"), run_ip(family, "route", "show", "table", "all"))
    run_in_namespace("sh", str(script), "apply")
    assert (run_ip(family, "rule"), run_ip(family, "route", "show", "table", "all")) == once, (
        "applying twice changes nothing"
    )
    servers = fabric.far.classes[0].addresses
    ports = range(40000, 40060)
    flows = [(servers[port % len(servers)], port) for port in ports]
    source = fabric.near.classes[0].addresses[0]
    assert source == ("10.1.0.100" if version == 4 else "fd01::64")
    hashes = compute_flow_hashes(
        [source] * len(flows), [server for server, _ in flows], list(ports), 1191, seed=HASH_SEED
    )
    predicted = [fabric.routers[index].near_address for index in choose_next_hops(hashes, [1] * routers)]
    assert [find_kernel_next_hop(target, port, version) for target, port in flows] == predicted
    assert len(Counter(predicted)) > 1
    marked = run_ip(family, "route", "get", servers[0], "mark", "2")
    assert f"via {fabric.routers[1].near_address} " in marked, "a marked packet takes the router of its table"
    run_in_namespace("sh", str(script), "remove")
    assert (run_ip(family, "rule"), run_ip(family, "route", "show", "table", "all")) == before
