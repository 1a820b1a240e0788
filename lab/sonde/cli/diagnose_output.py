# SPDX-License-Identifier: Apache-2.0
"""Prints states, answers and choices of ``sonde diagnose``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sonde.cli.run_selection import open_catalog_with_progress, open_progress_bar
from sonde.diagnose.description import CauseFile, DiagnosisExperiment
from sonde.diagnose.diagnosis import DiagnosisStopRule
from sonde.diagnose.diagnosis_session import DiagnosisSession, NextChoice
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.diagnosis_text import (
    describe_answer,
    describe_candidate,
    describe_load_or_fault_probability,
    describe_next_experiment,
    describe_next_steps,
    describe_second_cause,
    format_duration,
    format_probability,
)
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_OK, MachineError, UserError
from sonde.model.run import read_recorded_run_folder
from sonde.model.units import format_count_with_noun
from sonde.store.archive import Archive
from sonde.store.events import read_archive_events
from sonde.telemetry.phase_telemetry import find_run_interval
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

_MAX_LISTED_HYPOTHESES = 8
_CACHE_FOLDER = "diagnose"


def find_run_folder(archive: Archive, run_reference: str) -> Path:
    """The folder of the run of that name. Raises UserError."""
    folders = archive.find_run_folders(run_reference)
    if len(folders) != 1:
        raise UserError(
            f'"{run_reference}" names {len(folders)} runs of {archive.root}; give the id of one, as sonde list '
            "prints it."
        )
    return folders[0]


def add_evidence(
    session: DiagnosisSession,
    archive: Archive,
    run_name: str,
    reference_name: str,
    logs: Sequence[Path],
    has_joint_changes: bool,
) -> list[str]:
    """Adds what needs no experiment, and returns it in sentences. Raises UserError."""
    sentences = []
    if run_name:
        run, reference = find_run_folder(archive, run_name), find_run_folder(archive, reference_name)
        sentences += session.add_archive_runs(run, reference)
        events = read_archive_events(archive.root)
        if events or has_joint_changes:  # whole records are read for these times
            since, until = (find_run_interval(read_recorded_run_folder(folder))[1] for folder in (reference, run))
        if events:
            sentences += session.add_events(events, since, until)
        if has_joint_changes:
            # The import of pyarrow takes longer than most commands.
            from sonde.trends.archive_survey import SurveyRequest, read_survey

            progress = partial(open_progress_bar, "watching histories")
            survey = read_survey(open_catalog_with_progress(archive.root), SurveyRequest(), progress)
            sentences.append(session.add_joint_change(survey, since, until))
    if logs:
        sentences.append(session.add_logs(logs))
    return sentences


def open_session_with_progress(state: DiagnosisState, archive: Archive) -> DiagnosisSession:
    """Opens a diagnosis with progress on a terminal; simulations are cached next to the archive."""
    display = get_messages_console()
    if not display.is_terminal:
        return DiagnosisSession.open_session(state, archive.root / _CACHE_FOLDER)
    with display.status("Simulating what each hypothesis predicts") as status:
        return DiagnosisSession.open_session(
            state,
            archive.root / _CACHE_FOLDER,
            lambda done, total: status.update(f"Simulating what each hypothesis predicts: {done} of {total}"),
        )


def print_diagnosis_state(session: DiagnosisSession, as_json: bool) -> int:
    """Prints the answer with the experiment that follows, or its document."""
    choice = session.choose_next(DiagnosisStopRule())  # also decides whether the answer is final
    if as_json:
        print_json(session.to_json() | {"next": choice.experiment})
        return EXIT_OK
    print_diagnosis_answer(session)
    if choice.experiment is not None:
        text = describe_next_experiment(session.model.find_experiment(choice.experiment), choice.values[0].cost_s)
        get_results_console().print(text, soft_wrap=True, markup=False)
    return EXIT_OK


def print_second_cause_search(session: DiagnosisSession, as_json: bool) -> int:
    """Prints which two causes together explain the results best, and which experiment says most about the second."""
    causes, experiment = session.find_second_cause()
    if as_json:
        print_json(causes.to_json() | {"next": experiment})
        return EXIT_OK
    out = get_results_console()
    for sentence in describe_second_cause(causes):
        out.print(sentence, soft_wrap=True, markup=False)
    if experiment is not None:
        title = session.model.find_experiment(experiment).description.title
        out.print(f"Next, for the second cause: {title} ({experiment}).", soft_wrap=True, markup=False)
    return EXIT_OK


def print_causes_and_experiments(
    causes: Sequence[CauseFile], experiments: Sequence[DiagnosisExperiment], as_json: bool
) -> None:
    """Prints causes outside the model, and experiments."""
    if as_json:
        document = {
            "causes": [{"id": item.id, "title": item.title, "source": item.source} for item in causes],
            "experiments": [{"id": item.id, "title": item.title, "question": item.question} for item in experiments],
        }
        print_json(document)
        return
    table = make_plain_table()
    table.add_column("cause or experiment")
    table.add_column("meaning")
    for cause in causes:
        table.add_row(cause.id, cause.title)
    for experiment in experiments:
        table.add_row(experiment.id, experiment.title)
    get_results_console().print(table)


def print_diagnosis_answer(session: DiagnosisSession) -> None:
    """Prints the answer, the ranking and what would change it."""
    answer = session.answer
    out = get_results_console()
    for sentence in describe_answer(answer):
        out.print(sentence, soft_wrap=True, markup=False)
    out.print(describe_load_or_fault_probability(session.posterior), soft_wrap=True, markup=False)
    table = make_plain_table()
    for name in ("probability", "hypothesis", "name"):
        table.add_column(name)
    for candidate in answer.ranking[:_MAX_LISTED_HYPOTHESES]:
        table.add_row(format_probability(candidate.probability), describe_candidate(candidate), candidate.hypothesis.id)
    out.print(table)
    for sentence in (*describe_next_steps(session.model, answer), *session.describe_limits()):
        out.print(sentence, soft_wrap=True, markup=False)


def print_next_experiment(session: DiagnosisSession, choice: NextChoice, state_file: Path) -> None:
    """Prints the next experiment, and how to do it and enter its result."""
    out = get_results_console()
    if choice.experiment is None:
        print_diagnosis_answer(session)
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
    table = make_plain_table()
    for name in ("experiment", "bits", "cost"):
        table.add_column(name)
    for item in choice.values[:_MAX_LISTED_HYPOTHESES]:
        table.add_row(item.experiment, f"{item.bits:.2f}", format_duration(item.cost_s))
    out.print(table)


def write_experiment_plan(session: DiagnosisSession, choice: NextChoice, plan_file: Path) -> None:
    """Writes the plan of the next experiment. Raises UserError if it has none, or MachineError."""
    if choice.experiment is None:
        raise UserError(f"No experiment follows: {choice.reason}.")
    scaled_experiment = session.model.find_experiment(choice.experiment)
    if scaled_experiment.description.is_contrast:
        how = scaled_experiment.description.how
        raise UserError(f"The experiment {scaled_experiment.id} has no plan: a person does it. {how}.")
    try:
        write_file(plan_file, scaled_experiment.make_plan(session.mount_path).to_json())
    except OSError as error:
        raise MachineError(f"{plan_file} cannot be written: {error.strerror}.") from None


def print_evidence_for_hypothesis(session: DiagnosisSession, hypothesis_name: str, as_json: bool) -> int:
    """Prints the evidence for and against one hypothesis."""
    rows = session.list_evidence_for_hypothesis(hypothesis_name)
    candidate = session.find_candidate(hypothesis_name)
    experiments = format_count_with_noun(len(session.state.experiment_results), "experiment")
    sentence = f"{describe_candidate(candidate)}: {format_probability(candidate.probability)} after {experiments}."
    if as_json:
        evidence = [vars(row) | {"comment": row.comment} for row in rows]
        document = {"hypothesis": hypothesis_name, "sentence": sentence, "probability": candidate.probability}
        print_json(document | {"evidence": evidence})
        return EXIT_OK
    out = get_results_console()
    out.print(sentence, soft_wrap=True, markup=False)
    table = make_plain_table()
    for column in ("experiment", "measured", "predicted", "evidence"):
        table.add_column(column)
    for row in rows:
        table.add_row(row.experiment, row.measured, row.predicted, f"{row.comment} (odds × {row.factor:.3g})")
    out.print(table)
    return EXIT_OK
