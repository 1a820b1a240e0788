# SPDX-License-Identifier: Apache-2.0
"""The best cell of a sweep, its ratios to the others, and the figure of a sweep without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_executor import build_request, run_fake_experiment

from sonde.experiments.medians import CellMedian, compute_medians
from sonde.experiments.page.page import build_experiment_page, evaluate_results
from sonde.experiments.ranking import describe_ranking, list_figures_or_default
from sonde.experiments.results import PLACEMENT_MEMBER, Results, read_group_results
from sonde.stats.stopping import InterimLook, MedianInterval
from sonde.store.archive import Archive

SWEEP: dict[str, Any] = {
    "id": "sizes",
    "plan": {"phases": [{"id": "write", "op": "write"}]},
    "sweep": [{"paths": "data.access.transfer", "values": ["4KiB", "8KiB", "16KiB"]}],
    "repeat": {"min": 6, "seed": 5},
}


def run_sweep(root: Path, target: Path, rates: dict[str, float], **members: Any) -> Results:
    """Repeat `n` of a cell is n per mille faster than the first."""
    archive = Archive(root)

    def truth(attempt: Any) -> dict[str, float]:
        placement = attempt.facts[PLACEMENT_MEMBER]
        return {"write": rates[placement["axis_values"]["transfer"]] * (1 + placement["repeat"] / 1000)}

    run_fake_experiment(build_request({**SWEEP, **members}, target), archive, truth)
    return read_group_results(archive, "g")


def test_ranking_states_the_best_cell_with_its_ratios(archive: Path, target: Path) -> None:
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 1.8e9})
    first, *others = describe_ranking(compute_medians(results))
    assert first.startswith("write: transfer=8KiB has the highest median of 3 cells, 2.0")
    assert others == [
        "transfer=8KiB is 1.1 times as fast as transfer=16KiB, 1.1 to 1.1.",
        "transfer=8KiB is 2 times as fast as transfer=4KiB, 2.0 to 2.0.",
    ]


def test_cells_that_chance_may_explain_are_not_ranked(archive: Path, target: Path) -> None:
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 1e9, "16KiB": 1e9})
    assert (
        "and transfer=8KiB do not differ by more than chance (1.00 to 1.00)."
        in describe_ranking(compute_medians(results))[1]
    )


def test_axis_with_one_value_is_not_printed(archive: Path, target: Path) -> None:
    sweep = [*SWEEP["sweep"], {"paths": "data.io.direct", "values": [False]}]
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 1.8e9}, sweep=sweep)
    sentences = describe_ranking(compute_medians(results))
    assert sentences[0].startswith("write: transfer=8KiB has")
    assert not any("direct" in sentence for sentence in sentences)


def test_too_few_repeats_give_no_interval(archive: Path, target: Path) -> None:
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 4e9}, repeat={"min": 2, "seed": 5})
    assert describe_ranking(compute_medians(results))[1:] == [
        "transfer=16KiB is 2 times as fast as transfer=8KiB (an interval needs 5 runs on each side; here are 2 and 2).",
        "transfer=16KiB is 4 times as fast as transfer=4KiB (no interval).",
    ]


def test_ratio_near_1_is_not_rounded_to_1(archive: Path, target: Path) -> None:
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 1.04e9, "16KiB": 1.04e9}, repeat={"min": 2, "seed": 5})
    sentences = describe_ranking(compute_medians(results))
    assert any("is 1.04 times as fast as transfer=4KiB" in sentence for sentence in sentences), sentences
    assert sentences[1].startswith("transfer=8KiB is as fast as transfer=16KiB (an interval needs 5 runs"), sentences


def test_page_of_a_sweep_without_claims_has_no_claims_section(archive: Path, target: Path) -> None:
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 4e9})
    runs, verdicts = evaluate_results(results)
    study = build_experiment_page(results, runs, verdicts)
    assert study.lead == "This experiment has no claims; these are its results."
    assert study.sections[0].title == "Ranking"


def test_sweep_without_figures_gets_a_default_figure(archive: Path, target: Path) -> None:
    results = run_sweep(archive, target, {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 4e9})
    (figure,) = list_figures_or_default(results.experiment, compute_medians(results))
    assert (figure.kind, figure.x, figure.series, figure.metrics) == ("curve", "transfer", "", ("bandwidth",))
    runs, verdicts = evaluate_results(results)
    sections = {section.title: section for section in build_experiment_page(results, runs, verdicts).sections}
    assert sections["Ranking"].paragraphs[0].startswith("write: transfer=16KiB has the highest median of 3 cells")
    assert "Rate over transfer" in " ".join(sections)
    assert any("<svg" in str(part) for section in sections.values() for part in section.parts)


def make_training_cell(
    accelerators: int, utilization: float, classification: str = "storage", **axes: Any
) -> CellMedian:
    return CellMedian(
        cell=f"c{accelerators}",
        axis_values={"processes": accelerators, **axes},
        plan="",
        phase="epoch-1",
        unit="B/s",
        interval=MedianInterval(1e9 * accelerators, None, None, 1),
        look=InterimLook.ONLY,
        has_enough_runs=True,
        rates=(1e9 * accelerators,),
        classifications=(classification,),
        accelerators=accelerators,
        utilizations=(utilization,),
    )


@pytest.mark.parametrize(
    ("utilizations", "at_90", "at_70"),
    [
        (
            {8: 0.71, 2: 0.99, 4: 0.9},
            "epoch-1: 4 accelerators computed 90.0 % of the time: the most that reached 90 %; 8 computed 71.0 %.",
            "epoch-1: 8 accelerators computed 71.0 % of the time, 70 % is demanded; no larger number was tried.",
        ),
        (
            {1: 0.5, 2: 0.4},
            "epoch-1: no number of accelerators that was tried computed 90 % of the time; 1 computed 50.0 %.",
            "epoch-1: no number of accelerators that was tried computed 70 % of the time; 1 computed 50.0 %.",
        ),
        (  # chance: 8 reach the share, but not the smaller 4
            {1: 0.95, 4: 0.8, 8: 0.92},
            "epoch-1: 1 accelerator computed 95.0 % of the time: the most that reached 90 %; 4 computed 80.0 %.",
            "epoch-1: 8 accelerators computed 92.0 % of the time, 70 % is demanded; no larger number was tried.",
        ),
    ],
)
def test_largest_number_of_fed_accelerators_is_the_answer(
    utilizations: dict[int, float], at_90: str, at_70: str
) -> None:
    cells = [make_training_cell(number, share) for number, share in utilizations.items()]
    assert describe_ranking(cells) == [at_90, at_70]


def test_fed_accelerators_are_reported_per_value_of_other_axes() -> None:
    shares = {("a", 1): 0.95, ("a", 2): 0.8, ("b", 1): 0.95, ("b", 2): 0.91}
    cells = [make_training_cell(number, share, "cache", files=files) for (files, number), share in shares.items()]
    first, _, second, _ = describe_ranking(cells)
    assert first == (
        "epoch-1, files=a: 1 accelerator computed 95.0 % of the time, not of storage (cached): the most that"
        " reached 90 %; 2 computed 80.0 %."
    )
    assert second.startswith(
        "epoch-1, files=b: 2 accelerators computed 91.0 % of the time, not of storage (cached), 90 %"
    )


def test_epochs_with_equal_numbers_of_accelerators_are_ranked_by_rate() -> None:
    cells = [make_training_cell(4, share, transfer=size) for size, share in (("4KiB", 0.5), ("1MiB", 0.9))]
    assert describe_ranking(cells)[0].startswith("epoch-1: transfer=")
