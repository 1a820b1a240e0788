# SPDX-License-Identifier: Apache-2.0
"""Advice for a job: patterns that one change removes, what the change gains, and the setting for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sonde.advise.gains import GainEstimate, estimate_gain
from sonde.advise.job_io import DirectionIo, FileIo, JobIo
from sonde.advise.settings import ReadySetting, make_ready_settings
from sonde.advise.slow_targets import SlowTargetResult
from sonde.advise.storage_rates import StorageRates, estimate_rates_from_job
from sonde.advise.triggers import CostKind, IoPattern, find_patterns

ADVICE_FORMAT = "sonde-advice/1"
_ADVICE_TITLES = {
    CostKind.READS: "Make reads large and sequential",
    CostKind.WRITES: "Make writes large and sequential",
    CostKind.ALIGNMENT: "Align calls with blocks and stripes",
    CostKind.REDUNDANT_READS: "Read each byte once",
    CostKind.REDUNDANT_WRITES: "Write each byte once",
    CostKind.METADATA: "Open fewer files, and less often",
    CostKind.BALANCE: "Give all ranks the same amount of I/O",
    CostKind.OVERLAP: "Let I/O overlap with computation",
}
_MAX_LISTED_FILES = 10


@dataclass(frozen=True)
class Advice:
    """One change. `patterns` are the reasons, `gain` is in seconds of the job."""

    effect: CostKind
    title: str
    patterns: Sequence[IoPattern]
    gain: GainEstimate
    settings: Sequence[ReadySetting]

    @property
    def affected_files(self) -> list[FileIo]:
        """Affected files, the most expensive first."""
        unique = {id(file): file for pattern in self.patterns for file in pattern.files}
        return sorted(unique.values(), key=lambda file: -file.call_seconds)


@dataclass(frozen=True)
class JobAdvice:
    """Advice for a job, ordered by gain; `facts` are patterns without a measurable cost."""

    job: JobIo
    rates: StorageRates
    advice: Sequence[Advice]
    facts: Sequence[IoPattern]

    @property
    def drishti_codes(self) -> list[str]:
        """Drishti's codes of all patterns, sorted."""
        patterns = [*self.facts, *(pattern for item in self.advice for pattern in item.patterns)]
        return sorted(pattern.code for pattern in patterns)


def advise_job(job: JobIo, storage_rates: StorageRates | None = None) -> JobAdvice:
    """Returns the advice for a job on a storage; without `storage_rates` the rates follow from the job's own large
    calls."""
    storage_rates = storage_rates or estimate_rates_from_job(job)
    by_effect: dict[CostKind, list[IoPattern]] = {}
    for pattern in find_patterns(job):
        by_effect.setdefault(pattern.effect, []).append(pattern)
    facts = by_effect.pop(CostKind.NONE, [])
    advice = []
    for effect, patterns in by_effect.items():
        gain = estimate_gain(job, patterns, storage_rates)
        if gain is not None:
            advice.append(Advice(effect, _ADVICE_TITLES[effect], patterns, gain, make_ready_settings(job, patterns)))
    return JobAdvice(job, storage_rates, sorted(advice, key=lambda item: -item.gain.value), facts)


def build_log_set_document(
    job_advice: Sequence[JobAdvice],
    refused_log_sentences: Sequence[str],
    slow_target_result: SlowTargetResult,
    page_files: Sequence[Path],
) -> dict[str, Any]:
    """The advice for several logs as JSON."""
    return {
        "schema": ADVICE_FORMAT,
        "jobs": [build_advice_document(result) for result in job_advice],
        "refused": list(refused_log_sentences),
        "targets_compared": slow_target_result.compared,
        "slow_targets": [asdict(target) for target in slow_target_result.slow],
        "pages": [str(page) for page in page_files],
    }


def build_advice_document(job_advice: JobAdvice) -> dict[str, Any]:
    """The advice as JSON."""
    job = job_advice.job
    return {
        "log": job.source,
        **build_job_identity_document(job),
        "hosts": list(job.hosts),
        "io_seconds": {"slowest_rank": job.io_seconds, "mean_rank": job.mean_io_seconds},
        "files": job.file_count,
        "read": _convert_direction_io_to_json(job.read),
        "write": _convert_direction_io_to_json(job.write),
        "missing": list(job.missing),
        "storage": asdict(job_advice.rates),
        "codes": job_advice.drishti_codes,
        "advice": [_convert_advice_to_json(item) for item in job_advice.advice],
        "facts": [_convert_pattern_to_json(pattern) for pattern in job_advice.facts],
    }


def build_job_identity_document(job: JobIo) -> dict[str, Any]:
    """Which job it was, and its size, as members of JSON and of tables."""
    return {
        "format": job.format,
        "program": job.program,
        "job": job.job_id,
        "user": job.user,
        "started_unix_s": job.started_unix_s,
        "seconds": job.seconds,
        "processes": job.processes,
    }


def _convert_direction_io_to_json(direction_io: DirectionIo) -> dict[str, Any]:
    return {
        "calls": direction_io.calls,
        "bytes": direction_io.bytes,
        "seconds": direction_io.seconds,
        "small_calls": direction_io.small_calls,
    }


def _convert_advice_to_json(advice: Advice) -> dict[str, Any]:
    return {
        "change": advice.effect.value,
        "title": advice.title,
        "gain_s": {"low": advice.gain.low, "value": advice.gain.value, "high": advice.gain.high},
        "is_bound": advice.gain.is_bound,
        "reasons": [_convert_pattern_to_json(pattern) for pattern in advice.patterns],
        "settings": [asdict(setting) for setting in advice.settings],
        "files": [
            {"path": file.path, "seconds": file.call_seconds, "bytes": file.transferred_bytes}
            for file in advice.affected_files[:_MAX_LISTED_FILES]
        ],
    }


def _convert_pattern_to_json(pattern: IoPattern) -> dict[str, Any]:
    return {"trigger": pattern.key, "code": pattern.code, "text": pattern.text, "files": len(pattern.files)}
