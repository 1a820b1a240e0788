# SPDX-License-Identifier: Apache-2.0
"""Storage layouts, from drives to a mounted file system.

In the order of use:

* `derivations` (numbers with their arithmetic), `geometry`, `slicing`, `xfs` (allocation groups, logs)
* `block_devices` (what holds the bytes of a file system), `bandwidth` (what each stage allows)
* `file_system_layout` (one file system), `candidates` and `placement` (what is free, and what gets it)
* `plan` (the system with all of it), `failures` and `alternatives` (the cost of a failed part, other layouts)
* `device_names`, `commands` and `scripts` (scripts for an administrator), `cray_x1_notation` (commands of the Cray X1),
  `diagram` and `layout_tables` (picture, report and tables)
* `live` (observed storage of a machine), `check`, `check_disks` and `check_plan` (its `faults`), `stripe_measurement`
  (a measurement of alignment and width)
"""
