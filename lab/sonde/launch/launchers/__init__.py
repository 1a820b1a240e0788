# SPDX-License-Identifier: Apache-2.0
"""The launchers that start engine processes: one file each, all registered in `list`. `launcher` has the interface."""
