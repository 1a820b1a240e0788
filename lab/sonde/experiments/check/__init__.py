# SPDX-License-Identifier: Apache-2.0
"""The check of a file system: plans that fit it, the runs, and figures that say how far they can be trusted."""
