# SPDX-License-Identifier: Apache-2.0
"""Storage laid out, from drives to a mounted file system.

In the order of use: `worked` (a number and its arithmetic), `geometry`, `cuts` and `xfs` (stripes, slices, allocation
groups and logs), `stores` (what holds the bytes of a file system), `bandwidth` (what each stage allows), `laid` (a file
system with everything beneath it, and the numbers it should be made with).
"""
