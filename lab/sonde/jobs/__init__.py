# SPDX-License-Identifier: Apache-2.0
"""Batch jobs: what is measured later, on nodes that a scheduler gives. `script` writes what a job does, `batch` hands
it to the scheduler and asks how it stands, `book` keeps both beside the runs."""
