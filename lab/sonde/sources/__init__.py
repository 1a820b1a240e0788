# SPDX-License-Identifier: Apache-2.0
"""Readers for results of other tools: one file per format, each a function from text to runs.

This folder does not access the archive.
"""
