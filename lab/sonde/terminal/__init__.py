# SPDX-License-Identifier: Apache-2.0
"""Output on a terminal: live progress, tables of runs, traces and imported results.

It is handed lines of a record and values; it starts nothing and keeps nothing.
"""
