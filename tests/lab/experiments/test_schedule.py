# SPDX-License-Identifier: Apache-2.0
"""The order of runs: blocks in an order drawn from the seed; cells repeat until their interval is narrow."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sonde.experiments.schedule import Schedule, ScheduledRun
from sonde.model.experiment import Cell
from sonde.model.experiment.description import RunSchedule

CELLS = [Cell("", {"size": size}, ()) for size in ("1", "2", "3", "4", "5")]


def list_scheduled_runs(
    run_schedule: RunSchedule, seed: int = 1, rates: Any = None, given_up: Any = None, cells: Any = None
) -> list[ScheduledRun]:
    """All turns; `rates` gives the rate of each repeat of a cell, known as soon as it was run."""
    rates_of_cells: dict[str, dict[int, dict[str, float]]] = {}
    schedule = Schedule(
        cells or CELLS, run_schedule, seed, lambda cell: rates_of_cells.get(cell, {}), given_up or (lambda cell: False)
    )
    turn_list = []
    for turn in schedule.iterate_runs():
        turn_list.append(turn)
        if rates is not None and not turn.warm_up:
            rates_of_cells.setdefault(turn.cell.id, {})[turn.repeat] = {"write": rates(turn)}
    return turn_list


def list_cell_names(some: list[ScheduledRun]) -> list[str]:
    return [turn.cell.coordinates["size"] for turn in some]


def test_every_block_has_all_cells_in_new_order() -> None:
    turn_list = list_scheduled_runs(RunSchedule(min=4))
    blocks = [list_cell_names(turn_list[first_index : first_index + 5]) for first_index in range(0, 20, 5)]
    assert all(sorted(block) == ["1", "2", "3", "4", "5"] for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1
    assert [turn.repeat for turn in turn_list] == sorted(turn.repeat for turn in turn_list)


def test_order_depends_only_on_seed() -> None:
    assert list_cell_names(list_scheduled_runs(RunSchedule(min=3), 7)) == list_cell_names(
        list_scheduled_runs(RunSchedule(min=3), 7)
    )
    assert list_cell_names(list_scheduled_runs(RunSchedule(min=3), 7)) != list_cell_names(
        list_scheduled_runs(RunSchedule(min=3), 8)
    )
    assert list_cell_names(list_scheduled_runs(RunSchedule(min=3), 7))[:10] == list_cell_names(
        list_scheduled_runs(RunSchedule(min=2), 7)
    )


def test_cells_are_uniform_over_positions() -> None:
    turn_list = list_scheduled_runs(RunSchedule(min=1000))
    first = Counter(list_cell_names(turn_list[::5]))
    assert min(first.values()) > 140  # 200 expected, standard deviation 12.6


def test_warm_ups_precede_repeats() -> None:
    turn_list = list_scheduled_runs(RunSchedule(min=1, warmup=2))
    assert [turn.warm_up for turn in turn_list] == [True] * 10 + [False] * 5


def test_in_order_completes_each_cell_first() -> None:
    turn_list = list_scheduled_runs(RunSchedule(min=2, warmup=1, order="in_order"))
    assert list_cell_names(turn_list) == ["1"] * 3 + ["2"] * 3 + ["3"] * 3 + ["4"] * 3 + ["5"] * 3


def test_wide_intervals_get_repeats_up_to_limit() -> None:
    def rates(turn: ScheduledRun) -> float:
        noisy = turn.cell.coordinates["size"] == "3"
        return 100.0 * (1 + 0.5 * (turn.repeat % 3)) if noisy else 100.0 + turn.repeat % 2 * 0.1

    counts = Counter(list_cell_names(list_scheduled_runs(RunSchedule(min=6, max=15, interval=0.02), rates=rates)))
    assert counts == {"1": 6, "2": 6, "3": 15, "4": 6, "5": 6}


def test_noisy_variant_extends_the_runs_of_all_variants() -> None:
    cells = [Cell("", {"variant": variant, "size": size}, ()) for variant in ("a", "b") for size in ("1", "2")]

    def rates(turn: ScheduledRun) -> float:
        noisy = (turn.cell.coordinates["variant"], turn.cell.coordinates["size"]) == ("b", "2")
        return 100.0 * (1 + 0.5 * (turn.repeat % 3)) if noisy else 100.0

    counts = Counter(
        turn.cell.id for turn in list_scheduled_runs(RunSchedule(min=6, max=9, interval=0.02), rates=rates, cells=cells)
    )
    assert counts == {"variant=a,size=1": 6, "variant=b,size=1": 6, "variant=a,size=2": 9, "variant=b,size=2": 9}


def test_abandoned_cell_has_no_further_runs() -> None:
    given_up: set[str] = set()

    def rates(turn: ScheduledRun) -> float:
        if turn.cell.coordinates["size"] == "2":
            given_up.add(turn.cell.id)
        return 1.0

    counts = Counter(
        list_cell_names(list_scheduled_runs(RunSchedule(min=3), rates=rates, given_up=lambda cell: cell in given_up))
    )
    assert counts == {"1": 3, "2": 1, "3": 3, "4": 3, "5": 3}
