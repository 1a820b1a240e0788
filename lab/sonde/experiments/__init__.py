# SPDX-License-Identifier: Apache-2.0
"""What is worth measuring: ready-made plans, and the check of a file system.

This folder knows how to put plans together from what it learnt. It must not know how anything looks on a screen: it
hands lines of the record to an observer and figures to its caller.
"""
