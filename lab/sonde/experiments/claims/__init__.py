# SPDX-License-Identifier: Apache-2.0
"""Evaluates the claims of an experiment: metrics of its runs, functions of metrics, and verdicts.

`verdicts.evaluate_claims` takes an experiment and a source of samples: measured runs (`measured_runs.MeasuredRuns`) or
published numbers (`published_numbers.PublishedNumbers`).
"""
