# SPDX-License-Identifier: Apache-2.0
"""Claims over runs whose numbers are known: metrics, functions, the four outcomes, and what is said of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from in_memory_runs import Phase, build_experiment, make_claim, make_runs, record

from sonde.experiments.claims.curve_forms import classify_form
from sonde.experiments.claims.samples import MissingError, RateCurve
from sonde.experiments.claims.values import compute_completion_tail
from sonde.experiments.claims.verdicts import ClaimResult, evaluate_claims
from sonde.experiments.page.sentences import describe_verdict
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.experiment.claims import FUNCTIONS, METRICS
from sonde.model.system import read_system

HOLDS, FAILS, OPEN, NOT = ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.UNDECIDED, ClaimVerdict.NOT_JUDGED
# Six runs with a scatter of a few percent around 1.
SCATTER = (0.98, 1.03, 1.0, 0.99, 1.02, 1.01)
TRANSFERS = {"name": "transfer", "paths": "data.access.transfer", "values": ["1MiB", "2MiB", "4MiB"]}
VOLUME = {"data": {"access": {"transfer": "1MiB", "volume": "4MiB"}}}
TWO_PHASES = {**VOLUME, "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}]}
LEVELS = np.geomspace(1e6, 1e7, 6)


def evaluate_claim_over_six_runs(text: str, phases: list[Phase], storage: Any = None, **members: Any) -> ClaimResult:
    """The result of a claim over six equal runs of these phases."""
    phase_documents = [
        {"id": phase.id, "op": phase.op, **({} if phase.measured else {"measure": False})} for phase in phases
    ]
    for document in phase_documents:
        if document["op"] == "duplex":
            document["streams"] = [{"id": "out", "op": "write", "file": 0}, {"id": "in", "op": "read", "file": 1}]
    data: dict[str, Any] = {"access": {"transfer": "1MiB", "volume": "1MiB"}}
    if any(phase.op == "duplex" for phase in phases):
        data["files"] = {"mapping": "many", "count": 2}
    document = {"plan": {"data": data, "phases": phase_documents}, **({"storage": storage} if storage else {})}
    experiment = build_experiment(**document, expect=[make_claim(text)])
    nodes = members.pop("nodes", 1)
    return evaluate_claims(experiment, make_runs(experiment, {"base": [record(phases, nodes=nodes)] * 6}, **members))[0]


# Metric -> a phase whose record says it, and the value that the definition in METRICS gives by hand.
KNOWN: dict[str, tuple[list[Phase], float, dict[str, Any]]] = {
    "bandwidth": ([Phase(rate=123e6)], 123e6, {}),
    "bandwidth_stonewall": ([Phase(stonewall=140e6)], 140e6, {}),
    "operations": ([Phase(ops=321.0)], 321.0, {}),
    # 4000 operations in 2 s, 4000 in 4 s: the slower does 1000 a second, two tasks do 2000
    "operations_slowest": ([Phase(tasks=[(4_000_000, 0.0, 2.0), (4_000_000, 0.0, 4.0)])], 2000.0, {}),
    "time": ([Phase(seconds=12.5)], 12.5, {}),
    "real_time": ([Phase(command=(34.8, 5.8, 19.0))], 34.8, {}),
    "command_user_time": ([Phase(command=(34.8, 5.8, 19.0))], 5.8, {}),
    "command_system_time": ([Phase(command=(34.8, 5.8, 19.0))], 19.0, {}),
    "latency_p50": (
        [Phase(latency={"write": {"count": 9, "p50_ns": 2e6}, "open": {"count": 99, "p50_ns": 1}})],
        2e-3,
        {},
    ),
    "latency_p99": ([Phase(latency={"write": {"count": 9, "p99_ns": 3e6}})], 3e-3, {}),
    "latency_max": ([Phase(latency={"write": {"count": 9, "max_ns": 4e6}})], 4e-3, {}),
    "cpu_rate": ([Phase(rate=100e6, seconds=10, system_s=4.0)], 250e6, {}),
    "system_time": ([Phase(system_s=4.0)], 4.0, {}),
    "user_time": ([Phase(user_s=3.0)], 3.0, {}),
    "bandwidth_per_unit": ([Phase(rate=120e6)], 40e6, {"storage": {"units": 3}}),
    "bandwidth_per_target": ([Phase(rate=120e6)], 30e6, {"storage": {"targets": 4}}),
    "bandwidth_per_node": ([Phase(rate=120e6)], 60e6, {"nodes": 2}),
    "share_of_peak": ([Phase(rate=120e6)], 0.6, {"storage": {"peak": "200 MB/s"}}),
    "duplex_efficiency": (
        [
            Phase("prepare", rate=1e9, measured=False),
            Phase("half_write", rate=100e6),
            Phase("half_read", "read", rate=300e6),
            Phase("write", "duplex", rate=200e6),
        ],
        0.5,
        {},
    ),
    "residency": ([Phase(residency=0.25)], 0.25, {}),
    "errors": ([Phase(failed=7)], 7.0, {}),
    "calls": ([Phase(ops=50, seconds=10)], 500.0, {}),
}


# The definitions of metrics of training: test_training.py; of memory: tests/lab/telemetry/test_memory_use.py.
@pytest.mark.parametrize("metric", sorted({*METRICS} - {"accelerator_utilization", "samples", "client_memory"}))
def test_metrics_follow_their_definitions(metric: str) -> None:
    phases, wanted, members = KNOWN[metric]
    verdict = evaluate_claim_over_six_runs(
        f"{wanted * 0.999} <= {metric}(write) <= {wanted * 1.001}", phases, **members
    )
    assert verdict.outcome is HOLDS, verdict
    assert evaluate_claim_over_six_runs(f"{metric}(write) > {wanted * 1.01}", phases, **members).outcome is FAILS


@pytest.mark.parametrize("metric", sorted({*METRICS} - {"bandwidth_per_node", "errors", "calls", "time"}))
def test_value_missing_in_record_is_not_zero(metric: str) -> None:
    bare = Phase(rate=0.0, ops=0.0, system_s=None, user_s=None)
    verdict = evaluate_claim_over_six_runs(f"{metric}(write) > 0", [bare])
    assert verdict.outcome is NOT
    assert verdict.reason


def evaluate_over_cells(text: str, rates: list[list[float]], **members: Any) -> ClaimResult:
    """The result of a claim over a sweep of three transfer sizes with these rates of their runs."""
    experiment = build_experiment(
        **{"plan": {**VOLUME, "phases": [{"id": "write", "op": "write"}]}, "sweep": [TRANSFERS], **members},
        expect=[make_claim(text)],
    )
    cells = [cell.id for cell in experiment.cells]
    return evaluate_claims(experiment, make_runs(experiment, {c: [record([Phase(rate=r)]) for r in runs]
                                       for c, runs in zip(cells, rates, strict=False)}))[0]  # fmt: skip


def spread_around(*levels: float) -> list[list[float]]:
    return [[level * factor for factor in SCATTER] for level in levels]


# Function -> claim that must hold of 100, 200 and 300 MB/s at 1, 2 and 4 MiB, and one that must fail.
FUNCTIONS_KNOWN = {
    # log 1, 2, 3 against log 1, 2, 4: least squares by hand 0.7925
    "slope": ("0.74 <= slope(bandwidth(write), over=transfer) <= 0.85", "slope(bandwidth(write), over=transfer) >= 1"),
    "rank_correlation": (
        "rank_correlation(bandwidth(write), over=transfer) >= 1",
        "rank_correlation(bandwidth(write), over=transfer) <= 0.5",
    ),
    "rise": ("2.8 <= rise(bandwidth(write), over=transfer) <= 3.2", "rise(bandwidth(write), over=transfer) < 2"),
    "fall": ("fall(bandwidth(write), over=transfer) >= 1", "fall(bandwidth(write), over=transfer) <= 0.9"),
    "largest": (
        "largest(bandwidth(write), over=transfer) >= 280e6",
        "largest(bandwidth(write), over=transfer) < 280e6",
    ),
    "smallest": (
        "smallest(bandwidth(write), over=transfer) <= 104e6",
        "smallest(bandwidth(write), over=transfer) > 2e8",
    ),
    "spread": (
        "0.9 <= spread(bandwidth(write), over=transfer) <= 1.1",
        "spread(bandwidth(write), over=transfer) < 0.5",
    ),
    "scaling": (
        '2.8 <= scaling(bandwidth(write), over=transfer, at="4MiB") <= 3.2',
        'scaling(bandwidth(write), over=transfer, at="4MiB") >= 3.5',
    ),
    "efficiency": (
        '0.7 <= efficiency(bandwidth(write), over=transfer, at="4MiB") <= 0.8',
        'efficiency(bandwidth(write), over=transfer, at="4MiB") >= 0.9',
    ),
}


@pytest.mark.parametrize("function", FUNCTIONS_KNOWN)
def test_functions_along_axis_return_known_answers(function: str) -> None:
    holds, fails = FUNCTIONS_KNOWN[function]
    rates = spread_around(100e6, 200e6, 300e6)
    assert evaluate_over_cells(holds, rates).outcome is HOLDS
    assert evaluate_over_cells(fails, rates).outcome is FAILS


def test_every_function_has_known_answer_test() -> None:
    assert {*FUNCTIONS_KNOWN, "variation", "imbalance", "tail", "shape"} == set(FUNCTIONS)


def test_variation_function_uses_runs() -> None:
    runs = [90e6, 110e6, 95e6, 105e6, 100e6, 100e6, 98e6, 102e6]
    by_hand = np.std(runs, ddof=1) / np.mean(runs)
    experiment = build_experiment(expect=[make_claim(f"variation(bandwidth(write)) >= {by_hand * 0.2}"),
                              {**make_claim("variation(bandwidth(write)) > 0.5"), "id": "C2"}])  # fmt: skip
    records = [record([Phase(rate=rate)]) for rate in runs]
    verdict = evaluate_claims(experiment, make_runs(experiment, {"base": records}))
    assert verdict[0].outcome is HOLDS
    value = verdict[0].contexts[0].comparisons[0].value
    assert value is not None
    assert value.value == pytest.approx(by_hand)
    assert verdict[1].outcome is FAILS


def test_imbalance_is_largest_over_mean_of_members() -> None:
    nodes = [Phase(nodes=[100.0, 100.0, 100.0, 200.0])]
    assert evaluate_claim_over_six_runs("1.59 <= imbalance(bandwidth(write), per=node) <= 1.61", nodes).outcome is HOLDS
    tasks = [Phase(tasks=[(1000, 0.0, 1.0), (1000, 0.0, 1.0), (1000, 0.0, 4.0)])]
    assert evaluate_claim_over_six_runs("1.99 <= imbalance(time(write), per=task) <= 2.01", tasks).outcome is HOLDS
    alone = evaluate_claim_over_six_runs("imbalance(bandwidth(write), per=node) >= 1.1", [Phase(nodes=[100.0])])
    assert (alone.outcome, alone.reason) == (NOT, "there is one node only")


def test_tail_is_time_after_median_task_end() -> None:
    # done at 1, 2, 3 and 10: half are done at 2, so 8 of 10 seconds are tail
    assert compute_completion_tail([1.0, 2.0, 3.0, 10.0]) == pytest.approx(0.8)
    tasks = [Phase(tasks=[(1000, 5.0, 6.0), (1000, 5.0, 7.0), (1000, 5.0, 8.0), (1000, 5.0, 15.0)])]
    assert evaluate_claim_over_six_runs("0.79 <= tail(bandwidth(write)) <= 0.81", tasks).outcome is HOLDS


def add_noise(level: Any) -> list[float]:
    random = np.random.default_rng(3)
    return list(np.asarray(level) * random.normal(1, 0.03, len(level)))


FORMS = {
    "flat": [100.0] * 100,
    "declining": list(np.linspace(100, 30, 100)),
    "rising": list(np.linspace(30, 100, 100)),
    "dips": ([100.0] * 17 + [10.0] * 3) * 5,
}


@pytest.mark.parametrize("shape", FORMS)
def test_forms_of_rate_over_time_are_distinguished(shape: str) -> None:
    phases = [Phase(slices=[slice_bytes * 1e5 for slice_bytes in add_noise(FORMS[shape])])]
    for shape_name in FORMS:
        assert evaluate_claim_over_six_runs(f'shape(bandwidth(write)) == "{shape_name}"', phases).outcome is (
            HOLDS if shape_name == shape else FAILS
        )


def test_initial_drop_counts_as_flat() -> None:
    assert classify_form(RateCurve(tuple([400.0] * 6 + add_noise([100.0] * 94)), (1,) * 100, 0.1)) == "flat"


def test_short_curve_has_no_form() -> None:
    with pytest.raises(MissingError, match="at least 16 slices"):
        classify_form(RateCurve((1.0,) * 10, (1,) * 10, 0.1))


def test_shape_claim_with_few_runs_is_undecided() -> None:
    experiment = build_experiment(expect=[make_claim('shape(bandwidth(write)) == "flat"')])
    run = record([Phase(slices=[100.0] * 60)])
    verdict = evaluate_claims(experiment, make_runs(experiment, {"base": [run] * 3}))[0]
    assert (verdict.outcome, verdict.runs_needed) == (OPEN, 3)


def test_claim_holds_only_if_complete_interval_does() -> None:
    ratio = 'bandwidth(write, transfer="2MiB") / bandwidth(write, transfer="1MiB") >= {}'
    rates = spread_around(100e6, 200e6, 300e6)
    assert evaluate_over_cells(ratio.format(1.8), rates).outcome is HOLDS
    assert evaluate_over_cells(ratio.format(2.2), rates).outcome is FAILS
    verdict = evaluate_over_cells(ratio.format(1.99), rates)
    assert verdict.outcome is OPEN
    assert verdict.runs_needed is None or verdict.runs_needed > 0


def test_too_few_runs_are_undecided_with_runs_needed() -> None:
    verdict = evaluate_over_cells('bandwidth(write, transfer="2MiB") / bandwidth(write, transfer="1MiB") >= 1',
                     [[1e6] * 3, [5e6] * 3, [9e6] * 3])  # fmt: skip
    assert (verdict.outcome, verdict.runs_needed) == (OPEN, 2)
    alone = evaluate_over_cells('bandwidth(write, transfer="2MiB") >= 1', [[1e6] * 4] * 3)
    assert (alone.outcome, alone.runs_needed) == (OPEN, 1)


def test_divisor_that_may_be_0_is_reported() -> None:
    claim = make_claim("command_user_time(read) / command_user_time(write) <= 2")
    experiment = build_experiment(plan=TWO_PHASES, expect=[claim])
    runs = [record([Phase(command=(1.0, user, 1.0)), Phase("read", "read", command=(1.0, 0.01, 1.0))])
            for user in (0.0, 0.01, 0.0, 0.02, 0.01, 0.01)]  # fmt: skip
    verdict = evaluate_claims(experiment, make_runs(experiment, {"base": runs}))[0]
    assert (verdict.outcome, verdict.runs_needed) == (OPEN, None)
    assert describe_verdict(verdict).startswith("1 <= 2. It has no interval: by these runs its divisor may be 0")


def test_value_close_to_threshold_is_reported() -> None:
    verdict = evaluate_over_cells('bandwidth(write, transfer="2MiB") >= 200e6', spread_around(100e6, 199e6, 300e6))
    assert (verdict.outcome, verdict.runs_needed) == (OPEN, None)
    assert "More runs would hardly decide it: the interval is wide, and the value is close to" in describe_verdict(
        verdict
    )


def test_chained_bounds_are_two_comparisons() -> None:
    rates = spread_around(100e6, 200e6, 300e6)
    assert evaluate_over_cells('190e6 <= bandwidth(write, transfer="2MiB") <= 210e6', rates).outcome is HOLDS
    assert evaluate_over_cells('190e6 <= bandwidth(write, transfer="2MiB") <= 195e6', rates).outcome is FAILS


def test_metrics_of_one_run_are_compared_run_by_run() -> None:
    experiment = build_experiment(plan=TWO_PHASES, expect=[make_claim("bandwidth(read) / bandwidth(write) >= 1.04")])
    # runs differ by a factor of 10, but in each of them reading is 5 % faster
    runs = [record([Phase(rate=level), Phase("read", "read", rate=level * 1.05)]) for level in LEVELS]
    assert evaluate_claims(experiment, make_runs(experiment, {"base": runs}))[0].outcome is HOLDS


def test_factor_in_a_comparison_equals_a_ratio_threshold() -> None:
    experiment = build_experiment(plan=TWO_PHASES, expect=[make_claim("bandwidth(read) >= 1.04 * bandwidth(write)")])
    runs = [record([Phase(rate=level), Phase("read", "read", rate=level * 1.05)]) for level in LEVELS]
    part = evaluate_claims(experiment, make_runs(experiment, {"base": runs}))[0].contexts[0].comparisons[0]
    assert part.outcome is HOLDS
    assert part.threshold == pytest.approx(1.04)


def test_claim_must_hold_in_each_cell_of_open_axes() -> None:
    kinds = {"name": "direct", "paths": "data.io.direct", "values": [False, True]}
    experiment = build_experiment(
        plan={**VOLUME, "phases": [{"id": "write", "op": "write"}]},
        sweep=[TRANSFERS, kinds],
        expect=[make_claim('bandwidth(write, transfer="4MiB") / bandwidth(write, transfer="1MiB") >= 1')],
    )
    good = {cell.id: [record([Phase(rate=rate * (2 if "4MiB" in cell.id else 1))])
                      for rate in (1e6 * np.array(SCATTER))]
            for cell in experiment.cells}  # fmt: skip
    verdict = evaluate_claims(experiment, make_runs(experiment, good))[0]
    assert verdict.outcome is HOLDS
    assert [cell.context for cell in verdict.contexts] == [{"direct": False}, {"direct": True}]
    bad = {**good, "transfer=4MiB,direct=True": good["transfer=1MiB,direct=True"][:1] * 6}
    bad["transfer=1MiB,direct=True"] = [record([Phase(rate=3e6)])] * 6
    assert [cell.outcome for cell in evaluate_claims(experiment, make_runs(experiment, bad))[0].contexts] == [
        HOLDS,
        FAILS,
    ]
    assert evaluate_claims(experiment, make_runs(experiment, bad))[0].outcome is FAILS


def test_claim_on_two_plans_finds_cells_of_each() -> None:
    plan = {**VOLUME, "phases": [{"id": "write", "op": "write"}]}
    plans = [{"id": "one", "plan": plan}, {"id": "other", "plan": plan}]
    experiment = build_experiment(
        plans=plans, expect=[make_claim("bandwidth(write, plan=one) / bandwidth(write, plan=other) >= 2")]
    )
    runs = {"plan=one": [record([Phase(rate=3e6)])] * 6, "plan=other": [record([Phase(rate=1e6)])] * 6}
    assert evaluate_claims(experiment, make_runs(experiment, runs))[0].outcome is HOLDS


def test_refused_cell_gives_reason_of_claim() -> None:
    experiment = build_experiment(expect=[make_claim("bandwidth(write) >= 1")])
    verdict = evaluate_claims(
        experiment, make_runs(experiment, {}, refusals_by_cell={"base": "no space: it needs 3 TB"})
    )[0]
    assert (verdict.outcome, verdict.reason) == (NOT, "no space: it needs 3 TB")


def test_failed_runs_are_ignored_and_counted() -> None:
    experiment = build_experiment(expect=[make_claim("bandwidth(write) >= 1")])
    runs = [record([Phase()])] * 6 + [record([Phase(rate=1e-9)], status="failed")]
    source = make_runs(experiment, {"base": runs})
    assert evaluate_claims(experiment, source)[0].outcome is HOLDS
    assert source.count_unfinished_runs() == 1


def test_levels_needs_and_profiles_give_reasons() -> None:
    experiment = build_experiment(
        expect=[
            {**make_claim("bandwidth(write) >= 1", level="simulated"), "id": "S"},
            {**make_claim("bandwidth(write) >= 1", needs=["lustre"]), "id": "N"},
            {**make_claim("bandwidth(write) >= 1", profiles=["published"]), "id": "P"},
        ],
        profiles={"published": {}},
    )
    verdicts = evaluate_claims(
        experiment,
        make_runs(experiment, {"base": [record([Phase()])] * 6}),
        unmet_requirements={"lustre": "the file system is xfs"},
    )
    assert [verdict.outcome for verdict in verdicts] == [NOT] * 3
    assert [verdict.reason for verdict in verdicts] == [
        "it is tested only with `sonde simulate`",
        "the file system is xfs",
        "it is evaluated only in the profile published",
    ]


def test_units_and_peaks_come_from_the_system_file() -> None:
    edison = read_system("systems/edison.toml")
    experiment = build_experiment(
        storage={"system": "edison", "file_systems": ["fs1", "fs3"]},
        expect=[
            make_claim(
                "bandwidth_per_unit(write, file_system=fs3) >= 0.99 * bandwidth_per_unit(write, file_system=fs1)"
            ),
            {**make_claim("0.74 <= share_of_peak(write) <= 0.76"), "id": "C2"},
            {**make_claim("0.99 <= efficiency(bandwidth(write), over=file_system, at=fs3) <= 1.01"), "id": "C3"},
        ],
    )
    # 3 GB/s for each of 12 and of 18 units, of 4 GB/s
    runs = {
        "file_system=fs1": [record([Phase(rate=36e9)])] * 6,
        "file_system=fs3": [record([Phase(rate=54e9)])] * 6,
    }
    assert [verdict.outcome for verdict in evaluate_claims(experiment, make_runs(experiment, runs, edison))] == [
        HOLDS
    ] * 3
    unknown = evaluate_claims(experiment, make_runs(experiment, runs))[0]
    assert unknown.outcome is NOT
    assert "--system" in unknown.reason


def test_a_command_that_failed_is_an_error_and_has_no_time() -> None:
    failed = [Phase(command=(1.0, 0.1, 0.1), command_outcome="failed")]
    assert evaluate_claim_over_six_runs("errors(write) <= 0", failed).outcome is FAILS
    assert evaluate_claim_over_six_runs("errors(write) <= 0", [Phase(command=(1.0, 0.1, 0.1))]).outcome is HOLDS
    assert evaluate_claim_over_six_runs("real_time(write) > 0", failed).outcome is NOT


def test_claim_may_begin_with_its_threshold() -> None:
    parts = (
        evaluate_claim_over_six_runs("50e6 <= bandwidth(write) <= 150e6", [Phase(rate=100e6)]).contexts[0].comparisons
    )
    assert [(part.operator, part.threshold) for part in parts] == [(">=", 50e6), ("<=", 150e6)]
    assert all(part.value is not None and part.value.value == pytest.approx(100e6) for part in parts)
