# SPDX-License-Identifier: Apache-2.0
"""The page of one job: expected gains, bytes over time, ranks × time, sizes of the calls, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sonde.advise.advice import JobAdvice
from sonde.advise.advice_text import (
    describe_gain,
    describe_slow_storage_targets,
    list_job_facts,
    split_useful_and_negligible_advice,
)
from sonde.advise.gains import GainEstimate
from sonde.advise.job_io import FileIo, IoTimeline, JobIo
from sonde.advise.settings import ReadySetting
from sonde.advise.slow_targets import SlowTargetResult
from sonde.charts.amount_bars import AmountBar, render_amount_bars
from sonde.charts.heat_map import HeatMap, build_time_labels, render_heat_map
from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import Study, StudySection, write_study_page
from sonde.charts.time_chart import TimeChartLine, build_time_chart
from sonde.model.trace import SIZE_CLASSES
from sonde.model.units import format_bytes, format_count_with_noun, format_seconds

_MAX_LISTED_FILES = 20


def write_job_page(job_advice: JobAdvice, slow_target_result: SlowTargetResult, page_file: Path) -> Path:
    """Writes the page. Raises ReportError when it cannot be written."""
    job = job_advice.job
    study = Study(
        title=f"I/O of {job.program.split()[0] if job.program else job.source}",
        lead="Gains are estimates: the same bytes in large sequential transfers of this storage against the time that"
        " the log reports.",
        facts=list_job_facts(job_advice),
        alarms=[*job.missing, *(target.describe_in_sentence() for target in slow_target_result.slow)],
        sections=list(_make_sections(job_advice, slow_target_result)),
    )
    return write_study_page(study, page_file)


def write_job_pages(
    advice_of_jobs: Sequence[JobAdvice], slow_target_result: SlowTargetResult, file_or_folder: Path
) -> list[Path]:
    """Writes the page of one job to the file `file_or_folder`, or those of several into the folder `file_or_folder`."""
    if len(advice_of_jobs) == 1:
        return [write_job_page(advice_of_jobs[0], slow_target_result, file_or_folder)]
    file_or_folder.mkdir(parents=True, exist_ok=True)
    return [
        write_job_page(result, slow_target_result, file_or_folder / f"{Path(result.job.source).stem}.html")
        for result in advice_of_jobs
    ]


def _make_sections(job_advice: JobAdvice, slow_target_result: SlowTargetResult) -> Iterator[StudySection]:
    job = job_advice.job
    if not job.has_io:
        yield StudySection("Advice", ["The log holds no I/O: there is nothing to advise."], [])
        return
    yield _make_gain_section(job_advice)
    for item in split_useful_and_negligible_advice(job_advice.advice)[0]:
        parts = [_render_settings(item.settings)] if item.settings else []
        files = [_make_file_row(file) for file in item.affected_files[:_MAX_LISTED_FILES]]
        if files:
            parts.append(render_html_table(_FILE_TITLES, files))
        yield StudySection(item.title, [f"Gains {describe_gain(item.gain)}.", *(p.text for p in item.patterns)], parts)
    if job.timeline is not None:
        yield _make_time_section(job.timeline, job)
    yield _make_size_section(job)
    rows = [_make_file_row(file) for file in [*job.files, *job.streams][:_MAX_LISTED_FILES]]
    yield StudySection(
        "Files", [f"The {len(rows)} files with the longest time in calls."], [render_html_table(_FILE_TITLES, rows)]
    )
    facts = [*(pattern.text for pattern in job_advice.facts), *describe_slow_storage_targets(slow_target_result)]
    if facts:
        yield StudySection("Also noticed", facts, [])


def _make_gain_section(job_advice: JobAdvice) -> StudySection:
    useful, _ = split_useful_and_negligible_advice(job_advice.advice)
    if not useful:
        return StudySection("Expected gain", ["No change would gain time worth having."], [])
    bars = [
        (item.title, [AmountBar(item.gain.value, item.gain.low, item.gain.high, "after", _label_gain(item.gain))])
        for item in useful
    ]
    sentences = ["Seconds of the job, with an interval. Gains of different changes overlap: they do not add up."]
    if any(item.gain.is_bound for item in useful):
        sentences.append("≤: the log only bounds this gain; the bar ends in the middle of the interval.")
    return StudySection(
        "Expected gain", sentences, [render_amount_bars(bars, "Expected gain", [("after", "seconds gained")])]
    )


def _label_gain(gain: GainEstimate) -> str:
    return f"≤ {format_seconds(gain.high)}" if gain.is_bound else format_seconds(gain.value)


def _render_settings(settings: Sequence[ReadySetting]) -> Markup:
    return Markup("").join(
        Markup('<pre>{}</pre><p class="caption-text">{}: {}.</p>').format(setting.text, setting.kind, setting.purpose)
        for setting in settings
    )


def _make_time_section(timeline: IoTimeline, job: JobIo) -> StudySection:
    lines = [
        TimeChartLine(name, [((values.sum(axis=0) / timeline.bin_s).tolist(), timeline.bin_s)])
        for name, values in (("read", timeline.read), ("written", timeline.write))
        if values.any()
    ]
    text = f"Bytes per second of all ranks, from {'the heat map' if timeline.source == 'heat map' else 'single calls'}."
    chart = build_time_chart("Over time", text, lines, "B/s").render()
    total = timeline.read + timeline.write
    usual = float(np.median(total[total > 0]))
    values = np.where(total > 0, total / usual, np.nan)
    ranks = timeline.ranks_per_row
    rows = [
        f"rank {row}" if ranks == 1 else f"ranks {row * ranks} to {min(job.processes, (row + 1) * ranks) - 1}"
        for row in range(len(total))
    ]
    heat = HeatMap(
        "Ranks × time",
        f"Bytes in {format_seconds(timeline.bin_s)} relative to the median of intervals with I/O"
        f" ({format_bytes(usual)}); gray: no I/O.",
        rows,
        values,
        build_time_labels(timeline.bin_s * total.shape[1]),
    )
    return StudySection("Time", [], [chart, render_heat_map(heat)])


def _make_size_section(job: JobIo) -> StudySection:
    rows = [
        (name, f"{reads:,}", f"{writes:,}")
        for name, reads, writes in zip(SIZE_CLASSES, job.read.sizes, job.write.sizes, strict=True)
        if reads or writes
    ]
    calls = job.read.calls + job.write.calls
    sentences = [
        f"{format_count_with_noun(calls, 'call')} through POSIX by size. A class ends at the size that names it."
    ]
    return StudySection("Sizes", sentences, [render_html_table(["Up to", "Reads", "Writes"], rows)] if rows else [])


_FILE_TITLES = ["File", "Time of all ranks", "Read", "Written", "Opens", "Shared", "Targets"]


def _make_file_row(file: FileIo) -> Sequence[str]:
    targets = ", ".join(map(str, file.targets[:3])) + (" …" if len(file.targets) > 3 else "")
    return (
        file.path,
        format_seconds(file.call_seconds),
        format_bytes(file.read.bytes),
        format_bytes(file.write.bytes),
        f"{file.opens:,}",
        "yes" if file.has_several_ranks else "no",
        f"{len(file.targets)}: {targets}" if targets else "not known",
    )
