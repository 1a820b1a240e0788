# SPDX-License-Identifier: Apache-2.0
"""The one map: what a machine is, read from TOML (``schema/system``), with every number's source.

``read_system(path)`` gives a `System`: tables as written (`system.targets`), parts one by one
(`system.items("targets")`), who refers to whom (`system.references`), what follows (`system.capacity_of`), and
the form that C++ reads (`system.resolved()`).
"""

from sonde.model.system.loading import read_system, system_from_document
from sonde.model.system.system import System

__all__ = ["System", "read_system", "system_from_document"]
