# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: small changes of the sources that a test must notice. ``tools/mutants.py`` is the program."""
