# SPDX-License-Identifier: Apache-2.0
"""Source of the samples of training input: storage or page cache, as far as the record shows."""

from __future__ import annotations

from sonde.model import quantities
from sonde.model.line_members import TrainingResult


def describe_sample_source(training: TrainingResult) -> str:
    """A clause with the shares of samples from cache and storage. The shares are estimates from the residency before
    the phase, not from counters."""
    cached, stored = training.cached_bytes, training.storage_bytes
    if cached is None or stored is None or not cached + stored:
        return "how much came from storage is not known"
    return f"{quantities.display_percent(stored / (cached + stored))} of the bytes from storage (estimated)"
