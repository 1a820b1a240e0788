# SPDX-License-Identifier: Apache-2.0
"""Finds the best value of settings of system, plan and environment by interleaved runs, and restores the system."""
