# SPDX-License-Identifier: Apache-2.0
"""Experiments: cells, runs, claims and pages; the shipped plans; and the check of a file system.

This folder builds plans and runs them. It prints nothing: callers get record lines through an observer, and results as
values.
"""
