# SPDX-License-Identifier: Apache-2.0
"""A plan tried out: the topology is built in network namespaces, flows are sent, routers die and come back.

Said are four things: whether every flow took the router that was predicted, how long the longest flow stood still when
a router died, whether what was applied can be removed without a trace, and whether flows broke.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.health import Timing
from sonde.design.routes.plan import HASH_SEED, RoutePlan, plan_routes
from sonde.design.routes.spread import Layer, chosen, flow_hashes
from sonde.design.routes.topology import Topology
from sonde.model.errors import MachineError

_PORT, _FIRST_SOURCE = 5001, 40000
# How far the source ports of flows that only meet the routers lie above the others.
_MET = 20000
# Hosts that each of the two namespaces stands for.
_HOSTS = 4
_SETTLE_S = 0.3
_PACE_S = 0.005


@dataclass(frozen=True)
class Spread:
    """Bytes that each router passed on, as shares: predicted from the hash, and counted. `tolerance` is what a share
    may differ by: acknowledgements and retries are not predicted."""

    routers: tuple[str, ...]
    predicted: tuple[float, ...]
    counted: tuple[float, ...]
    tolerance: float = 0.02

    @property
    def holds(self) -> bool:
        return all(abs(a - b) <= self.tolerance for a, b in zip(self.predicted, self.counted, strict=True))


@dataclass(frozen=True)
class Loss:
    """One router died: how long the flow that waited longest stood still (seconds), and how many flows broke."""

    router: str
    stall_s: float
    broken: int
    reason: str  # why the first of them did, or ""


@dataclass(frozen=True)
class Verified:
    """The outcome. `limit_s` is the longest a flow may stand still, by the timing of the health check."""

    flows: int
    spread: Spread
    losses: tuple[Loss, ...]
    limit_s: float
    clean: bool

    @property
    def holds(self) -> bool:
        calm = all(not loss.broken and loss.stall_s <= self.limit_s for loss in self.losses)
        return self.spread.holds and calm and self.clean


def verify(
    fabric: Fabric,
    system: str,
    *,
    flows: int = 24,
    losses: int = 3,
    timing: Timing | None = None,
    seed: int = 1,
    watched: bool = True,
    layer: Layer = 4,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> Verified:
    """Builds, applies, measures, removes. `system` is the file that the health checks read; without `watched` there are
    none, and what a dead router does to flows then is seen. With `layer` 3 hosts hash addresses
    alone. Raises MachineError where namespaces may not be made."""
    timing = timing or Timing()
    plan = plan_routes(fabric)
    near = fabric.near.classes[0].addresses[:_HOSTS]
    far = fabric.far.classes[0].addresses[:_HOSTS]
    wanted = [(near[at % len(near)], _FIRST_SOURCE + at, far[at // len(near) % len(far)], _PORT) for at in range(flows)]
    with Topology(plan, near, far) as built:
        before = [built.tables(name) for name in ("near", "far")]
        built.apply()
        if layer == 3:
            built.hash_addresses()
        built.start("far", "-m", "sonde.design.routes.traffic", "answer", str(_PORT))
        time.sleep(_SETTLE_S)
        # While the address of a router is asked for the kernel takes another one: every router is met once before.
        _answers(_asked(built, [(one, port + _MET, other, end) for one, port, other, end in wanted], _SETTLE_S))
        spread = _spread(plan, built, wanted, layer)
        step(1, losses + 2)
        chance, found = random.Random(seed), []
        if losses and watched:
            rhythm = ["--interval", str(timing.interval_s), "--down", str(timing.down), "--up", str(timing.up)]
            for name, group in (("near", fabric.near.classes[0]), ("far", fabric.far.classes[0])):
                built.start(name, "-m", "sonde", "route", "watch", system, "--as", group.name, *rhythm)
            time.sleep(4 * _SETTLE_S)
        for number in range(losses):
            # ports of connections that have just ended are not free yet
            moved = [(source, port + flows * (number + 1), target, end) for source, port, target, end in wanted]
            found.append(_lose(built, chance.choice(fabric.active).router, moved, timing))
            step(2 + number, losses + 2)
        built.end_programs()
        built.remove()
        after = [built.tables(name) for name in ("near", "far")]
    return Verified(flows, spread, tuple(found), timing.stall_s, before == after)


def _asked(built: Topology, wanted: Sequence[tuple[str, int, str, int]], seconds: float) -> subprocess.Popen[bytes]:
    order = {"flows": wanted, "seconds": seconds, "pace_s": _PACE_S}
    return built.start("near", "-m", "sonde.design.routes.traffic", "ask", json.dumps(order))


def _answers(process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    out, _ = process.communicate()
    try:
        said = json.loads(out)
    except ValueError:
        raise MachineError(
            f"The flows of a built topology did not run: {out.decode(errors='replace')[-300:]}."
        ) from None
    return list(said)


def _spread(plan: RoutePlan, built: Topology, wanted: Sequence[tuple[str, int, str, int]], layer: Layer) -> Spread:
    """Equal flows for two seconds, and what each router sent towards the far network."""
    ways = plan.fabric.active
    names = tuple(way.router for way in ways)
    hashes = flow_hashes(
        [one[0] for one in wanted],
        [one[2] for one in wanted],
        [one[1] for one in wanted],
        _PORT,
        layer=layer,
        seed=HASH_SEED,
    )
    places = chosen(hashes, [way.weight for way in ways])
    start = [built.counted(name)[1] for name in names]
    answers = _answers(_asked(built, wanted, 2.0))
    sent = np.array([built.counted(name)[1] - first for name, first in zip(names, start, strict=True)], dtype=float)
    # flows of one pace do not send exactly as much: each counts by its messages
    weights = np.array([float(one["answered"]) for one in answers])
    predicted = np.bincount(places, weights=weights, minlength=len(ways)) / max(1.0, weights.sum())
    return Spread(names, tuple(map(float, predicted)), tuple(map(float, sent / max(1.0, sent.sum()))))


def _lose(built: Topology, router: str, wanted: Sequence[tuple[str, int, str, int]], timing: Timing) -> Loss:
    """A router dies under flows and comes back before they end."""
    length = 2 * timing.stall_s + 1.0
    process = _asked(built, wanted, length)
    time.sleep(0.7)
    built.kill(router)
    answers = _answers(process)
    built.revive(router)
    time.sleep(timing.interval_s * (timing.up + 3))
    broken = [str(one["error"]) for one in answers if one["error"]]
    return Loss(router, max((one["stall_s"] for one in answers), default=0.0), len(broken), next(iter(broken), ""))
