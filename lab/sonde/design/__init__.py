# SPDX-License-Identifier: Apache-2.0
"""Design: from a system file to commands, and from a live machine back to what is wrong with it.

`routes` plans IP and LNet routes around a compute fabric, checks tables, and says how flows spread. What a machine is
comes from ``schema/system`` alone.
"""
