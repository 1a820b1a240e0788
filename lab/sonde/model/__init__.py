# SPDX-License-Identifier: Apache-2.0
"""Types of units, plans, records, experiments, events and systems, with their readers and checks.

This folder reads text and returns values. It does not start runs, store them, print anything or call the engine.
"""
