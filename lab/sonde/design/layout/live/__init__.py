# SPDX-License-Identifier: Apache-2.0
"""Observes the storage of a machine. No module writes to a device.

`observations` (the observed values), `sysfs_disks` (block devices), `superblocks` (XFS and ext4), `extents`, `mounts`,
`linux_tool_output` (lsblk, mdadm, lvs, multipathd, dumpe2fs, lfs, zpool), `cray_x1_output` (tools of the Cray X1, and
xfs_info), `saved_output` (identifies saved output), `inspection` (this machine).
"""
