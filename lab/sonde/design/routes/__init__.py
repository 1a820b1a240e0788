# SPDX-License-Identifier: Apache-2.0
"""Routes around a compute fabric.

In the order of use: `fabric` (who has to reach whom through which routers), `plan` (rules, tables and multipath routes
of every kind of host, both directions), `tuning` (kernel settings, and which of the usual ones are wrong), `scripts`
and `configurations` (the plan as files of iproute2, NetworkManager, systemd-networkd, Ansible, nmstate, LNet),
`diagram` (its picture), `tables` and `live` (what a host has, from saved output or from its kernel), `check` and
`check_settings` (what is wrong with it, as `faults`), `spread` (which router a flow takes: the kernel's own hash),
`flows` (rates per client and in all, and what a lost router costs), `topology`, `traffic` and `verify` (the plan built
of network namespaces and tried out), `health` (dead routers are taken out of the route).
"""
