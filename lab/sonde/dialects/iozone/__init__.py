# SPDX-License-Identifier: Apache-2.0
"""IOzone: its words, the plans they mean, its tables, and its grid as a page."""
