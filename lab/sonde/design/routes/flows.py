# SPDX-License-Identifier: Apache-2.0
"""Rates of many flows through the routers: fair shares of links, per client and in all, with all routers and with one
lost.

Every client keeps `connections` connections to every server; each takes the router that the kernel's hash gives it.
A link (interface of a client, router, interface of a server) is shared evenly by its flows until another link holds
some of them back (max-min fairness, what TCP flows of one round-trip time come to). Rates are in bytes per second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.design.routes.fabric import Class, Fabric, Way
from sonde.design.routes.spread import Layer, chosen, flow_hashes, packed
from sonde.model.errors import UserError

MOST_FLOWS = 5_000_000
# Where an operating system takes its ports from, and where GPFS listens: any others spread alike.
_FIRST_PORT, _PORTS, _SERVICE = 32768, 28232, 1191
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """Flows of one case. `shares` is the part of the flows on each router of `routers`; rates are None when a link on
    every way has no known rate. `limit` names what holds the total back."""

    routers: tuple[str, ...]
    flows: int
    shares: tuple[float, ...]
    total: float | None
    client: tuple[float, float, float] | None  # slowest, median, fastest client
    limit: str


@dataclass(frozen=True)
class Traffic:
    """What was simulated: every router living, and each one lost in turn."""

    clients: int
    servers: int
    connections: int
    layer: Layer
    all_living: Outcome
    one_lost: tuple[Outcome, ...]


def simulate(
    fabric: Fabric,
    clients: Sequence[str],
    servers: Sequence[str],
    *,
    connections: int,
    layer: Layer,
    seed: int,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> Traffic:
    """`clients` and `servers` are addresses; `step` is told how many cases are done. Raises UserError when there are
    too many flows."""
    count = len(clients) * len(servers) * connections
    if not count:
        raise UserError(f"{fabric.name}: flows need a client, a server and a connection at least.")
    if count > MOST_FLOWS:
        raise UserError(f"{count:,} flows are more than {MOST_FLOWS:,}; ask for fewer clients or connections.")
    client = np.repeat(np.arange(len(clients)), len(servers) * connections)
    server = np.tile(np.repeat(np.arange(len(servers)), connections), len(clients))
    # a client takes its ports one after the other, from anywhere
    random = np.random.default_rng(seed)
    first = random.integers(0, _PORTS, len(clients))
    ports = _FIRST_PORT + (first[client] + np.tile(np.arange(len(servers) * connections), len(clients))) % _PORTS
    labels = random.integers(0, 1 << 20, count)  # of IPv6: hosts give each connection one of its own
    hashes = flow_hashes(
        packed(clients)[client], packed(servers)[server], ports, _SERVICE, layer=layer, seed=seed, labels=labels
    )
    rates = (_rates(fabric.near.classes, clients), _rates(fabric.far.classes, servers))
    cases = _cases(fabric)
    outcomes = []
    for ways in cases:
        outcomes.append(_outcome(ways, hashes, client, server, rates))
        step(len(outcomes), len(cases))
    return Traffic(len(clients), len(servers), connections, layer, outcomes[0], tuple(outcomes[1:]))


def _cases(fabric: Fabric) -> list[tuple[Way, ...]]:
    """All routers, then all but one; when none of the first priority is left, the standby ones."""
    first = fabric.active
    lost = [tuple(way for way in first if way is not gone) for gone in first]
    standby = tuple(way for way in fabric.ways if way not in first)
    return [first, *((ways or standby) for ways in lost if ways or standby)]


def _rates(classes: Sequence[Class], addresses: Sequence[str]) -> Floats:
    """The rate of the interface behind each address; infinite where nobody said."""
    known = {address: one.rate for one in classes for address in one.addresses}
    return np.array([known.get(address) or np.inf for address in addresses], dtype=float)


def _outcome(
    ways: Sequence[Way],
    hashes: NDArray[np.uint32],
    client: NDArray[np.int64],
    server: NDArray[np.int64],
    rates: tuple[Floats, Floats],
) -> Outcome:
    router = chosen(hashes, [way.weight for way in ways])
    routers = np.array([way.rate or np.inf for way in ways], dtype=float)
    capacities = np.concatenate([rates[0], routers, rates[1]])
    links = np.stack([client, len(rates[0]) + router, len(rates[0]) + len(ways) + server])
    shares = np.bincount(router, minlength=len(ways)) / len(hashes)
    names = tuple(way.router for way in ways)
    flows = fair_rates(links, capacities)
    if not np.all(np.isfinite(flows)):
        return Outcome(names, len(hashes), tuple(map(float, shares)), None, None, "no rate is described")
    each = np.bincount(client, weights=flows, minlength=len(rates[0]))
    carried = np.bincount(router, weights=flows, minlength=len(ways))
    full = carried >= routers * (1 - 1e-6)
    clients_full = bool(np.all(each >= rates[0] * (1 - 1e-6)))
    limit = (
        "every router is full" if full.all() else "the clients' interfaces" if clients_full
        else f"{', '.join(names[at] for at in np.flatnonzero(full))} full, the others not" if full.any()
        else "the servers' interfaces"
    )  # fmt: skip
    client_rates = (float(each.min()), float(np.median(each)), float(each.max()))
    return Outcome(names, len(hashes), tuple(map(float, shares)), float(flows.sum()), client_rates, limit)


def fair_rates(links: NDArray[np.int64], capacities: Floats) -> Floats:
    """Max-min fair rates of flows. `links` has a row for each kind of link and a column for each flow; the numbers
    say which of `capacities` (bytes per second, infinite: no limit) the flow shares."""
    count = links.shape[1]
    rates = np.full(count, np.inf)
    left = capacities.astype(float).copy()
    open_flows = np.ones(count, dtype=bool)
    while open_flows.any():
        users = sum(np.bincount(row[open_flows], minlength=len(left)) for row in links)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(users > 0, left / users, np.inf)
        level = share.min()
        if not np.isfinite(level):
            break
        tight = share <= level * (1 + 1e-9)
        held = open_flows & np.logical_or.reduce([tight[row] for row in links])
        rates[held] = level
        for row in links:
            left -= level * np.bincount(row[held], minlength=len(left))
        left = np.maximum(left, 0.0)
        open_flows &= ~held
    return rates
