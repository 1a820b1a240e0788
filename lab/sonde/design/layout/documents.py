# SPDX-License-Identifier: Apache-2.0
"""The plan as a system file: what simulators and checks read, and what stays in the site's map."""

from __future__ import annotations

import tomli_w

from sonde.design.layout.plan import LayoutPlan
from sonde.model.system.writing import document_of

_HEAD = """# {title}: the system with the plan of its storage in it.
# Written by sonde layout plan; sonde layout check reads it with --plan.
"""


def plan_files(plan: LayoutPlan) -> dict[str, str]:
    """The file of the system with everything that was planned."""
    text = tomli_w.dumps(document_of(plan.system))
    return {"system.toml": _HEAD.format(title=plan.system.title or plan.system.id) + text}
