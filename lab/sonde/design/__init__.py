# SPDX-License-Identifier: Apache-2.0
"""Designs storage: generates commands from a system file, and finds the faults of a live machine.

`routes` plans IP and LNet routes between a compute fabric and storage, `layout` plans file systems on drives, `grammar`
defines which names scripts accept. Machines are described by ``schema/system`` files only.
"""
