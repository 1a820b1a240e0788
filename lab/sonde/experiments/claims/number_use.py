# SPDX-License-Identifier: Apache-2.0
"""Decides whether a claim may be judged on a number, from the classification of the number."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.findings.classification import Classification, classify
from sonde.model.quantities import to_plain_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import to_recorded_run

# What a claim about caches is judged on as well: memory serves both.
_CACHES = (Classification.CACHE, Classification.MEMORY)


def describe_unusable_number(record: RecordReader, phase: PhaseRecord, about: Sequence[str]) -> str:
    """Returns why a claim about `about` (storage, cache) is not judged on the number of a phase; empty if it is.

    Numbers of a simulated machine are judged in simulated experiments: the model has no noise that a duration averages.
    """
    classification, clause = classify(to_recorded_run(record), phase)
    if classification.is_judged or classification is Classification.SIMULATED:
        return ""
    if "cache" in about and classification in _CACHES:
        return ""
    reason = to_plain_spaces(clause).removesuffix(": not a storage number")
    return f"not a storage number ({classification.label}): {reason}"
