# SPDX-License-Identifier: Apache-2.0
"""How a run is started and watched: finding the engine and a launcher, the child process, signals, the growing record.

This folder knows command lines and processes. It must not know what a plan measures, where runs are kept or how
progress looks: it takes a plan file and a place for the record, and hands out the record's lines as they appear.
"""
