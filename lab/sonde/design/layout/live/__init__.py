# SPDX-License-Identifier: Apache-2.0
"""What storage a machine has, as it was seen.

`seen` (what can be known), `blocks` (block devices from sysfs), `superblocks` (XFS and ext4 from their own first
blocks, and XFS by ioctl), `extents` (where a file lies), `mounts` (what is mounted where), `tools` (outputs of lsblk,
mdadm, lvs, multipathd, dumpe2fs, lfs and zpool), `listings` (those of the Cray X1, and xfs_info), `reading` (which of
these a text is), `machine` (this machine). Nothing here writes to a device.
"""
