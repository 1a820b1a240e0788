# SPDX-License-Identifier: Apache-2.0
"""What ``sonde diagnose`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sonde.diagnose.diagnosis_session import DiagnosisSession, NextChoice
from sonde.diagnose.diagnosis_text import (
    EvidenceRow,
    describe_advice,
    describe_answer,
    describe_triage,
    describe_what_would_change,
    format_duration,
    format_probability,
    name_candidate,
)
from sonde.model.units import counted
from sonde.terminal.screen import plain_table, results

_MOST_ROWS = 8


def print_answer(session: DiagnosisSession) -> None:
    """Prints the answer, the ranking and what would change it."""
    answer = session.answer
    out = results()
    for sentence in describe_answer(answer):
        out.print(sentence, soft_wrap=True, markup=False)
    out.print(describe_triage(session.posterior), soft_wrap=True, markup=False)
    table = plain_table()
    for name in ("probability", "hypothesis", "name"):
        table.add_column(name)
    for candidate in answer.ranking[:_MOST_ROWS]:
        table.add_row(format_probability(candidate.probability), name_candidate(candidate), candidate.hypothesis.id)
    out.print(table)
    advice = describe_advice(answer.first) if answer.status == "decided" else ""
    for sentence in (advice, describe_what_would_change(session.model, answer), *session.describe_limits()):
        if sentence:
            out.print(sentence, soft_wrap=True, markup=False)


def print_next(session: DiagnosisSession, choice: NextChoice, state_file: Path) -> None:
    """Prints the next experiment, and how to do it and enter its result."""
    out = results()
    if choice.experiment is None:
        print_answer(session)
        return
    description = session.model.find_experiment(choice.experiment).description
    out.print(f"Next: {description.title} ({choice.experiment}).", soft_wrap=True, markup=False)
    out.print(f"Question: {description.question}", soft_wrap=True, markup=False)
    out.print(f"How: {description.how}.", soft_wrap=True, markup=False)
    value = choice.values[0]
    needs = ", ".join(description.cost.needs) if description.cost else ""
    out.print(
        f"It is expected to give {value.bits:.2f} bits for a cost of {format_duration(value.cost_s)}"
        f"{f'; it needs {needs}' if needs else ''}.",
        soft_wrap=True,
        markup=False,
    )
    phases = " ".join(f"{phase.id}=CHANGE" for phase in description.phases)
    out.print(f"Then: sonde diagnose answer {state_file} {choice.experiment} {phases}", soft_wrap=True, markup=False)
    table = plain_table()
    for name in ("experiment", "bits", "cost"):
        table.add_column(name)
    for item in choice.values[:_MOST_ROWS]:
        table.add_row(item.experiment, f"{item.bits:.2f}", format_duration(item.cost_s))
    out.print(table)


def print_explanation(session: DiagnosisSession, name: str, rows: Sequence[EvidenceRow]) -> None:
    """Prints the evidence for and against one hypothesis."""
    out = results()
    candidate = session.find_candidate(name)
    probability = format_probability(candidate.probability)
    out.print(f"{name_candidate(candidate)}: {probability} after {counted(len(rows), 'experiment')}.", soft_wrap=True)
    table = plain_table()
    for column in ("experiment", "measured", "predicted", "evidence"):
        table.add_column(column)
    for row in rows:
        table.add_row(row.experiment, row.measured, row.predicted, f"{row.comment} (odds × {row.factor:.3g})")
    out.print(table)
