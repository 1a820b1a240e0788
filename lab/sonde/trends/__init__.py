# SPDX-License-Identifier: Apache-2.0
"""Histories: noticing that something got slower, and saying what and since when.

`history` (what is watched), `lanes` (how a change is noticed), `budget` (how often that may be wrong), `watch` (one
history, or all of them), `changes` (many alarms, one joint change), `scope` (what it has in common); `words`,
`history_page` and the two `comparison_*` say it to people, on the terminal and as a page.
"""
