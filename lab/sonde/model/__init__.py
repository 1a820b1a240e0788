# SPDX-License-Identifier: Apache-2.0
"""The nouns: units, plans, records, errors.

This folder knows what the words of a plan and of a record mean, and how to say in one sentence what is wrong with one.
It must not know how a run is started, where runs are kept or how anything looks on a screen, and it never talks to
the engine: it reads text and gives values back.
"""
