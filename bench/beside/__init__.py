# SPDX-License-Identifier: Apache-2.0
"""The same work done by Sonde and by other tools, in turn."""
