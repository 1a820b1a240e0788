# SPDX-License-Identifier: Apache-2.0
"""Decides whether a claim may be judged on a number, from the classification of the number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from sonde.experiments.member_use import UNUSED_MEMBER_FINDING
from sonde.findings.classification import Classification, classify_number
from sonde.model.confined_files import read_json_file
from sonde.model.json_access import get_items, get_object, get_text
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import LAB_FINDINGS, make_recorded_run
from sonde.store.summary import SUMMARY_FILE

# Further classifications that a claim about caches accepts: memory serves both.
_CACHE_CLASSIFICATIONS = (Classification.CACHE, Classification.MEMORY)


def describe_unusable_number(record: RecordReader, phase: PhaseRecord, claim_subjects: Sequence[str]) -> str:
    """Returns why a claim about `claim_subjects` (storage, cache) is not judged on the number of a phase; empty if it
    is.

    Numbers of a simulated machine are judged in simulated experiments: the model has no noise that a duration averages.
    """
    if unused := _describe_unused_axis(record.folder):
        return f"the same in cells that should differ ({unused})"
    classification, clause = classify_number(make_recorded_run(record), phase)
    if classification.is_judged or classification is Classification.SIMULATED:
        return ""
    if "cache" in claim_subjects and classification in _CACHE_CLASSIFICATIONS:
        return ""
    reason = replace_no_break_spaces(clause).removesuffix(": not a storage number")
    return f"not a storage number ({classification.table_label}): {reason}"


@lru_cache(maxsize=1024)
def _describe_unused_axis(run_folder: Path) -> str:
    """Why the cells of an axis are all the same, from the run.json of a run; empty if they are not."""
    if run_folder == Path():
        return ""
    for finding in get_items(read_json_file(run_folder / SUMMARY_FILE) or {}, LAB_FINDINGS):
        if get_text(finding, "id") == UNUSED_MEMBER_FINDING and get_object(finding, "evidence").get("swept"):
            text = get_text(finding, "text").rstrip(".")
            return text[:1].lower() + text[1:]
    return ""
