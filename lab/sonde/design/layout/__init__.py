# SPDX-License-Identifier: Apache-2.0
"""Storage laid out, from drives to a mounted file system.

In the order of use: `worked` (a number and its arithmetic), `geometry`, `cuts` and `xfs` (stripes, slices, allocation
groups and logs), `stores` (what holds the bytes of a file system), `bandwidth` (what each stage allows), `laid` (a file
system with everything beneath it, and the numbers it should be made with), `stock` and `planner` (what is free, and who
gets it), `plan` (the system with all of it), `failures` and `alternatives` (what a lost part costs, other ways side by
side), `devices`, `making` and `scripts` (commands for an administrator), `notation` (the words of the Cray X1),
`documents`, `diagram` and `words` (the plan as a file, a picture, tables), `live` (what a machine has), `check`,
`check_disks` and `check_plan` (what is wrong with it, as `faults`), `measuring` (aligned against misaligned, one unit
against all).
"""
