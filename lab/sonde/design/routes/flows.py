# SPDX-License-Identifier: Apache-2.0
"""Rates of many flows through the routers: fair shares of links, per client and in total, with all routers and without
one.

Every client has `connections` connections to every server; the kernel's hash chooses the router of each. A link
(interface of a client, router, interface of a server) is shared evenly by its flows until another link limits some of
them (max-min fairness, which TCP flows of one round-trip time approach). Rates are in bytes per second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.design.routes.fabric import Fabric, FabricRouter, HostClass
from sonde.design.routes.flow_hash import HashLayer, choose_next_hops, compute_flow_hashes, pack_addresses
from sonde.model.errors import UserError

MAX_FLOWS = 5_000_000
# Source ports as Linux chooses them, and the port of GPFS: other ports spread alike.
_FIRST_PORT, _PORT_COUNT, _SERVICE_PORT = 32768, 28232, 1191
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FlowResult:
    """Flows over one set of routers. `shares` is the part of the flows on each router; rates are None when some flow
    crosses no link of known rate. `bottleneck` names what limits the total."""

    routers: tuple[str, ...]
    flows: int
    shares: tuple[float, ...]
    total: float | None
    client: tuple[float, float, float] | None  # slowest, median, fastest client
    bottleneck: str


@dataclass(frozen=True)
class TrafficSimulation:
    """The flows with all routers, and without each router in turn."""

    clients: int
    servers: int
    connections: int
    layer: HashLayer
    all_up: FlowResult
    one_lost: tuple[FlowResult, ...]


def simulate_flows(
    fabric: Fabric,
    client_addresses: Sequence[str],
    server_addresses: Sequence[str],
    *,
    connections_per_pair: int,
    hash_layer: HashLayer,
    seed: int,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> TrafficSimulation:
    """Simulates the flows between addresses of clients and servers. `on_progress` gets the number of cases done and of
    all cases. Raises UserError when there are too many flows."""
    count = len(client_addresses) * len(server_addresses) * connections_per_pair
    if not count:
        raise UserError(f"{fabric.name}: flows need a client, a server and a connection at least.")
    if count > MAX_FLOWS:
        raise UserError(f"{count:,} flows are more than {MAX_FLOWS:,}; ask for fewer clients or connections.")
    client_indexes = np.repeat(np.arange(len(client_addresses)), len(server_addresses) * connections_per_pair)
    server_indexes = np.tile(np.repeat(np.arange(len(server_addresses)), connections_per_pair), len(client_addresses))
    # a client uses consecutive source ports from a random first one
    generator = np.random.default_rng(seed)
    first_ports = generator.integers(0, _PORT_COUNT, len(client_addresses))
    ports = (
        _FIRST_PORT
        + (
            first_ports[client_indexes]
            + np.tile(np.arange(len(server_addresses) * connections_per_pair), len(client_addresses))
        )
        % _PORT_COUNT
    )
    labels = generator.integers(0, 1 << 20, count)  # IPv6 flow labels: a random one for each connection
    hashes = compute_flow_hashes(
        pack_addresses(client_addresses)[client_indexes],
        pack_addresses(server_addresses)[server_indexes],
        ports,
        _SERVICE_PORT,
        hash_layer=hash_layer,
        seed=seed,
        labels=labels,
    )
    rates = (
        _list_interface_rates(fabric.near.classes, client_addresses),
        _list_interface_rates(fabric.far.classes, server_addresses),
    )
    router_sets = _list_router_sets(fabric)
    results = []
    for routers in router_sets:
        results.append(_make_flow_result(routers, hashes, client_indexes, server_indexes, rates))
        on_progress(len(results), len(router_sets))
    return TrafficSimulation(
        len(client_addresses), len(server_addresses), connections_per_pair, hash_layer, results[0], tuple(results[1:])
    )


def _list_router_sets(fabric: Fabric) -> list[tuple[FabricRouter, ...]]:
    """All active routers, then all but one; the standby routers where no active one remains."""
    active_routers = fabric.active_routers
    remaining_sets = [
        tuple(router for router in active_routers if router is not lost_router) for lost_router in active_routers
    ]
    standby = tuple(router for router in fabric.routers if router not in active_routers)
    return [active_routers, *((routers or standby) for routers in remaining_sets if routers or standby)]


def _list_interface_rates(classes: Sequence[HostClass], addresses: Sequence[str]) -> Floats:
    """The rate of the interface behind each address; infinite where it is not described."""
    rate_by_address = {address: host_class.rate for host_class in classes for address in host_class.addresses}
    return np.array([rate_by_address.get(address) or np.inf for address in addresses], dtype=float)


def _make_flow_result(
    routers: Sequence[FabricRouter],
    hashes: NDArray[np.uint32],
    client_indexes: NDArray[np.int64],
    server_indexes: NDArray[np.int64],
    flow_and_client_rates: tuple[Floats, Floats],
) -> FlowResult:
    router_indexes = choose_next_hops(hashes, [router.weight for router in routers])
    router_rates = np.array([router.rate or np.inf for router in routers], dtype=float)
    capacities = np.concatenate([flow_and_client_rates[0], router_rates, flow_and_client_rates[1]])
    links = np.stack(
        [
            client_indexes,
            len(flow_and_client_rates[0]) + router_indexes,
            len(flow_and_client_rates[0]) + len(routers) + server_indexes,
        ]
    )
    shares = np.bincount(router_indexes, minlength=len(routers)) / len(hashes)
    names = tuple(router.name for router in routers)
    flow_rates = compute_fair_rates(links, capacities)
    if not np.all(np.isfinite(flow_rates)):
        return FlowResult(names, len(hashes), tuple(map(float, shares)), None, None, "no rate is described")
    rate_by_client = np.bincount(client_indexes, weights=flow_rates, minlength=len(flow_and_client_rates[0]))
    rate_by_router = np.bincount(router_indexes, weights=flow_rates, minlength=len(routers))
    full = rate_by_router >= router_rates * (1 - 1e-6)
    clients_full = bool(np.all(rate_by_client >= flow_and_client_rates[0] * (1 - 1e-6)))
    bottleneck = (
        "every router is full" if full.all() else "the clients' interfaces" if clients_full
        else f"{', '.join(names[index] for index in np.flatnonzero(full))} full, the others not" if full.any()
        else "the servers' interfaces"
    )  # fmt: skip
    client_rates = (float(rate_by_client.min()), float(np.median(rate_by_client)), float(rate_by_client.max()))
    return FlowResult(names, len(hashes), tuple(map(float, shares)), float(flow_rates.sum()), client_rates, bottleneck)


def compute_fair_rates(links: NDArray[np.int64], capacities: Floats) -> Floats:
    """Max-min fair rates of flows. `links` has a row for each kind of link and a column for each flow; its numbers are
    indexes into `capacities` (bytes per second; infinite means no limit)."""
    count = links.shape[1]
    rates = np.full(count, np.inf)
    remaining = capacities.astype(float).copy()
    unlimited = np.ones(count, dtype=bool)
    while unlimited.any():
        users = sum(np.bincount(row[unlimited], minlength=len(remaining)) for row in links)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(users > 0, remaining / users, np.inf)
        level = share.min()
        if not np.isfinite(level):
            break
        saturated = share <= level * (1 + 1e-9)
        limited = unlimited & np.logical_or.reduce([saturated[row] for row in links])
        rates[limited] = level
        for row in links:
            remaining -= level * np.bincount(row[limited], minlength=len(remaining))
        remaining = np.maximum(remaining, 0.0)
        unlimited &= ~limited
    return rates
