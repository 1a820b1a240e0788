# SPDX-License-Identifier: Apache-2.0
"""The advice for a job in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sonde.advise.advice import Advice, JobAdvice
from sonde.advise.gains import GainEstimate
from sonde.advise.job_io import DirectionIo, JobIo
from sonde.advise.slow_targets import SlowTargetResult
from sonde.model.units import format_bytes, format_count_with_noun, format_rate, format_seconds

_MAX_LISTED_FILES = 3
_MIN_PRINTED_GAIN_S = 0.05
_PROCESS_NOUNS = {True: "process", False: "processes"}


def print_log_set(
    console: Console,
    job_advice: Sequence[JobAdvice],
    refused_log_sentences: Sequence[str],
    slow_target_result: SlowTargetResult,
    page_files: Sequence[Path],
) -> None:
    """Prints the advice for each job, then what concerns all logs."""
    for result in job_advice:
        print_advice(console, result)
        console.print()
    for sentence in describe_slow_storage_targets(slow_target_result):
        console.print(sentence, soft_wrap=True)
    for reason in refused_log_sentences:
        console.print(f"! {reason}", style="yellow", soft_wrap=True)
    for page in page_files:
        console.print(f"Page  {page}", soft_wrap=True)


def print_advice(console: Console, job_advice: JobAdvice) -> None:
    """Prints the job, what is missing, the advice by gain and the facts."""
    job = job_advice.job
    console.print(Text(job.program or job.source, style="bold"), soft_wrap=True)
    for name, value in list_job_facts(job_advice):
        console.print(f"{name:<10} {value}", soft_wrap=True)
    for sentence in job.missing:
        console.print(f"Missing    {sentence}", style="yellow", soft_wrap=True)
    console.print()
    if not job.has_io:
        console.print("The log holds no I/O: there is nothing to advise.", soft_wrap=True)
        return
    useful, small = split_useful_and_negligible_advice(job_advice.advice)
    if not useful:
        console.print("No change would gain time worth having.", soft_wrap=True)
    for number, item in enumerate(useful, 1):
        _print_numbered_advice(console, number, item)
    if small:
        titles = "; ".join(item.title[0].lower() + item.title[1:] for item in small)
        console.print(f"No gain worth having: {titles}.", style="dim", soft_wrap=True)
    for pattern in job_advice.facts:
        console.print(f"· {pattern.text}", style="dim", soft_wrap=True)


def list_job_facts(job_advice: JobAdvice) -> list[tuple[str, str]]:
    """Names and values that describe the job."""
    job = job_advice.job
    begin = datetime.fromtimestamp(job.started_unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    nodes = f" on {format_count_with_noun(len(job.hosts), 'node')}" if job.hosts else ""
    facts = [
        ("Job", ", ".join(part for part in (job.job_id, begin) if part)),
        ("Ran", f"{format_seconds(job.seconds)}, {job.processes:,} {_PROCESS_NOUNS[job.processes == 1]}{nodes}"),
        ("In I/O", _describe_io_time(job)),
        ("Read", _describe_direction(job.read)),
        ("Written", _describe_direction(job.write)),
        ("Log", f"{job.format}, {job.source}"),
        ("Storage", _describe_storage_rates(job_advice)),
    ]
    return facts


def _describe_io_time(job: JobIo) -> str:
    slowest, mean = job.io_seconds, job.mean_io_seconds
    share = f" ({100 * slowest / job.seconds:.0f} % of the run time)" if 0 < slowest <= job.seconds else ""
    if job.processes == 1:
        overlap = "; calls of several threads overlap" if slowest > job.seconds >= 1 else ""
        return f"{format_seconds(slowest)}{share}{overlap}"
    return f"{format_seconds(slowest)} on the slowest rank{share}, {format_seconds(mean)} on average"


def _describe_direction(direction_io: DirectionIo) -> str:
    if not direction_io.calls:
        return "nothing through POSIX"
    mean = format_bytes(round(direction_io.bytes / direction_io.calls))
    return f"{format_bytes(direction_io.bytes)} in {format_count_with_noun(direction_io.calls, 'call')} (mean {mean})"


def _describe_storage_rates(job_advice: JobAdvice) -> str:
    rates = job_advice.rates
    texts = [
        f"{name} {format_rate(rate.value)} ({format_rate(rate.low)} to {format_rate(rate.high)})"
        for name, rate in (("read", rates.read or rates.all_read), ("write", rates.write or rates.all_write))
        if rate
    ]
    return f"{rates.source}: {', '.join(texts) or 'no rate is known; gains are upper bounds'}"


def split_useful_and_negligible_advice(advice: Sequence[Advice]) -> tuple[list[Advice], list[Advice]]:
    """Splits advice into that which may gain at least 50 ms, and all other advice."""
    useful = [item for item in advice if item.gain.high >= _MIN_PRINTED_GAIN_S]
    return useful, [item for item in advice if item.gain.high < _MIN_PRINTED_GAIN_S]


def describe_gain(gain: GainEstimate) -> str:
    """The gain with its interval."""
    if gain.is_bound:
        return f"at most {format_seconds(gain.high)}"
    return f"about {format_seconds(gain.value)} ({format_seconds(gain.low)} to {format_seconds(gain.high)})"


def _print_numbered_advice(console: Console, advice_number: int, advice: Advice) -> None:
    head = Text(f"{advice_number}. {advice.title}", style="bold")
    head.append(f"  gains {describe_gain(advice.gain)}")
    console.print(head, soft_wrap=True)
    for pattern in advice.patterns:
        console.print(f"   {pattern.text}", soft_wrap=True)
    for line in describe_costliest_files(advice):
        console.print(f"   {line}", style="dim", soft_wrap=True)
    for setting in advice.settings:
        console.print(f"   → {setting.kind}: {setting.text}", soft_wrap=True)
        console.print(f"     {setting.purpose}", style="dim", soft_wrap=True)
    console.print()


def describe_costliest_files(advice: Advice) -> Iterator[str]:
    """The most expensive files of an item, one line each."""
    files = advice.affected_files
    for file in files[:_MAX_LISTED_FILES]:
        yield f"{file.path}: {format_seconds(file.call_seconds)} in calls, {format_bytes(file.transferred_bytes)}"
    if len(files) > _MAX_LISTED_FILES:
        remaining_s = sum(file.call_seconds for file in files[_MAX_LISTED_FILES:])
        more_files = format_count_with_noun(len(files) - _MAX_LISTED_FILES, "more file")
        yield f"and {more_files}: {format_seconds(remaining_s)}"


def describe_slow_storage_targets(slow_target_result: SlowTargetResult) -> list[str]:
    """Sentences on slow storage targets; none where the logs name no targets."""
    if slow_target_result.slow:
        return [target.describe_in_sentence() for target in slow_target_result.slow]
    if slow_target_result.compared:
        return [
            f"None of {format_count_with_noun(slow_target_result.compared, 'storage target')} is slow "
            f"({format_count_with_noun(slow_target_result.files, 'file')})."
        ]
    return []
