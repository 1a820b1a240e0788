# SPDX-License-Identifier: Apache-2.0
"""Other benchmarks, spoken: their words become plans, and records become what they print.

The engine has dialects too (ior, mdtest), where one command line is one run. Here are those that are made of many runs
or of none of the engine's: the grid of IOzone, obdfilter-survey, IO500. A folder knows one tool's formats only.
"""
