# SPDX-License-Identifier: Apache-2.0
"""Statistics: pure functions on arrays.

Inputs and outputs are numbers and arrays. This folder imports nothing else from Sonde, so that each function can be
tested against known answers and used from a notebook.
"""
