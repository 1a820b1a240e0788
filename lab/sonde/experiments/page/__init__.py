# SPDX-License-Identifier: Apache-2.0
"""The HTML page of an experiment: verdicts of its claims, its tables, and its figures in the form of their source."""
