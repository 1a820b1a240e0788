# SPDX-License-Identifier: Apache-2.0
"""The published documents whose items shipped experiments name as their sources (B36)."""

from __future__ import annotations

import re

from sonde.experiments.shipped_experiments import list_shipped_experiments
from sonde.model.experiment.experiment import Experiment

# Letter of the items -> title.
DOCUMENT_TITLES = {
    "A": "Cray X1 System Performance (CUG 2004)",
    "B": "I/O Performance on Cray XC30 (CUG 2014)",
    "C": "Native Spectrum Scale clients on a Cray XC",
    "D": "Evaluation of the Sonexion 1300 (CSCS 2012)",
    "E": "HPCS I/O Scenarios Update (LUG 2013)",
}
_ITEM_PATTERN = re.compile(r"([A-E])\d\d")


def describe_sources(experiment: Experiment) -> str:
    """The sources of an experiment and their status in one line; for a shipped one with the titles of the documents."""
    file = experiment.file
    text = ", ".join(file.source) + (f" ({file.status})" if file.status else "")
    items = [_ITEM_PATTERN.fullmatch(source) for source in file.source]
    letters = dict.fromkeys(item[1] for item in items if item)
    if not letters or not all(items) or experiment.id not in list_shipped_experiments():
        return text
    return f"{text}: items of {' and '.join(DOCUMENT_TITLES[letter] for letter in letters)}"
