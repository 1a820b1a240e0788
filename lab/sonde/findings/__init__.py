# SPDX-License-Identifier: Apache-2.0
"""What a number is worth, decided here and nowhere else: is it one of storage, when did the rate move, who was slow?

Whoever shows a number, on the terminal, on a page, in JSON or in a table, takes its standing and its sentences from
this folder. It knows records and arithmetic, not how anything looks.

`judgement` is what others ask for; it is made of `standing` (what the number is about), `doubts` (what speaks against
it), `movement` on a `profile` (when the rate moved) and `members` (who was slow). `verdicts` names a phase and its
rate, `remarks` says what else strikes, `nodes` looks at nodes over many runs.
"""
