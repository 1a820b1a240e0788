# SPDX-License-Identifier: Apache-2.0
"""IO500: its ini file, its phases as command lines of IOR and mdtest, its rules, its score and its result files."""
