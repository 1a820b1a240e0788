# SPDX-License-Identifier: Apache-2.0
"""Detection of stragglers in times with a known answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sonde.stats.imbalance import (
    StragglerAttribution,
    Stragglers,
    attribute_slowness_to_nodes_or_tasks,
    compute_straggler_threshold,
    describe_stragglers,
    find_stragglers,
)

near: Any = pytest.approx  # as a member of what is compared whole


def test_slow_node_is_identified_with_its_cost() -> None:
    """Node 5 takes 13.8 s where the others take 10: without it the run is 38 % faster."""
    times = np.full(16 * 8, 10.0)
    nodes = np.repeat(np.arange(16), 8)
    times[nodes == 5] = 13.8
    attribution = attribute_slowness_to_nodes_or_tasks(times, nodes.tolist())
    assert attribution is not None
    assert attribution.is_of_nodes
    assert attribution.stragglers.members == (5,)
    assert attribution.stragglers.speedup == pytest.approx(0.38)


def test_one_slow_task_on_a_good_node_is_a_task() -> None:
    times = np.random.default_rng(1).normal(10, 0.1, 64)
    times[17] = 25.0
    attribution = attribute_slowness_to_nodes_or_tasks(times, np.repeat(np.arange(8), 8).tolist())
    assert attribution is not None
    assert not attribution.is_of_nodes
    assert attribution.stragglers.members == (17,)
    assert attribution.stragglers.speedup == pytest.approx(1.5, abs=0.1)


def test_two_equally_slow_members_are_both_stragglers() -> None:
    times = np.full(40, 10.0)
    times[[3, 9]] = 20.0
    stragglers = find_stragglers(times)
    assert stragglers is not None
    assert sorted(stragglers.members) == [3, 9]
    assert stragglers.speedup == pytest.approx(1.0)


@pytest.mark.parametrize("sd", [0.001, 0.05, 0.1])
def test_noise_alone_yields_almost_no_stragglers(sd: float) -> None:
    random = np.random.default_rng(2)
    blamed = sum(find_stragglers(10 * np.exp(random.normal(0, sd, 64))) is not None for _ in range(200))
    assert blamed <= 6


def test_many_slow_members_are_no_stragglers() -> None:
    assert find_stragglers([10.0] * 30 + [20.0] * 10) is None


def test_a_tenth_of_the_members_can_be_stragglers_and_no_more() -> None:
    times = np.full(20, 10.0)
    times[:2] = 20.0
    assert find_stragglers(times) is not None
    times[2] = 20.0
    assert find_stragglers(times) is None


def test_member_that_hardly_delays_the_run_is_no_straggler() -> None:
    """30 s, 29.5 s and 15 s beside 10 s: without the first alone nothing changes; the last costs as much again."""
    times = np.full(40, 10.0)
    times[[1, 2, 3]] = 30.0, 29.5, 15.0
    stragglers = find_stragglers(times)
    assert stragglers is not None
    assert stragglers.members == (1, 2, 3)
    assert (stragglers.speedup, stragglers.slowdown) == pytest.approx((2.0, 3.0))
    times[[1, 2, 3, 4]] = 30.0, 14.0, 11.8, 11.45  # the last is not slow, and ends the run soon after the third
    stragglers = find_stragglers(times)
    assert stragglers is not None
    assert stragglers.members == (1, 2)
    assert (stragglers.speedup, stragglers.slowdown) == pytest.approx((30.0 / 11.8 - 1, 3.0))
    times[[1, 2, 3, 4]] = 30.0, 11.8, 11.7, 11.45
    stragglers = find_stragglers(times)
    assert stragglers is not None
    assert stragglers.members == (1,)
    assert stragglers.speedup == pytest.approx(30.0 / 11.8 - 1)


def test_straggler_threshold_grows_with_scatter() -> None:
    """Least 1.15; with logarithms that scatter by a robust standard deviation of 0.1 it is exp(0.45)."""
    assert compute_straggler_threshold([10.0] * 9) == 1.15
    logs = 0.1 / 1.4826 * np.array([-3, -2, -1, -1, 0, 1, 1, 2, 3])
    assert compute_straggler_threshold(np.exp(logs)) == pytest.approx(np.exp(4.5 * 0.1))
    assert compute_straggler_threshold(1 / np.exp(logs)) == pytest.approx(np.exp(4.5 * 0.1))


def test_attribution_to_a_node_needs_three_nodes() -> None:
    three = attribute_slowness_to_nodes_or_tasks([10.0] * 8 + [20.0] * 4, [0] * 4 + [1] * 4 + [2] * 4)
    assert three is not None
    assert three.is_of_nodes
    assert three.stragglers.members == (2,)
    assert (three.stragglers.speedup, three.stragglers.slowdown) == pytest.approx((1.0, 2.0))
    assert attribute_slowness_to_nodes_or_tasks([10.0] * 4 + [20.0] * 4, [0] * 4 + [1] * 4) is None


def test_a_slow_node_is_not_blamed_when_one_task_elsewhere_is_as_slow() -> None:
    times = np.full(40, 10.0)
    nodes = np.repeat(np.arange(10), 4)
    times[nodes == 3] = 20.0
    times[0] = 60.0
    attribution = attribute_slowness_to_nodes_or_tasks(times, nodes.tolist())
    assert attribution is None or not attribution.is_of_nodes


def test_straggler_sentence_lists_five_names_and_a_count() -> None:
    blame = Stragglers(tuple(range(7)), 0.384, 2.0)
    names = [f"n{index}" for index in range(7)]
    assert describe_stragglers(StragglerAttribution(True, blame), names) == (
        "Without nodes n0, n1, n2, n3, n4 and 2 more the run would have been 38 % faster."
    )
    assert describe_stragglers(StragglerAttribution(False, blame), names[:5]) == (
        "Without tasks n0, n1, n2, n3, n4 the run would have been 38 % faster."
    )
    assert (
        describe_stragglers(StragglerAttribution(False, blame), ["9"])
        == "Without task 9 the run would have been 38 % faster."
    )


@pytest.mark.parametrize("wrong", [[], [1.0, 0.0], [1.0, -2.0], [1.0, float("nan")], [float("inf"), 1.0]])
def test_invalid_times_are_rejected(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="imbalance needs times above 0"):
        find_stragglers(wrong)


@pytest.mark.parametrize(("slowest", "faster"), [(12.0, None), (12.1, 12.1 / 11.45 - 1), (15.0, 15.0 / 11.45 - 1)])
def test_stragglers_that_cost_under_5_percent_are_ignored(slowest: float, faster: float | None) -> None:
    """Beside 10 s and one of 11.45 s, which is not slow but ends the run without the slowest."""
    stragglers = find_stragglers([10.0] * 18 + [11.45, slowest])
    assert (stragglers is None) == (faster is None)
    if stragglers is not None:
        assert (stragglers.members, stragglers.speedup) == ((19,), near(faster))


def test_slower_by_less_than_fifteen_percent_is_not_slow() -> None:
    assert find_stragglers([10.0] * 19 + [11.5]) is None
    assert find_stragglers([10.0] * 19 + [11.51]) == Stragglers((19,), near(0.151), near(1.151))


@pytest.mark.parametrize("times", [[10.0], [10.0, 90.0], [10.0, 11.6], [1.0, 1e6]])
def test_of_two_members_neither_is_slow(times: list[float]) -> None:
    assert find_stragglers(times) is None


def test_fewer_than_ten_members_may_have_a_single_straggler() -> None:
    assert find_stragglers([10.0, 10.0, 30.0]) == Stragglers((2,), near(2.0), near(3.0))
    assert find_stragglers([10.0] * 5 + [30.0] * 2) is None


def test_slow_node_is_blamed_at_half_the_cost_of_a_slow_task() -> None:
    """Node 3 takes 20 s where others take 10 s, and one of its tasks 40 s: without the node 300 % faster."""
    times, nodes = np.full(40, 10.0), np.repeat(np.arange(10), 4)
    times[nodes == 3] = 20.0
    times[12] = 40.0
    attribution = attribute_slowness_to_nodes_or_tasks(times, nodes.tolist())
    assert attribution == StragglerAttribution(True, Stragglers((3,), near(3.0), near(2.0)))
    times[15] = 10.0  # of its tasks three are slow, and one elsewhere: without these four it is 300 %
    times[0] = 16.0
    assert attribute_slowness_to_nodes_or_tasks(times, nodes.tolist()) == StragglerAttribution(
        True, Stragglers((3,), near(1.5), near(2.0))
    )
    times[0] = 16.5
    tasks = Stragglers((12, 13, 14, 0), near(3.0), near(4.0))
    assert attribute_slowness_to_nodes_or_tasks(times, nodes.tolist()) == StragglerAttribution(False, tasks)


def test_slow_task_is_blamed_when_nodes_are_equal() -> None:
    nodes = [0, 1, 2, 3] * 10
    assert attribute_slowness_to_nodes_or_tasks([10.0] * 40, nodes) is None
    attribution = attribute_slowness_to_nodes_or_tasks([10.0] * 39 + [20.0], nodes)
    assert attribution == StragglerAttribution(False, Stragglers((39,), near(1.0), near(2.0)))
    with pytest.raises(ValueError, match="each task needs its node"):
        attribute_slowness_to_nodes_or_tasks([1.0, 2.0], [0])


def test_blamed_nodes_have_their_node_numbers() -> None:
    """Node 7 of 2, 4, 5 and 7 is slow, whichever place it has among them."""
    attribution = attribute_slowness_to_nodes_or_tasks([10.0, 10.0, 20.0, 10.0] * 4, [2, 4, 7, 5] * 4)
    assert attribution == StragglerAttribution(True, Stragglers((7,), near(1.0), near(2.0)))


@pytest.mark.parametrize("factor", [2, 5, 10, 100, 1e4])
@pytest.mark.parametrize(("node_count", "tasks_per_node"), [(4, 8), (16, 4), (48, 2)])
def test_slow_task_and_slow_node_are_distinguished(node_count: int, tasks_per_node: int, factor: float) -> None:
    """At any strength: one slow task of two on a node is not that node."""
    random = np.random.default_rng([node_count, int(factor)])
    nodes = np.repeat(np.arange(node_count), tasks_per_node)
    node_list = nodes.tolist()
    right_tasks = right_nodes = 0
    for _ in range(100):
        times, slow = random.lognormal(0, 0.05, nodes.size), int(random.integers(nodes.size))
        result = attribute_slowness_to_nodes_or_tasks(
            np.where(np.arange(nodes.size) == slow, factor, 1) * times, node_list
        )
        right_tasks += result is not None and not result.is_of_nodes and slow in result.stragglers.members
        result = attribute_slowness_to_nodes_or_tasks(np.where(nodes == nodes[slow], factor, 1) * times, node_list)
        right_nodes += result is not None and result.is_of_nodes and int(nodes[slow]) in result.stragglers.members
    assert min(right_tasks, right_nodes) >= 98
