# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment: outcomes first, then its figures and tables, then what was run and assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.charts.study import Section, Study, write_study
from sonde.experiments.doubts import run_doubts
from sonde.experiments.judging.judge import Judgement, as_document, judge
from sonde.experiments.judging.measured import MeasuredRun, MeasuredRuns
from sonde.experiments.judging.needs import lacking
from sonde.experiments.page.beside import TITLE as BESIDE
from sonde.experiments.page.beside import beside_parts
from sonde.experiments.page.export import result_table
from sonde.experiments.page.figures import figure_parts
from sonde.experiments.page.tables import everything, table_parts
from sonde.experiments.page.words import counts, sentence
from sonde.experiments.results import Results
from sonde.model.experiment.description import Figure, Table
from sonde.model.experiment.outcomes import Outcome
from sonde.model.quantities import plain, plural
from sonde.model.shipped import system_source
from sonde.model.system import read_system
from sonde.model.system.system import System
from sonde.store.tableformat import write_table

_CSS = {Outcome.HOLDS: "holds", Outcome.FAILS: "fails", Outcome.INCONCLUSIVE: "open", Outcome.NOT_APPLICABLE: "absent"}
_MARK = {Outcome.HOLDS: "✓ ", Outcome.FAILS: "✕ ", Outcome.INCONCLUSIVE: "? ", Outcome.NOT_APPLICABLE: "– "}


def judged_results(
    results: Results, system: System | None = None, lacks: Mapping[str, str] | None = None, settled: bool = False
) -> tuple[MeasuredRuns, list[Judgement]]:
    """The runs of an experiment as a source of numbers, and what came of its expectations. `settled`: another run would
    say the same, as of a model without noise."""
    found = [MeasuredRun(one.cell, f"{one.folder.name}", one.folder) for one in results.runs if not one.warm_up]
    runs = MeasuredRuns(results.experiment, found, {**results.failed, **results.refused}, system, settled=settled)
    levels = ("simulated", "measured") if results.simulated else ("measured",)
    return runs, judge(results.experiment, runs, levels, lacks, results.profile)


def write_experiment(
    results: Results, page: Path, system: System | None = None, formats: Sequence[str] = ()
) -> tuple[list[Path], list[dict[str, Any]]]:
    """Writes the page, and all numbers beside it in each of `formats` (csv, json, parquet).

    Returns these files, and the outcomes for machines. Without `system`, the one that the experiment names is asked for
    units and peaks only when its results are simulated: on other storage its numbers say nothing. Raises UserError.
    """
    named = results.experiment.file.storage
    if system is None and results.simulated and named is not None and named.system:
        system = read_system(system_source(named.system))
    runs, judged = judged_results(results, system, lacking(results, system))
    write_study(experiment_study(results, runs, judged), page)
    tables = [page.with_suffix(f".{one}") for one in formats]
    if tables:
        found = result_table(runs)
        for path in tables:
            write_table(found, path)
    return tables, as_document(judged)


def experiment_study(results: Results, runs: MeasuredRuns, judged: Sequence[Judgement]) -> Study:
    """The page."""
    file = results.experiment.file
    sections = [_outcomes(judged)]
    sections += [_section(one, "Figure", figure_parts, runs) for one in file.figures]
    sections += [_section(one, "Table", table_parts, runs) for one in file.tables]
    told, beside = beside_parts(runs)
    if told:
        sections.append(Section(BESIDE, told, beside))
    words, parts = everything(runs)
    sections.append(Section("All cells", words, parts))
    sections += _not_run(results)
    if file.notes:
        notes = Markup("").join(Markup("<li>{}</li>").format(one) for one in file.notes)
        sections.append(Section("What was assumed", [], [Markup('<ul class="remarks">{}</ul>').format(notes)]))
    return Study(
        title=results.experiment.title,
        lead=_lead(results, runs, judged),
        facts=_facts(results, runs),
        alarms=[*_alarms(results, judged), *run_doubts(results)],
        sections=sections,
    )


def _lead(results: Results, runs: MeasuredRuns, judged: Sequence[Judgement]) -> str:
    if not judged:
        return "Nothing is expected of this experiment; here is what it found."
    left = runs.not_done()
    words = f"Of {plain(plural(len(judged), 'expectation'))} {counts(judged)}."
    return words + (f" {plain(plural(left, 'run'))} did not come to an end and are left out." if left else "")


def _facts(results: Results, runs: MeasuredRuns) -> list[tuple[str, str]]:
    file = results.experiment.file
    cells = len(results.experiment.cells)
    facts = [
        ("Group", results.group),
        ("Size", results.profile or "as the file says"),
        ("Runs", plain(f"{plural(runs.count(), 'run')} of {plural(cells, 'cell')}")),
        ("On", ", ".join(dict.fromkeys(results.directories.values())) or "not known"),
        ("Source", ", ".join(file.source) + (f" ({file.status})" if file.status else "")),
    ]
    if results.simulated:
        facts.append(("Machine", "simulated: no storage was measured"))
    return [(name, words) for name, words in facts if words.strip()]


def _alarms(results: Results, judged: Sequence[Judgement]) -> list[str]:
    failed = [one.expectation.id for one in judged if one.outcome is Outcome.FAILS]
    told = [f"Not as expected: {', '.join(failed)}."] if failed else []
    if results.failed:
        told.append(f"Runs of {len(results.failed)} cells failed: {next(iter(results.failed.values()))}")
    if results.simulated:
        told.append("These numbers are those of a model, not of storage.")
    return told


def _outcomes(judged: Sequence[Judgement]) -> Section:
    rows = Markup("").join(
        Markup('<tr><td class="{}">{}{}</td><td>{}</td><td>{}<code>{}</code>{}{}</td></tr>').format(
            _CSS[one.outcome],
            _MARK[one.outcome],
            str(one.outcome),
            one.expectation.id,
            sentence(one),
            one.expectation.claim,
            _why("Published: ", one.expectation.published),
            _why("Because ", one.expectation.why),
        )
        for one in judged
    )
    body = Markup(
        '<table class="claims"><colgroup><col class="o"><col class="i"><col></colgroup>'
        "<thead><tr><th>Outcome</th><th>Claim</th><th>What was found</th></tr></thead><tbody>{}</tbody></table>"
    ).format(rows)
    words = [
        "What is compared is the interval of the median, not the median: value [lowest, highest] with 95 % confidence."
    ]
    return Section("What was expected", words if judged else ["Nothing."], [body] if judged else [])


def _why(head: str, words: str) -> Markup:
    return Markup('<span class="why">{}{}.</span>').format(head, words.rstrip(".")) if words else Markup("")


def _section(
    one: Figure | Table, kind: str, parts_of: Callable[..., tuple[list[str], list[Markup]]], runs: MeasuredRuns
) -> Section:
    words, parts = parts_of(one, runs)
    source = [f"In the form of: {one.source}."] if one.source else []
    return Section(one.title or f"{kind} {one.id}", [*source, *words], parts)


def _not_run(results: Results) -> list[Section]:
    rows = [(cell, reason) for cell, reason in {**results.failed, **results.refused}.items()]
    if not rows:
        return []
    return [Section("Cells without a result", [], [table(["Cell", "Why"], rows, "", text_columns=2)])]
