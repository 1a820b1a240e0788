# SPDX-License-Identifier: Apache-2.0
"""What the page shows of one phase, a file a section: the page finds each file here that has a SECTION."""
