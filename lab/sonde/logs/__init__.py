# SPDX-License-Identifier: Apache-2.0
"""Log files become events: readers of log formats, a rule engine, shipped rules, and rule files of SEC.

``scan_logs(paths, rules, …)`` in `sonde.logs.scan` returns events and one report for each file.
"""
