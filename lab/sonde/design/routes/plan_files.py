# SPDX-License-Identifier: Apache-2.0
"""The files of the plans of a system in one of the formats that hosts are configured with."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.design.routes import configurations, scripts
from sonde.design.routes.plan import RoutePlan
from sonde.model.errors import UserError, suggest_close_name

# Formats of files with IP routes; LNet routes do not come from such plans.
FORMATS = ("iproute2", "network-scripts", "networkd", "networkmanager", "nmstate", "ansible")


def make_plan_files(plans: Sequence[RoutePlan], file_format: str, class_name: str | None) -> dict[str, str]:
    """The files of all plans, by name. Raises UserError for a class that no plan has."""
    hosts = [
        (plan, host) for plan in plans for host in plan.host_plans if class_name is None or host.name == class_name
    ]
    if not hosts:
        names = list(dict.fromkeys(host.name for plan in plans for host in plan.host_plans))
        hint = suggest_close_name(class_name or "", names)
        raise UserError(f'There is no class of hosts "{class_name}"; there are {", ".join(names)}.{hint}')
    if file_format == "iproute2":
        if class_name is None:
            return {name: text for plan in plans for name, text in scripts.make_route_scripts(plan).items()}
        names_of_scripts = [(plan, host, scripts.make_script_name(plan.fabric, host)) for plan, host in hosts]
        return {name: scripts.make_host_script(plan, host, name) for plan, host, name in names_of_scripts}
    if file_format == "ansible":
        return configurations.make_ansible_files(plans, class_name)
    file_builders = {
        "network-scripts": scripts.make_network_script_files,
        "networkd": configurations.make_networkd_files,
        "networkmanager": configurations.make_keyfile_files,
        "nmstate": configurations.make_nmstate_files,
    }
    files: dict[str, str] = {}
    for _, host in hosts:
        # the same file name may be wanted by several classes: each has its own folder
        for name, text in file_builders[file_format](host).items():
            path = f"{host.name}/{name}"
            # rule- and route- files are named by the device: those of several fabrics are one file
            files[path] = files.get(path, "") + text
    return files
