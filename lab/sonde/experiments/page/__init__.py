# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment: what came of its expectations, its tables, and its figures in the form of their source."""

from sonde.experiments.page.page import judged_results, write_experiment
from sonde.experiments.page.words import outcome_lines

__all__ = ["judged_results", "outcome_lines", "write_experiment"]
