# SPDX-License-Identifier: Apache-2.0
"""obdfilter-survey: its variables, the plans they mean, its table, and the real echo driver of Lustre."""
