# SPDX-License-Identifier: Apache-2.0
"""What IOzone's users look for as a page: what the numbers are about, the classic table, and for each test the surface
of the rate over file size x record size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.charts.study import Section, Study, write_study
from sonde.dialects.iozone.plans import Cell
from sonde.dialects.iozone.tables import COLUMNS
from sonde.findings.best import OF_STORAGE
from sonde.findings.judgement import Judgement, doubt_words, judgement_of
from sonde.findings.standing import Standing
from sonde.model.errors import sentence
from sonde.model.quantities import plain
from sonde.model.run import Run
from sonde.model.units import counted, format_bytes, format_rate

Grid = Mapping[Cell, Mapping[str, float]]
_ABOUT = {
    Standing.CACHE: "from or into the page cache",
    Standing.SHORT: "over too soon to trust",
    Standing.MEMORY: "of files that live in memory",
    Standing.SYNTHETIC: "of a backend that moves no data",
    Standing.UNKNOWN: "of which it is not known whether a cache served them",
    Standing.INVALID: "not valid",
    Standing.FAILED: "of phases that failed",
}
# Shades of a surface: shares of its largest rate.
_SHADES = (0.125, 0.25, 0.5, 0.75)
# One unit for all fields of a surface, so that the widest grid of IOzone's automatic mode fits a page.
_UNITS = {"GB/s": 1e9, "MB/s": 1e6, "kB/s": 1e3}


@dataclass(frozen=True)
class Number:
    """One number of the grid: bytes per second of a process, and what it is worth."""

    rate: float
    judgement: Judgement

    @property
    def stored(self) -> bool:
        """Whether it is one of storage."""
        return self.judgement.standing in OF_STORAGE


Numbers = Mapping[tuple[Cell, str], Number]


def write_grid(
    grid: Grid, runs: Mapping[Cell, Run], title: str, facts: Sequence[tuple[str, str]], out: Path
) -> Path | None:
    """Writes the page when there is a grid to draw: more than one cell. Rates are bytes per second, `runs` are those
    that they come from, `facts` say where, on what and when."""
    if len(grid) < 2:
        return None
    numbers = dict(_numbers(grid, runs))
    sizes = sorted({cell.file for cell in grid})
    lead = f"Files from {_kib(sizes[0])} to {_kib(sizes[-1])}, {len(grid)} pairs of file and record size."
    surfaces = [
        _surface(name, own)
        for name, _ in COLUMNS
        if (own := {c: n for (c, test), n in numbers.items() if test == name})
    ]
    study = Study(
        title="IOzone: file size × record size",
        lead=lead,
        facts=[*facts, ("Command", title)],
        alarms=_alarms([number.judgement for number in numbers.values()]),
        sections=[_classic(grid, numbers), *surfaces],
    )
    return write_study(study, out)


def cautions(runs: Mapping[Cell, Run]) -> list[str]:
    """Sentences on what the numbers of these runs are not, and what speaks against them; none where nothing does."""
    return _alarms([judgement_of(run, phase) for run in runs.values() for phase in run.phases if phase.begin.measured])


def _numbers(grid: Grid, runs: Mapping[Cell, Run]) -> Iterator[tuple[tuple[Cell, str], Number]]:
    """(cell, column of the table) -> its number."""
    for cell, rates in grid.items():
        phases = {phase.id: phase for phase in runs[cell].phases}
        for name, filled_by in COLUMNS:
            for phase in filled_by:
                if phase in rates and phase in phases:
                    yield (cell, name), Number(rates[phase], judgement_of(runs[cell], phases[phase]))


def _alarms(judgements: Sequence[Judgement]) -> list[str]:
    """What must be known before any of the numbers is looked at, from the judgement of each."""
    found = []
    standings = Counter(one.standing for one in judgements if one.standing not in OF_STORAGE)
    if standings:
        of = sum(standings.values())
        parts = [f"{count:,} {_ABOUT[standing]}" for standing, count in standings.most_common()]
        begin = (
            "None of these numbers is"
            if of == len(judgements)
            else f"{of:,} of {counted(len(judgements), 'number')} are not"
        )
        found.append(f"{begin} of storage: {', '.join(parts)}.")
    doubts = {doubt.id: doubt for one in judgements for doubt in one.doubts}
    for name, doubt in doubts.items():
        count = sum(any(one.id == name for one in judgement.doubts) for judgement in judgements)
        found.append(f"{sentence(doubt_words(doubt))} ({counted(count, 'number')}.)")
    return found


def _classic(grid: Grid, numbers: Numbers) -> Section:
    """IOzone's own table, KiB/s."""
    tests = [name for name, _ in COLUMNS if any(test == name for _, test in numbers)]
    rows = [
        [cell.file, cell.record, *(_kib_per_s(numbers.get((cell, test))) for test in tests)]
        for cell in sorted(grid, key=lambda one: (one.file, one.record))
    ]
    words = "KiB a second of one process. ° not a number of storage."
    return Section("All tests", [words], [table(["kB", "reclen", *tests], rows, "Rates, KiB/s", text_columns=0)])


def _kib_per_s(number: Number | None) -> str:
    return "" if number is None else f"{number.rate / 1024:,.0f}{'' if number.stored else '°'}"


def _surface(name: str, numbers: Mapping[Cell, Number]) -> Section:
    """A field for each pair of file and record size, darker where it is faster."""
    files, records = (sorted({getattr(cell, what) for cell in numbers}) for what in ("file", "record"))
    fields = {(cell.file, cell.record): number for cell, number in numbers.items()}
    largest = max(number.rate for number in numbers.values())
    unit = next((one for one in _UNITS if largest >= _UNITS[one]), "B/s")
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_kib(record)) for record in records)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            _kib(size), Markup("").join(_field(fields.get((size, record)), largest, unit) for record in records)
        )
        for size in files
    )
    drawn = Markup(
        '<figure class="chart" data-chart="surface"><div class="scroll" tabindex="0" role="region" aria-label="{}">'
        '<table class="matrix surface"><thead><tr><td>file \\ record</td>{}</tr></thead><tbody>{}</tbody></table></div>'
        "<figcaption>{}; darker is faster, as a share of the fastest ({}). ° not a number of storage.</figcaption>"
        "</figure>"
    ).format(f"{name}: rate over file and record size", head, body, unit, format_rate(largest))
    said = [plain(words) for words in dict.fromkeys(one.judgement.sentence for one in numbers.values() if one.stored)]
    return Section(name[:1].upper() + name[1:], said[:1] if len(said) == 1 else [], [drawn])


def _field(number: Number | None, largest: float, unit: str) -> Markup:
    if number is None:
        return Markup('<td class="none">·</td>')
    shade = sum(number.rate >= share * largest for share in _SHADES)
    words = f"{number.rate / _UNITS.get(unit, 1.0):.3g}{'' if number.stored else '°'}"
    return Markup('<td class="{}" title="{}">{}</td>').format(
        f"up{shade}" if shade else "plain", format_rate(number.rate), words
    )


def _kib(size: int) -> str:
    return format_bytes(size * 1024)
