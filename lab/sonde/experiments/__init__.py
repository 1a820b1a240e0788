# SPDX-License-Identifier: Apache-2.0
"""What is worth measuring and what the numbers then mean: a run, the check of a file system, ready-made plans.

This folder knows how to put plans together from what it learnt and how to say in plain words what a number counts. It
must not know how anything looks on a screen: it hands lines of the record to an observer and figures to its caller.
"""
