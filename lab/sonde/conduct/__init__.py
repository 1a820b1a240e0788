# SPDX-License-Identifier: Apache-2.0
"""Runs are conducted here: a place in the archive, the launch, the record, the summary.

Whoever measures (a verb, a check, a benchmark made of many runs) hands over a plan or the words of another tool and an
observer for what happens meanwhile. Nothing here decides what to measure or what a number is worth.
"""
