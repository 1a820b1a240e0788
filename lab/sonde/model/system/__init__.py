# SPDX-License-Identifier: Apache-2.0
"""System files (``schema/system``): the description of a machine, with the source of every number.

``read_system(path)`` returns a `System`: tables as written (`system.targets`), single parts
(`system.list_parts("targets")`), references (`system.find_references`), derived sizes (`system.compute_capacity`) and
the resolved form for C++ (`system.resolve()`).
"""

from sonde.model.system.file_problems import find_system_file_problems
from sonde.model.system.system import System
from sonde.model.system.system_reader import make_system, read_system

__all__ = ["System", "find_system_file_problems", "make_system", "read_system"]
