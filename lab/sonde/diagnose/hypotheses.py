# SPDX-License-Identifier: Apache-2.0
"""Hypotheses: nothing is wrong, a fault of the model at a part of the map, a cause outside the model, or none of these.

Each kind of cause has the same prior probability; within a kind, all parts have. "Unexplained" has a tenth, and
"nothing" a fifth, because most complaints have a cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sonde.diagnose.description import CauseFile
from sonde.diagnose.machine_map import DiagnosedMachine, PartGroup

NOTHING, UNEXPLAINED = "nothing", "unexplained"
NOTHING_PRIOR, UNEXPLAINED_PRIOR = 0.2, 0.1
FAULT, CAUSE = "fault", "cause"


@dataclass(frozen=True)
class FaultGrid:
    """Strengths at which a fault is simulated, weakest first. Strengths in between are interpolated."""

    amounts: tuple[str, ...]
    parts: tuple[str, ...] = ()  # kinds of parts that it can be at; empty: the whole machine
    category: str = "fault"
    seeds: int = 1  # faults with chance in them are simulated several times
    absent_with: tuple[str, ...] = ("file_system",)  # traits; a contrast that changes one of them is without the fault
    counters: tuple[str, ...] = ()  # names of description.COUNTER_OBSERVATIONS
    possible_counters: tuple[str, ...] = ()  # the same, of observations that a part of such faults show


# TCP drops segments for which a program that is too slow has no buffer left, and sends them again. So a slow server or
# node can look like lost packets.
_SLOW_RECEIVER = ("retransmissions",)

# By the simulator's names. An empty amount stands for a fault without one.
FAULT_GRIDS: Mapping[str, FaultGrid] = {
    "slow-target": FaultGrid(("1.5", "3", "5.5", "10"), ("target",), possible_counters=_SLOW_RECEIVER),
    "failing-drive": FaultGrid(("0.01", "0.03", "0.08", "0.2"), ("target",), seeds=6, possible_counters=_SLOW_RECEIVER),
    "raid-rebuild": FaultGrid(("0.3", "0.45", "0.6"), ("target",), possible_counters=_SLOW_RECEIVER),
    "slow-drive": FaultGrid(("3", "5.5", "10"), ("target",), possible_counters=_SLOW_RECEIVER),
    "slow-node": FaultGrid(
        ("3", "10", "30"),
        ("node",),
        absent_with=("nodes",),
        counters=("processor-limit",),
        possible_counters=_SLOW_RECEIVER,
    ),
    "slow-link": FaultGrid(("2", "4", "8", "15"), ("server", "node"), absent_with=("network",)),
    "lossy-link": FaultGrid(
        ("0.005", "0.012", "0.03"), ("server", "node"), seeds=6, absent_with=("network",), counters=("retransmissions",)
    ),
    "server-lost": FaultGrid(("30",), ("server",)),
    "router-lost": FaultGrid(("",), ("router",), absent_with=("network",)),
    "unbalanced-path": FaultGrid(("4", "8", "16"), absent_with=("network",)),
    "mds-saturated": FaultGrid(
        ("0.5", "0.75", "0.9"), category="load", absent_with=("load", "file_system"), counters=("loaded-metadata",)
    ),
    "noisy-neighbor": FaultGrid(
        ("0.3", "0.6", "0.85"),
        category="load",
        seeds=2,
        absent_with=("load", "file_system"),
        counters=("loaded-targets",),
    ),
    "cache-limit": FaultGrid(("1048576",), category="settings"),
    "client-software": FaultGrid(("5e-12", "2.5e-11", "1e-10"), category="software", absent_with=("software",)),
    "full-file-system": FaultGrid(("0.8", "0.88", "0.95"), counters=("little-space",)),
    "misaligned-slices": FaultGrid(("262144",), category="settings"),
    "tunable rpc_size": FaultGrid(("65536",), category="settings", absent_with=("options",)),
    "tunable rpcs_in_flight": FaultGrid(("1",), category="settings", absent_with=("options",)),
    "tunable dirty_per_target": FaultGrid(("1048576",), category="settings", absent_with=("options",)),
    "tunable dirty_limit": FaultGrid(("4194304",), category="settings", absent_with=("options",)),
    "tunable read_ahead": FaultGrid(("0",), category="settings", absent_with=("options",)),
    "tunable page_cache": FaultGrid(("16777216",), category="settings", absent_with=("options",)),
}

# Faults of RAID groups, which targets on other storage cannot have.
RAID_FAULTS = frozenset({"raid-rebuild"})

# Faults of the simulator that are no hypotheses: controllers are not grouped in machine_map.py yet.
UNCOVERED_FAULTS = frozenset({"write-through"})

_FAULT_TITLES: Mapping[str, str] = {
    "slow-target": "a storage target is slow",
    "failing-drive": "a drive of a storage target fails and retries requests",
    "raid-rebuild": "a RAID group rebuilds a drive",
    "slow-drive": "one drive of a RAID group is slow",
    "slow-node": "a compute node is slow",
    "slow-link": "the network link of a host is slow",
    "lossy-link": "the network link of a host loses messages",
    "server-lost": "a storage server is down and its partner has its targets",
    "router-lost": "a router is down",
    "unbalanced-path": "paths carry unequal shares of the traffic",
    "mds-saturated": "other users occupy the metadata server",
    "noisy-neighbor": "other users load the storage targets",
    "cache-limit": "servers no longer cache larger files",
    "client-software": "clients manage their cached pages slowly",
    "full-file-system": "the file system is nearly full, and new files are fragmented",
    "misaligned-slices": "storage begins inside a RAID stripe",
    "tunable rpc_size": "clients send smaller requests",
    "tunable rpcs_in_flight": "clients have fewer requests in flight",
    "tunable dirty_per_target": "clients may hold less dirty data per target",
    "tunable dirty_limit": "clients may hold less dirty data in all",
    "tunable read_ahead": "clients read ahead less",
    "tunable page_cache": "clients have less page cache",
}


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis with all the parts that it can be about; `members` has one empty name when it is about none."""

    id: str
    kind: str  # nothing, unexplained, fault or cause
    title: str
    category: str
    members: tuple[str, ...] = ("",)
    fault: str = ""  # name of the fault as the simulator knows it
    group: PartGroup | None = None
    cause: CauseFile | None = None
    prior: float = 0.0

    @property
    def strength_grid(self) -> FaultGrid:
        return FAULT_GRIDS[self.fault]

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the counter observations that the hypothesis predicts."""
        if self.cause is not None:
            return self.cause.counters
        return self.strength_grid.counters if self.fault else ()

    @property
    def possible_counters(self) -> tuple[str, ...]:
        """Names of the counter observations that the hypothesis may show."""
        return self.strength_grid.possible_counters if self.fault else ()

    def format_fault_argument(self, strength_amount: str, part_name: str = "") -> str:
        """Returns the fault at a part as the simulator reads it."""
        return " ".join(text for text in (self.fault, part_name, strength_amount) if text)


def list_hypotheses(machine: DiagnosedMachine, causes: Sequence[CauseFile]) -> tuple[Hypothesis, ...]:
    """All hypotheses about a machine with their priors, including faults that the machine turns out not to have."""
    hypotheses = [
        Hypothesis(NOTHING, NOTHING, "nothing is wrong", "nothing"),
        Hypothesis(UNEXPLAINED, UNEXPLAINED, "none of the hypotheses explains it", "unexplained"),
    ]
    for fault, grid in FAULT_GRIDS.items():
        title = _FAULT_TITLES[fault]
        if not grid.parts:
            name = fault.replace(" ", "-").replace("_", "-")
            hypotheses.append(Hypothesis(name, FAULT, title, grid.category, fault=fault))
        for group in machine.part_groups if grid.parts else ():
            if group.kind in grid.parts and (
                fault not in RAID_FAULTS or set(group.members) <= machine.rebuildable_targets
            ):
                name = f"{fault}:{_get_group_name(group)}"
                hypotheses.append(Hypothesis(name, FAULT, title, grid.category, group.members, fault, group))
    hypotheses += [Hypothesis(cause.id, CAUSE, cause.title, cause.category, cause=cause) for cause in causes]
    return assign_priors(hypotheses)


def assign_priors(hypotheses: Iterable[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Returns the hypotheses with equal priors for each kind of cause, divided among its groups by their size."""
    items = list(hypotheses)
    sizes: dict[str, int] = {}
    for item in items:
        if item.kind in (FAULT, CAUSE):
            sizes[_get_kind_name(item)] = sizes.get(_get_kind_name(item), 0) + len(item.members)
    share = (1 - NOTHING_PRIOR - UNEXPLAINED_PRIOR) / max(1, len(sizes))
    special = {NOTHING: NOTHING_PRIOR, UNEXPLAINED: UNEXPLAINED_PRIOR}
    return tuple(
        _replace_prior(
            item,
            special[item.kind] if item.kind in special else share * len(item.members) / sizes[_get_kind_name(item)],
        )
        for item in items
    )


def _replace_prior(hypothesis: Hypothesis, prior_probability: float) -> Hypothesis:
    return Hypothesis(
        hypothesis.id,
        hypothesis.kind,
        hypothesis.title,
        hypothesis.category,
        hypothesis.members,
        hypothesis.fault,
        hypothesis.group,
        hypothesis.cause,
        prior_probability,
    )


def _get_kind_name(hypothesis: Hypothesis) -> str:
    return hypothesis.fault or hypothesis.id


def _get_group_name(group: PartGroup) -> str:
    return group.members[0] if len(group.members) == 1 else f"{group.members[0]}-{group.members[-1]}"
