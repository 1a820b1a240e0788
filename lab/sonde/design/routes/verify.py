# SPDX-License-Identifier: Apache-2.0
"""A plan tried out: the topology is built in network namespaces, flows are sent, routers fail and come back.

The result says whether every flow took the predicted router, how long the longest flow stalled when a router failed,
whether flows broke, and whether everything that was applied could be removed.
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
from sonde.design.routes.flow_hash import HashLayer, choose_next_hops, compute_flow_hashes
from sonde.design.routes.health import HealthCheckTiming
from sonde.design.routes.plan import HASH_SEED, RoutePlan, plan_routes
from sonde.design.routes.topology import Topology
from sonde.model.errors import MachineError

_TARGET_PORT, _FIRST_SOURCE_PORT = 5001, 40000
# Source ports of the warm-up flows lie so far above those of the measured ones.
_WARM_UP_PORTS = 20000
# Hosts that each of the two namespaces stands for.
_HOSTS_PER_SIDE = 4
_SETTLE_TIME_S = 0.3
_PACKET_INTERVAL_S = 0.005
# Time from the start of the flows until a router fails.
_BEFORE_LOSS_S = 0.7

Flow = tuple[str, int, str, int]  # source, source port, target, target port


@dataclass(frozen=True)
class SpreadCheck:
    """Share of the bytes that each router forwarded: predicted from the hash, and counted. `tolerance` is what a share
    may differ by: acknowledgments and retries are not predicted."""

    routers: tuple[str, ...]
    predicted: tuple[float, ...]
    counted: tuple[float, ...]
    tolerance: float = 0.02

    @property
    def is_as_predicted(self) -> bool:
        return all(
            abs(predicted - counted) <= self.tolerance
            for predicted, counted in zip(self.predicted, self.counted, strict=True)
        )


@dataclass(frozen=True)
class RouterLoss:
    """One router failed: how long the flow that waited longest stalled (seconds), and how many flows broke."""

    router: str
    stall_s: float
    broken: int
    reason: str  # why the first of them broke, or ""


@dataclass(frozen=True)
class VerificationResult:
    """What was measured. `limit_s` is the longest a flow may stall by the timing of the health check; `clean` says
    whether the hosts had the same rules and routes after the plan was removed as before it was applied."""

    flows: int
    spread: SpreadCheck
    losses: tuple[RouterLoss, ...]
    limit_s: float
    clean: bool

    @property
    def is_as_planned(self) -> bool:
        survived = all(not loss.broken and loss.stall_s <= self.limit_s for loss in self.losses)
        return self.spread.is_as_predicted and survived and self.clean


def verify_route_plan(
    fabric: Fabric,
    system_file: str,
    *,
    flow_count: int = 24,
    loss_count: int = 3,
    timing: HealthCheckTiming | None = None,
    seed: int = 1,
    with_health_check: bool = True,
    hash_layer: HashLayer = 4,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> VerificationResult:
    """Plans the routes of a fabric, builds its topology, applies the plan, measures, and removes all again.

    `loss_count` routers fail one after the other, chosen by `seed`. `system_file` is what the health checks of both
    hosts read; without `with_health_check` there are no health checks. With `hash_layer` 3 hosts hash addresses alone.
    `on_progress` gets the number of steps done and of all steps. Raises MachineError where namespaces may not be made.
    """
    timing = timing or HealthCheckTiming()
    plan = plan_routes(fabric)
    near = fabric.near.classes[0].addresses[:_HOSTS_PER_SIDE]
    far = fabric.far.classes[0].addresses[:_HOSTS_PER_SIDE]
    all_flows = [
        (near[index % len(near)], _FIRST_SOURCE_PORT + index, far[index // len(near) % len(far)], _TARGET_PORT)
        for index in range(flow_count)
    ]
    with Topology(plan, near, far) as topology:
        tables_before = [topology.read_rules_and_routes(name) for name in ("near", "far")]
        topology.apply_plan()
        if hash_layer == 3:
            topology.hash_by_address()
        topology.start_python("far", "-m", "sonde.design.routes.traffic", "serve", str(_TARGET_PORT))
        time.sleep(_SETTLE_TIME_S)
        # As long as the kernel does not know the link address of a router it sends to another one: the warm-up flows
        # make it ask for all of them.
        _read_results(_start_flows(topology, _shift_source_ports(all_flows, _WARM_UP_PORTS), _SETTLE_TIME_S))
        spread = _check_spread_over_routers(plan, topology, all_flows, hash_layer)
        on_progress(1, loss_count + 2)
        generator, results = random.Random(seed), []
        if loss_count and with_health_check:
            timing_options = ["--interval", str(timing.interval_s), "--down", str(timing.down), "--up", str(timing.up)]
            for name, host_class in (("near", fabric.near.classes[0]), ("far", fabric.far.classes[0])):
                arguments = ["-m", "sonde", "route", "watch", system_file, "--as", host_class.name, *timing_options]
                topology.start_python(name, *arguments)
            time.sleep(4 * _SETTLE_TIME_S)
        for number in range(loss_count):
            # ports of connections that have just ended are not free yet
            fresh_flows = _shift_source_ports(all_flows, flow_count * (number + 1))
            results.append(
                _test_router_loss(topology, generator.choice(fabric.active_routers).name, fresh_flows, timing)
            )
            on_progress(2 + number, loss_count + 2)
        topology.end_started_programs()
        topology.remove_plan()
        tables_after = [topology.read_rules_and_routes(name) for name in ("near", "far")]
    return VerificationResult(flow_count, spread, tuple(results), timing.stall_s, tables_before == tables_after)


def _shift_source_ports(flows: Sequence[Flow], port_distance: int) -> list[Flow]:
    return [(source, port + port_distance, target, target_port) for source, port, target, target_port in flows]


def _start_flows(topology: Topology, flows: Sequence[Flow], seconds: float) -> subprocess.Popen[bytes]:
    order = {"flows": flows, "seconds": seconds, "pace_s": _PACKET_INTERVAL_S}
    return topology.start_python("near", "-m", "sonde.design.routes.traffic", "send", json.dumps(order))


def _read_results(process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """Parses the output of `traffic send`. Raises MachineError when it failed."""
    output, _ = process.communicate()
    try:
        results = json.loads(output)
    except ValueError:
        raise MachineError(
            f"The flows of a built topology did not run: {output.decode(errors='replace')[-300:]}."
        ) from None
    return list(results)


def _check_spread_over_routers(
    route_plan: RoutePlan, topology: Topology, flows: Sequence[Flow], hash_layer: HashLayer
) -> SpreadCheck:
    """Sends equal flows for two seconds, and counts what each router sent towards the far network."""
    routers = route_plan.fabric.active_routers
    names = tuple(router.name for router in routers)
    sources, ports, targets, _ = zip(*flows, strict=True)
    hashes = compute_flow_hashes(sources, targets, ports, _TARGET_PORT, hash_layer=hash_layer, seed=HASH_SEED)
    hop_indexes = choose_next_hops(hashes, [router.weight for router in routers])
    bytes_before = np.array([topology.read_bytes_sent_to_near_and_far(name)[1] for name in names], dtype=float)
    results = _read_results(_start_flows(topology, flows, 2.0))
    sent = np.array([topology.read_bytes_sent_to_near_and_far(name)[1] for name in names], dtype=float) - bytes_before
    # flows of one pace do not send exactly as much: each counts by its messages
    messages = np.array([float(result["answered"]) for result in results])
    predicted = np.bincount(hop_indexes, weights=messages, minlength=len(routers)) / max(1.0, messages.sum())
    return SpreadCheck(names, tuple(map(float, predicted)), tuple(map(float, sent / max(1.0, sent.sum()))))


def _test_router_loss(topology: Topology, router: str, flows: Sequence[Flow], timing: HealthCheckTiming) -> RouterLoss:
    """Lets a router fail under flows, and come back when they have ended."""
    process = _start_flows(topology, flows, 2 * timing.stall_s + 1.0)
    time.sleep(_BEFORE_LOSS_S)
    topology.disable_router(router)
    results = _read_results(process)
    topology.enable_router(router)
    time.sleep(timing.interval_s * (timing.up + 3))
    stall_s = max((result["stall_s"] for result in results), default=0.0)
    errors = [str(result["error"]) for result in results if result["error"]]
    return RouterLoss(router, stall_s, len(errors), next(iter(errors), ""))
