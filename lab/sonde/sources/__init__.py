# SPDX-License-Identifier: Apache-2.0
"""Results of other tools: one file a format, each a function from text to runs.

This folder knows how others write their numbers and what those count. It must not know where runs are kept.
"""
