# SPDX-License-Identifier: Apache-2.0
"""The order of runs: blocks, drawn anew from the seed; cells go on until their interval is narrow."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sonde.experiments.order import Schedule, Turn
from sonde.model.experiment import Cell
from sonde.model.experiment.description import Repeat

CELLS = [Cell("", {"size": size}, ()) for size in ("1", "2", "3", "4", "5")]


def turns(repeat: Repeat, seed: int = 1, rates: Any = None, given_up: Any = None, cells: Any = None) -> list[Turn]:
    """All turns; `rates` gives the rate of each repeat of a cell, known as soon as it was run."""
    known: dict[str, dict[int, dict[str, float]]] = {}
    schedule = Schedule(
        cells or CELLS, repeat, seed, lambda cell: known.get(cell, {}), given_up or (lambda cell: False)
    )
    found = []
    for turn in schedule.turns():
        found.append(turn)
        if rates is not None and not turn.warm_up:
            known.setdefault(turn.cell.id, {})[turn.repeat] = {"write": rates(turn)}
    return found


def names(some: list[Turn]) -> list[str]:
    return [turn.cell.at["size"] for turn in some]


def test_every_block_has_every_cell_once_and_an_order_of_its_own() -> None:
    found = turns(Repeat(min=4))
    blocks = [names(found[at : at + 5]) for at in range(0, 20, 5)]
    assert all(sorted(block) == ["1", "2", "3", "4", "5"] for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1
    assert [turn.repeat for turn in found] == sorted(turn.repeat for turn in found)


def test_the_seed_decides_about_the_order_and_nothing_else_does() -> None:
    assert names(turns(Repeat(min=3), 7)) == names(turns(Repeat(min=3), 7))
    assert names(turns(Repeat(min=3), 7)) != names(turns(Repeat(min=3), 8))
    assert names(turns(Repeat(min=3), 7))[:10] == names(turns(Repeat(min=2), 7))


def test_cells_come_equally_often_at_every_place_of_a_block() -> None:
    found = turns(Repeat(min=1000))
    first = Counter(names(found[::5]))
    assert min(first.values()) > 140  # 200 expected, standard deviation 12.6


def test_warm_ups_come_before_all_repeats() -> None:
    found = turns(Repeat(min=1, warmup=2))
    assert [turn.warm_up for turn in found] == [True] * 10 + [False] * 5


def test_in_order_runs_each_cell_to_its_end_before_the_next() -> None:
    found = turns(Repeat(min=2, warmup=1, order="in_order"))
    assert names(found) == ["1"] * 3 + ["2"] * 3 + ["3"] * 3 + ["4"] * 3 + ["5"] * 3


def test_only_cells_with_a_wide_interval_go_on_and_at_most_to_the_limit() -> None:
    def rates(turn: Turn) -> float:
        noisy = turn.cell.at["size"] == "3"
        return 100.0 * (1 + 0.5 * (turn.repeat % 3)) if noisy else 100.0 + turn.repeat % 2 * 0.1

    found = Counter(names(turns(Repeat(min=6, max=15, interval=0.02), rates=rates)))
    assert found == {"1": 6, "2": 6, "3": 15, "4": 6, "5": 6}


def test_sides_of_a_comparison_go_on_together() -> None:
    cells = [Cell("", {"variant": one, "size": size}, ()) for one in ("a", "b") for size in ("1", "2")]

    def rates(turn: Turn) -> float:
        noisy = (turn.cell.at["variant"], turn.cell.at["size"]) == ("b", "2")
        return 100.0 * (1 + 0.5 * (turn.repeat % 3)) if noisy else 100.0

    found = Counter(turn.cell.id for turn in turns(Repeat(min=6, max=9, interval=0.02), rates=rates, cells=cells))
    assert found == {"variant=a,size=1": 6, "variant=b,size=1": 6, "variant=a,size=2": 9, "variant=b,size=2": 9}


def test_a_cell_that_was_given_up_has_no_further_turn() -> None:
    given_up: set[str] = set()

    def rates(turn: Turn) -> float:
        if turn.cell.at["size"] == "2":
            given_up.add(turn.cell.id)
        return 1.0

    found = Counter(names(turns(Repeat(min=3), rates=rates, given_up=lambda cell: cell in given_up)))
    assert found == {"1": 3, "2": 1, "3": 3, "4": 3, "5": 3}
