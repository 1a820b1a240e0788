# SPDX-License-Identifier: Apache-2.0
"""The dialect of IOzone: arguments, plans, tables, and the page of a grid."""
