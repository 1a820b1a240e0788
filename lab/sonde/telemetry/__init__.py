# SPDX-License-Identifier: Apache-2.0
"""Telemetry: counters of the node, its devices, its network and its storage, sampled during a run or imported.

``sources/`` has one file per source, ``list.py`` the list of all. ``sampler.py`` samples the local sources next to the
engine, ``file_format.py`` writes and reads ``telemetry*.ndjson`` in the folder of a run, ``data.py`` answers questions
about intervals of time, and ``phase_telemetry.py`` states what the counters say about one phase.
"""
