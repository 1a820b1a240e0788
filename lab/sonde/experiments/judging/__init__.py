# SPDX-License-Identifier: Apache-2.0
"""What comes of the claims of an experiment: metrics of its runs, functions of them, and the four outcomes.

`judge` takes an experiment and a source of samples: measured runs (`measured.MeasuredRuns`), or numbers that somebody
published (`published.Published`). Both go through the same arithmetic.
"""
