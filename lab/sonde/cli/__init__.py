# SPDX-License-Identifier: Apache-2.0
"""The command ``sonde``: one verb in each file.

This folder defines options, prints results and sets exit codes. It calls the other folders to measure, launch and
store; no other folder imports it.
"""
