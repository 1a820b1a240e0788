# SPDX-License-Identifier: Apache-2.0
"""Statistics: pure functions on arrays.

This folder knows numbers and nothing else: no plan, no record, no file. It imports nothing of ours, so that each
function can be checked against known answers and used from a notebook.
"""
