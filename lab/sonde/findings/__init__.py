# SPDX-License-Identifier: Apache-2.0
"""Assessment of a number: is it a storage number, when did the rate change, which task, node or target was slow?

The terminal, the pages, the JSON output and the tables take classification, validity and sentences from this folder.
It depends on records and arithmetic, not on how anything is displayed.

`assessment` is the entry. It combines `classification` (what the number describes), `caveats` (reasons to doubt it),
`variation` of a `phase_timeline` (when the rate changed) and `stragglers` (slow tasks and nodes). `phase_summary` names
a phase and its rate, `irregularities` reports late tasks and periodic dips, `node_history` compares nodes over runs.
"""
