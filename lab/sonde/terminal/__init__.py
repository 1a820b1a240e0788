# SPDX-License-Identifier: Apache-2.0
"""Output on a terminal: live progress, tables of runs, traces and imported results.

It receives record lines and values; it starts no processes and stores no data.
"""
