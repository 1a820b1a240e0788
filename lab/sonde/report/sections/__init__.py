# SPDX-License-Identifier: Apache-2.0
"""Sections of a phase on the report page, one file each: the page loads each module here that has a SECTION."""
