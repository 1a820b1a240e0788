# SPDX-License-Identifier: Apache-2.0
"""Effect of `clients` and `storage` of an experiment on the simulated machine."""

from __future__ import annotations

from typing import Any

import pytest
from in_memory_runs import build_experiment, make_claim

from sonde.experiments.claims.grid import CellGrid
from sonde.experiments.claims.published_numbers import PublishedNumbers
from sonde.experiments.claims.verdicts import evaluate_claims
from sonde.experiments.simulated_executor import compute_system_changes, find_system_part
from sonde.model.bundled_files import find_system_file
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.experiment.description import Clients, Storage
from sonde.model.system import System, read_system

PLAN = {"data": {"access": {"transfer": "1MiB", "volume": "64MiB"}}, "phases": [{"id": "write", "op": "write"}]}


def read_shipped_system(system_name: str) -> System:
    return read_system(find_system_file(system_name))


@pytest.fixture(scope="module")
def x1() -> System:
    return read_shipped_system("cray-x1")


@pytest.fixture(scope="module")
def demo_system() -> System:
    return read_shipped_system("hpcs-demo")


@pytest.mark.parametrize(
    ("origin", "node"), [("server", "os-node"), ("forwarded", "app-node"), ("compute", "app-node"), ("", None)]
)
def test_calls_come_from_the_nodes_of_their_origin(x1: System, origin: str, node: str | None) -> None:
    wanted = {} if node is None else {"mounts.large-mount.on": [node]}
    assert compute_system_changes(x1, "large", Clients(origin=origin), Storage()) == wanted


def test_client_group_overrides_origin(x1: System) -> None:
    changes = compute_system_changes(x1, "large", Clients(origin="server", group="app-node"), Storage())
    assert changes == {"mounts.large-mount.on": ["app-node"]}


@pytest.mark.parametrize(
    ("pool", "stripe_count", "expected_count"), [("FS1", "all", 8), ("FS3", "all", 32), ("FS3", 4, 4)]
)
def test_stripe_count_sets_targets_of_file(
    demo_system: System, pool: str, stripe_count: Any, expected_count: int
) -> None:
    changes = compute_system_changes(
        demo_system, pool, Clients(), Storage(stripe_count=stripe_count, stripe_size=1 << 22)
    )
    assert changes == {"file_systems.demo.stripe.count": expected_count, "file_systems.demo.stripe.size": "4194304 B"}


@pytest.mark.parametrize(
    ("storage", "expected_lun"),
    [
        (Storage(purpose="bandwidth", units=1, data_width=4), "single"),
        (Storage(purpose="bandwidth", units=6, data_width=8), "large"),
        (Storage(purpose="bandwidth", units=1, data_width=13), ""),
        (Storage(), ""),
    ],
)
def test_lun_is_selected_by_purpose_and_width(x1: System, storage: Storage, expected_lun: str) -> None:
    assert find_system_part(x1, {}, storage, {}) == expected_lun


def test_axis_value_selects_part_and_may_be_mapped(x1: System) -> None:
    storage = Storage(purpose="bandwidth", units=1, data_width=8)
    assert find_system_part(x1, {"file_system": "large"}, storage, {}) == "large"
    assert find_system_part(x1, {"mount": "log-16m"}, storage, {"log-16m": "single"}) == "single"


def test_cells_of_a_claim_are_selected() -> None:
    axis = {"name": "who", "paths": "clients.group", "values": ["a", "b", "c"]}
    text = "bandwidth(write, who=a) / bandwidth(write, who=c) >= 2"
    experiment = build_experiment(plan=PLAN, expect=[make_claim(text)], sweep=[axis])
    assert [cell.id for cell in CellGrid(experiment).list_cells_of_claim(experiment.claims["C1"])] == ["who=a", "who=c"]


def test_one_run_decides_only_if_deterministic() -> None:
    experiment = build_experiment(
        plan=PLAN, expect=[make_claim("imbalance(bandwidth(write), per=node) <= 1.5", level="math")]
    )

    class DeterministicNumbers(PublishedNumbers):
        is_deterministic = True

    members = {("bandwidth", "write", "base"): (1.0, 1.2)}
    rates = {("bandwidth", "write", "base"): 1.0}
    assert (
        evaluate_claims(experiment, PublishedNumbers(rates, member_values=members), ("math",))[0].outcome
        is ClaimVerdict.UNDECIDED
    )
    assert (
        evaluate_claims(experiment, DeterministicNumbers(rates, member_values=members), ("math",))[0].outcome
        is ClaimVerdict.HOLDS
    )
    uneven = {("bandwidth", "write", "base"): (1.0, 9.0)}
    assert (
        evaluate_claims(experiment, DeterministicNumbers(rates, member_values=uneven), ("math",))[0].outcome
        is ClaimVerdict.FAILS
    )
