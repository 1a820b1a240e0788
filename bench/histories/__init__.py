# SPDX-License-Identifier: Apache-2.0
"""Parts of the bench of the trend detector: real histories, and trials on their noise."""
