# SPDX-License-Identifier: Apache-2.0
"""Starts and follows a run: locates the engine and a launcher, starts the child process, forwards signals, reads the
growing record.

This folder depends on command lines and processes only, not on what a plan measures, where runs are stored or how
progress looks. It takes a plan file and a directory for the record, and returns the record's lines as they appear.
"""
