# SPDX-License-Identifier: Apache-2.0
"""The ways to start engine processes: a file each, and `list` with all of them. `launcher` says what one must do."""
