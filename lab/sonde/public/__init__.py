# SPDX-License-Identifier: Apache-2.0
"""The public API of `import sonde`: archives, runs, measurements, comparisons (docs/reference/python.md).

Later versions add members to these classes. A member is taken away only after it was deprecated.
"""
