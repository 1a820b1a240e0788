# SPDX-License-Identifier: Apache-2.0
"""A diagnosis as a page: the answer, then each step with its figure, then the evidence for and against."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from sonde.charts.amount_bars import AmountBar, render_amount_bars
from sonde.charts.change_bars import ChangeRow, render_change_bars
from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import Study, StudySection
from sonde.diagnose.diagnosis import DiagnosisStopRule, RankedHypothesis, rank_hypotheses
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_text import (
    describe_answer,
    describe_candidate,
    describe_load_or_fault_probability,
    describe_measured_changes,
    describe_next_experiment,
    describe_next_steps,
    format_log_ratio_as_change,
    format_probability,
)
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.measurements import NODES

_MAX_BARS, _MAX_PARTS = 6, 12
_SLOWER_LOG_RATIO, _FASTER_LOG_RATIO = -0.1, 0.1
_EXPLAINED_HYPOTHESES = 3
_LIMIT_OF_HYPOTHESES = (
    'Causes that no hypothesis describes have one answer together: "none of the hypotheses explains it".'
)


def build_diagnosis_page(session: DiagnosisSession) -> Study:
    """The page of a diagnosis, with as many steps as it has results."""
    choice = session.choose_next(DiagnosisStopRule())  # also decides whether the answer is final
    answer = session.answer
    machine = session.model.machine
    facts = [
        ("Machine", ", ".join(text for text in (session.state.system, f"mount {machine.mount}") if text)),
        *([("Storage targets", str(len(machine.targets)))] if machine.targets else []),
        ("Hypotheses", f"{len(session.model.hypotheses)} groups"),
        ("Experiments", str(len(session.state.experiment_results))),
        ("Load or fault", describe_load_or_fault_probability(session.posterior)),
    ]
    sentences = describe_answer(answer) + describe_next_steps(session.model, answer)
    if choice.experiment is not None:
        experiment = session.model.find_experiment(choice.experiment)
        sentences.append(describe_next_experiment(experiment, choice.values[0].cost_s))
    return Study(
        title="Diagnosis",
        lead=sentences[0],
        facts=facts,
        alarms=[],
        sections=[
            StudySection("Answer", sentences[1:], [_draw_ranking(answer.ranking)]),
            *_make_step_sections(session),
            *_make_evidence_sections(session),
            StudySection("What else to know", [*session.describe_limits(), _LIMIT_OF_HYPOTHESES], []),
        ],
    )


def _make_step_sections(session: DiagnosisSession) -> list[StudySection]:
    """One section for each result: question, figure, and what was most probable afterwards."""
    sections = []
    earlier: list[ExperimentResult] = []
    for number, stored in enumerate(session.state.results, start=1):
        description = session.model.find_experiment(stored.result.experiment).description
        sentences = [
            f"{description.question} {description.title}.",
            f"Measured: {describe_measured_changes(stored.result)}.",
        ]
        parts = [_draw_result_chart(stored.result)]
        if stored.confirms:
            sentences.append("This was measured after the fix.")
        else:
            earlier.append(stored.result)
            ranking = rank_hypotheses(session.model.compute_posterior(earlier))
            probability = format_probability(ranking[0].probability)
            sentences.append(f"Most probable afterwards: {describe_candidate(ranking[0])} ({probability}).")
            parts.append(_draw_ranking(ranking))
        sections.append(StudySection(f"Step {number}: {description.id}", sentences, parts))
    return sections


def _draw_ranking(ranking: Sequence[RankedHypothesis]) -> Markup:
    rows = [
        (
            describe_candidate(item),
            [AmountBar(item.probability, None, None, "after", format_probability(item.probability))],
        )
        for item in ranking[:_MAX_BARS]
    ]
    return render_amount_bars(rows, "Probabilities of the hypotheses", [("after", "probability")])


def _draw_result_chart(result: ExperimentResult) -> Markup:
    """Changes of the rates of phases, and the parts that deviate most from their peers."""
    run = result.runs[-1]
    rows = [_make_change_row("rates against the fast time", phase, value) for phase, value in run.rates.items()]
    for (phase, kind), values in run.vectors.items():
        if "median" in kind:
            continue
        slowest = sorted(values.items(), key=lambda item: item[1])[:_MAX_PARTS]
        noun = "nodes" if kind == NODES else "targets"
        deviating = [(name, value) for name, value in slowest if value < 2 * _SLOWER_LOG_RATIO]
        rows += [_make_change_row(f"{phase}: {noun} against their peers", name, value) for name, value in deviating]
    return render_change_bars(rows, "Changes of rates")


def _make_change_row(row_group: str, row_label: str, log_ratio: float) -> ChangeRow:
    tone = "slower" if log_ratio < _SLOWER_LOG_RATIO else "faster" if log_ratio > _FASTER_LOG_RATIO else "same"
    return ChangeRow(row_group, row_label, exp(log_ratio) - 1, None, None, tone, format_log_ratio_as_change(log_ratio))


def _make_evidence_sections(session: DiagnosisSession) -> list[StudySection]:
    """Evidence for and against the first hypotheses."""
    sections = []
    for candidate in session.answer.ranking[:_EXPLAINED_HYPOTHESES]:
        rows = session.list_evidence_for_hypothesis(candidate.hypothesis.id)
        cells = [
            (row.experiment, row.measured, row.predicted, f"{row.comment} (odds × {row.factor:.3g})") for row in rows
        ]
        title = f"{describe_candidate(candidate)} ({format_probability(candidate.probability)})"
        figure = render_html_table(["Experiment", "Measured", "Predicted", "Evidence"], cells, text_columns=4)
        sections.append(StudySection(f"For and against: {title}", [], [figure]))
    return sections
