# SPDX-License-Identifier: Apache-2.0
"""The page of an IOzone grid: the classification of its numbers, IOzone's table, and the rate by file and record
size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import Study, StudySection, write_study_page
from sonde.dialects.iozone.plans import IozoneCell
from sonde.dialects.iozone.tables import TABLE_COLUMNS
from sonde.findings.assessment import Assessment, assess_phase_rate
from sonde.findings.best_numbers import STORAGE_CLASSIFICATIONS
from sonde.findings.caveats import format_caveat
from sonde.findings.classification import Classification
from sonde.model.errors import format_as_sentence
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.run import RecordedRun
from sonde.model.units import format_bytes, format_count_with_noun, format_rate

RateGrid = Mapping[IozoneCell, Mapping[str, float]]
_CLASSIFICATION_PHRASES = {
    Classification.CACHE: "from or into the page cache",
    Classification.SHORT: "over too soon to trust",
    Classification.MEMORY: "of files that live in memory",
    Classification.SYNTHETIC: "of a backend that moves no data",
    Classification.SIMULATED: "of a simulated machine",
    Classification.UNKNOWN: "of which it is not known whether a cache served them",
    Classification.INVALID: "not valid",
    Classification.FAILED: "of phases that failed",
}
# Shades of a surface: shares of its largest rate.
_SHADE_THRESHOLDS = (0.125, 0.25, 0.5, 0.75)
# One unit for all fields of a surface, so that the widest grid of IOzone's automatic mode fits a page.
_BYTES_PER_S_BY_UNIT = {"GB/s": 1e9, "MB/s": 1e6, "kB/s": 1e3}


@dataclass(frozen=True)
class GridNumber:
    """One number of the grid: bytes per second of a process, with its assessment."""

    rate: float
    assessment: Assessment

    @property
    def is_storage_number(self) -> bool:
        """Whether the number is a storage number."""
        return self.assessment.classification in STORAGE_CLASSIFICATIONS


NumbersByCellAndTest = Mapping[tuple[IozoneCell, str], GridNumber]


def write_grid_page(
    grid: RateGrid,
    runs: Mapping[IozoneCell, RecordedRun],
    page_title: str,
    fact_rows: Sequence[tuple[str, str]],
    page_file: Path,
) -> Path | None:
    """Writes the page when there is a grid to draw: more than one cell. Rates are bytes per second, `runs` are their
    runs, and `fact_rows` have location, machine and time."""
    if len(grid) < 2:
        return None
    numbers = dict(_iterate_numbers(grid, runs))
    sizes = sorted({cell.file for cell in grid})
    lead = (
        f"Files from {_format_size(sizes[0])} to {_format_size(sizes[-1])}, {len(grid)} pairs of file and record size."
    )
    surfaces = [
        _make_surface_section(name, numbers_of_test)
        for name, _ in TABLE_COLUMNS
        if (numbers_of_test := {c: n for (c, test), n in numbers.items() if test == name})
    ]
    study = Study(
        title="IOzone: file size × record size",
        lead=lead,
        facts=[*fact_rows, ("Command", page_title)],
        alarms=_list_caveat_sentences([number.assessment for number in numbers.values()]),
        sections=[_make_table_section(grid, numbers), *surfaces],
    )
    return write_study_page(study, page_file)


def list_caveat_sentences_of_runs(runs: Mapping[IozoneCell, RecordedRun]) -> list[str]:
    """Sentences about numbers of these runs that are not storage numbers, and their caveats; empty if there are
    none."""
    return _list_caveat_sentences(
        [assess_phase_rate(run, phase) for run in runs.values() for phase in run.phases if phase.begin.measured]
    )


def _iterate_numbers(
    grid: RateGrid, runs: Mapping[IozoneCell, RecordedRun]
) -> Iterator[tuple[tuple[IozoneCell, str], GridNumber]]:
    """(cell, column of the table) -> its number."""
    for cell, rates in grid.items():
        phases = {phase.id: phase for phase in runs[cell].phases}
        for name, filled_by in TABLE_COLUMNS:
            for phase in filled_by:
                if phase in rates and phase in phases:
                    yield (cell, name), GridNumber(rates[phase], assess_phase_rate(runs[cell], phases[phase]))


def _list_caveat_sentences(assessments: Sequence[Assessment]) -> list[str]:
    """Sentences with the caveats of all numbers, for the head of the page."""
    sentences = []
    classifications = Counter(
        item.classification for item in assessments if item.classification not in STORAGE_CLASSIFICATIONS
    )
    if classifications:
        total = sum(classifications.values())
        parts = [
            f"{count:,} {_CLASSIFICATION_PHRASES[classification]}"
            for classification, count in classifications.most_common()
        ]
        begin = (
            "None of these numbers is"
            if total == len(assessments)
            else f"{total:,} of {format_count_with_noun(len(assessments), 'number')} are not"
        )
        sentences.append(f"{begin} of storage: {', '.join(parts)}.")
    caveats = {caveat.id: caveat for item in assessments for caveat in item.caveats}
    for name, caveat in caveats.items():
        count = sum(any(item.id == name for item in assessment.caveats) for assessment in assessments)
        sentences.append(f"{format_as_sentence(format_caveat(caveat))} ({format_count_with_noun(count, 'number')}.)")
    return sentences


def _make_table_section(grid: RateGrid, numbers: NumbersByCellAndTest) -> StudySection:
    """IOzone's own table, KiB/s."""
    tests = [name for name, _ in TABLE_COLUMNS if any(test == name for _, test in numbers)]
    rows = [
        [cell.file, cell.record, *(_format_kib_per_s(numbers.get((cell, test))) for test in tests)]
        for cell in sorted(grid, key=lambda cell: (cell.file, cell.record))
    ]
    caption = "KiB a second of one process. ° not a number of storage."
    return StudySection(
        "All tests", [caption], [render_html_table(["kB", "reclen", *tests], rows, "Rates, KiB/s", text_columns=0)]
    )


