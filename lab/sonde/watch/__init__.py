# SPDX-License-Identifier: Apache-2.0
"""Scheduled probes of file systems: what is due, what became slower, whom to notify, and whether it is fixed.

`Watcher` in `sonde.watch.watcher` does one round; its state is one file that is replaced atomically.
"""
