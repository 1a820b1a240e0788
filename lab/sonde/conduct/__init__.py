# SPDX-License-Identifier: Apache-2.0
"""Conducts runs: creates the run folder, launches the engine, follows the record, writes the summary.

Callers (commands, checks, experiments) pass a plan or the arguments of another tool, and an observer for record lines.
"""