def _format_kib_per_s(number: GridNumber | None) -> str:
    return "" if number is None else f"{number.rate / 1024:,.0f}{'' if number.is_storage_number else '°'}"


def _make_surface_section(test_name: str, numbers_by_cell: Mapping[IozoneCell, GridNumber]) -> StudySection:
    """A field for each pair of file and record size, darker where it is faster."""
    files, records = (sorted({getattr(cell, member) for cell in numbers_by_cell}) for member in ("file", "record"))
    fields = {(cell.file, cell.record): number for cell, number in numbers_by_cell.items()}
    largest = max(number.rate for number in numbers_by_cell.values())
    unit = next((item for item in _BYTES_PER_S_BY_UNIT if largest >= _BYTES_PER_S_BY_UNIT[item]), "B/s")
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_format_size(record)) for record in records)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            _format_size(size),
            Markup("").join(_make_surface_field(fields.get((size, record)), largest, unit) for record in records),
        )
        for size in files
    )
    figure = Markup(
        '<figure class="chart" data-chart="surface"><div class="scroll" tabindex="0" role="region" aria-label="{}">'
        '<table class="matrix surface"><thead><tr><td>file \\ record</td>{}</tr></thead><tbody>{}</tbody></table></div>'
        "<figcaption>{}; darker is faster, as a share of the fastest ({}). ° not a number of storage.</figcaption>"
        "</figure>"
    ).format(f"{test_name}: rate over file and record size", head, body, unit, format_rate(largest))
    sentences = [
        replace_no_break_spaces(sentence)
        for sentence in dict.fromkeys(
            item.assessment.classification_text for item in numbers_by_cell.values() if item.is_storage_number
        )
    ]
    return StudySection(test_name[:1].upper() + test_name[1:], sentences[:1] if len(sentences) == 1 else [], [figure])


def _make_surface_field(number: GridNumber | None, largest_rate: float, rate_unit: str) -> Markup:
    if number is None:
        return Markup('<td class="none">·</td>')
    shade = sum(number.rate >= share * largest_rate for share in _SHADE_THRESHOLDS)
    text = f"{number.rate / _BYTES_PER_S_BY_UNIT.get(rate_unit, 1.0):.3g}{'' if number.is_storage_number else '°'}"
    return Markup('<td class="{}" title="{}">{}</td>').format(
        f"up{shade}" if shade else "plain", format_rate(number.rate), text
    )


def _format_size(size_kib: int) -> str:
    return format_bytes(size_kib * 1024)
