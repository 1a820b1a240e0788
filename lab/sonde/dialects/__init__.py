# SPDX-License-Identifier: Apache-2.0
"""Dialects of other benchmarks: their arguments become plans, and records are printed in their formats.

The engine has the dialects with one run per command line (ior, mdtest). This folder has those with many runs, or with
runs outside of the engine: IOzone, obdfilter-survey and IO500. Each subfolder implements one tool.
"""
