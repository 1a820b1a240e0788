# SPDX-License-Identifier: Apache-2.0
"""Advice for applications, computed from logs of their I/O."""
