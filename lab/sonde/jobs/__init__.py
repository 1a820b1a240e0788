# SPDX-License-Identifier: Apache-2.0
"""Batch jobs: runs on nodes that a scheduler allocates.

`batch_script` generates the script, `job_scheduler` submits it and queries the state, `job_records` stores both.
"""
