# SPDX-License-Identifier: Apache-2.0
"""Routes around a compute fabric.

In the order of use: `fabric` (which hosts reach which through which routers), `plan` (rules, tables and multipath
routes of every class of hosts, in both directions), `kernel_settings` (kernel options and sysctls), `scripts` and
`configurations` (the plan as files of iproute2, NetworkManager, systemd-networkd, Ansible, nmstate, LNet), `diagram` (a
drawing of the fabric), `host_tables` and `kernel_tables` (the rules and routes of a host, from saved output or from its
kernel), `check` and `check_settings` (what is wrong with them, as `faults`), `flow_hash` (which router a flow takes),
`flows` (rates with all routers and without one), `queueing` and `mount_throughput` (native against forwarded mounts),
`route_text` and `flow_page` (results as text and as a page), `topology`, `traffic` and `verify` (the plan built in
network namespaces and measured), `health` (dead routers leave the route).
"""
