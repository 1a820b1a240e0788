# SPDX-License-Identifier: Apache-2.0
"""Settings of clients as evidence: which differ from those of the time when the machine was fast.

A person reads them (`lctl get_param`), or two runs recorded them.
"""

from __future__ import annotations

from sonde.diagnose.archive_evidence import EnvironmentEvidence
from sonde.diagnose.library import find_diagnosis_experiment

SETTINGS_EXPERIMENT = "client-settings"
# Assumptions: a setting that is the cause is read as changed this often; one that is not the cause is this often.
CHANGED_AS_CAUSE, CHANGED_BY_CHANCE = 0.98, 0.03


def changes_setting(fault: str, setting: str) -> bool:
    """Whether a fault, as the simulator reads it, changes a setting of clients."""
    return fault.split()[:2] == ["tunable", setting]


def find_recorded_settings(environment: EnvironmentEvidence) -> dict[str, bool]:
    """Returns for each setting that both runs recorded whether it differs."""
    differs: dict[str, bool] = {}
    for phase in find_diagnosis_experiment(SETTINGS_EXPERIMENT).phases:
        for is_changed, names in ((False, environment.equal), (True, environment.changed)):
            if any(_ends_with_fact(name, fact) for name in names for fact in phase.facts):
                differs[phase.id] = is_changed
    return differs


def _ends_with_fact(recorded_name: str, fact: str) -> bool:
    return f" {recorded_name}".endswith(f" {fact}")
