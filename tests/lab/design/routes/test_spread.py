# SPDX-License-Identifier: Apache-2.0
"""The kernel's hash against the kernel, fair rates against arithmetic, and plans applied in a network namespace."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from made_fabric import made

from sonde.design.routes.flows import fair_rates, simulate
from sonde.design.routes.plan import HASH_SEED, plan_routes
from sonde.design.routes.scripts import host_script
from sonde.design.routes.spread import bounds, chosen, flow_hashes, siphash

SEED_FILE = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed")


def test_siphash_of_the_published_test_vector() -> None:
    """The key 00 01 … 0f of the paper is not one that the kernel makes from a seed: the seed 0 and an empty message
    are checked against an independent implementation instead."""
    assert int(siphash(np.zeros((1, 0), dtype=np.uint8), 0)[0]) == 0x1E924B9D737700D7
    assert int(siphash(np.zeros((1, 8), dtype=np.uint8), 0)[0]) == reference(bytes(8), 0)
    message = bytes(range(48))
    rows = np.frombuffer(message, dtype=np.uint8).reshape(1, -1)
    assert int(siphash(rows, 0xDEADBEEF)[0]) == reference(message, 0xDEADBEEF)


def reference(message: bytes, seed: int) -> int:
    """SipHash-2-4 as in the paper of Aumasson and Bernstein, word by word, for messages of whole words."""
    mask = 2**64 - 1

    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> (64 - bits)) & mask

    key = (seed << 32 | seed) & mask
    v = [0x736F6D6570736575 ^ key, 0x646F72616E646F6D ^ key, 0x6C7967656E657261 ^ key, 0x7465646279746573 ^ key]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & mask
            v[2] = (v[2] + v[3]) & mask
            v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[1]) & mask
            v[0] = (v[0] + v[3]) & mask
            v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    words = [int.from_bytes(message[at : at + 8], "little") for at in range(0, len(message), 8)]
    for word in [*words, (len(message) & 0xFF) << 56]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 65535), st.integers(1, 65535))
def test_both_directions_of_a_flow_take_the_same_router(source: int, target: int, port: int, other: int) -> None:
    a, b = (".".join(str(one >> shift & 255) for shift in (24, 16, 8, 0)) for one in (source, target))
    there, back = flow_hashes([a], [b], port, other, seed=7), flow_hashes([b], [a], other, port, seed=7)
    assert there == back


@given(st.lists(st.integers(1, 100), min_size=1, max_size=20))
def test_bounds_divide_the_range_by_the_weights(weights: list[int]) -> None:
    upper = bounds(weights)
    assert upper[-1] == 2**31 - 1
    sizes = np.diff(np.concatenate([[-1], upper]))
    assert np.abs(sizes - 2**31 * np.asarray(weights) / sum(weights)).max() <= 1
    assert list(chosen([0, 2**31 - 1], weights)) == [0, len(weights) - 1]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 30), st.integers(0, 10))
def test_fair_rates_fill_a_link_of_every_flow_and_exceed_none(first: int, second: int, flows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    links = np.stack([random.integers(0, first, flows), first + random.integers(0, second, flows)])
    capacities = random.uniform(1, 10, first + second)
    rates = fair_rates(links, capacities)
    used = sum(np.bincount(row, weights=rates, minlength=first + second) for row in links)
    assert np.all(used <= capacities * (1 + 1e-9))
    full = used >= capacities * (1 - 1e-6)
    assert np.all(full[links].any(axis=0)), "every flow is held back by a full link"


def test_rates_of_a_known_case() -> None:
    """Two routers of 1 GB/s; clients have 1 GB/s, servers 2: two clients cannot exceed what the routers carry."""
    fabric = made(2, clients=50, servers=2)
    clients, servers = (list(side.classes[0].addresses) for side in (fabric.near, fabric.far))
    traffic = simulate(fabric, clients, servers, connections=4, layer=4, seed=HASH_SEED)
    assert traffic.all_living.flows == 400
    assert traffic.all_living.total == pytest.approx(2e9, rel=1e-6)
    assert traffic.all_living.limit == "every router is full"
    assert [one.total for one in traffic.one_lost] == pytest.approx([1e9, 1e9], rel=1e-6)
    assert sum(traffic.all_living.shares) == pytest.approx(1.0)


def test_one_client_and_one_server_by_address_use_one_router() -> None:
    fabric = made(6, clients=1, servers=1)
    traffic = simulate(fabric, ["10.1.0.100"], ["10.2.0.100"], connections=24, layer=3, seed=HASH_SEED)
    assert sorted(traffic.all_living.shares) == [0, 0, 0, 0, 0, 1.0]
    spread = simulate(fabric, ["10.1.0.100"], ["10.2.0.100"], connections=24, layer=4, seed=HASH_SEED)
    assert sum(share > 0 for share in spread.all_living.shares) >= 5


def test_flow_labels_spread_the_connections_of_two_hosts_over_ipv6_alone() -> None:
    """With policy 0 two hosts use one router over IPv4, but the label of each connection counts over IPv6."""
    old = simulate(made(6, 1, 1), ["10.1.0.100"], ["10.2.0.100"], connections=60, layer=3, seed=1)
    new = simulate(made(6, 1, 1, version=6), ["fd01::64"], ["fd02::64"], connections=60, layer=3, seed=1)
    assert max(old.all_living.shares) == 1.0
    assert max(new.all_living.shares) < 0.5


def test_a_hundred_thousand_flows_spread_within_the_binomial_interval() -> None:
    sources = [f"10.{128 + at // 65536}.{at // 256 % 256}.{at % 256}" for at in range(100_000)]
    places = chosen(flow_hashes(sources, ["10.2.0.1"] * len(sources), 40000, 988, seed=3), [1] * 16)
    counts = np.bincount(places, minlength=16)
    expected = len(sources) / 16
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))


# --- against the kernel

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
)
NAMESPACE = f"sonde-routes-{os.getpid()}"


def ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", "-n", NAMESPACE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout


def inside(*words: str) -> str:
    done = subprocess.run(["ip", "netns", "exec", NAMESPACE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def namespace() -> Iterator[None]:
    """A host of its own with an interface on the near network."""
    if subprocess.run(["ip", "netns", "add", NAMESPACE], capture_output=True).returncode:
        pytest.skip("network namespaces are not allowed here")
    try:
        ip("link", "set", "lo", "up")
        # No link-local address: the kernel would add routes of it a second later, when nobody else has answered to it.
        ip("link", "add", "eth0", "mtu", "9000", "type", "veth", "peer", "name", "other", "mtu", "9000")
        for name in ("eth0", "other"):
            ip("link", "set", name, "addrgenmode", "none")
        ip("link", "set", "other", "up")
        ip("link", "set", "eth0", "up")
        ip("addr", "add", "10.1.0.100/16", "dev", "eth0")
        ip("addr", "add", "fd01::64/64", "dev", "eth0", "nodad")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True)


def taken(target: str, port: int, version: int = 4) -> str:
    """The next hop that the kernel would take for a connection."""
    source = "10.1.0.100" if version == 4 else "fd01::64"
    words = ["ipproto", "tcp", "sport", str(port), "dport", "1191"]
    said = ip(f"-{version}", "route", "get", target, "from", source, *words)
    return str(re.findall(r"via (\S+)", said)[0])


@needs_root
@pytest.mark.root
@pytest.mark.parametrize(("routers", "version"), [(2, 4), (6, 4), (8, 4), (5, 6)])
def test_a_plan_in_the_kernel_spreads_as_predicted_and_leaves_nothing(
    namespace: None, tmp_path: Path, routers: int, version: int
) -> None:
    if not SEED_FILE.exists():
        pytest.skip("this kernel has no fib_multipath_hash_seed (it came with Linux 6.11)")
    fabric = made(routers, clients=1, servers=3, version=version)
    plan = plan_routes(fabric)
    script = tmp_path / "routes.sh"
    script.write_text(host_script(plan, plan.of("clients"), script.name))
    family = f"-{version}"
    before = (ip(family, "rule"), ip(family, "route", "show", "table", "all"))
    inside("sh", str(script), "apply")
    once = (ip(family, "rule"), ip(family, "route", "show", "table", "all"))
    inside("sh", str(script), "apply")
    assert (ip(family, "rule"), ip(family, "route", "show", "table", "all")) == once, "applying twice changes nothing"
    servers = fabric.far.classes[0].addresses
    ports = range(40000, 40060)
    flows = [(servers[port % len(servers)], port) for port in ports]
    source = fabric.near.classes[0].addresses[0]
    assert source == ("10.1.0.100" if version == 4 else "fd01::64")
    hashes = flow_hashes([source] * len(flows), [one for one, _ in flows], list(ports), 1191, seed=HASH_SEED)
    predicted = [fabric.ways[at].near for at in chosen(hashes, [1] * routers)]
    assert [taken(target, port, version) for target, port in flows] == predicted
    assert len(Counter(predicted)) > 1
    marked = ip(family, "route", "get", servers[0], "mark", "2")
    assert f"via {fabric.ways[1].near} " in marked, "a marked packet takes the router of its table"
    inside("sh", str(script), "remove")
    assert (ip(family, "rule"), ip(family, "route", "show", "table", "all")) == before
