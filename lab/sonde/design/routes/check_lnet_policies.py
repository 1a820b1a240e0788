# SPDX-License-Identifier: Apache-2.0
"""Checks policies of LNet for the choice of NIs and gateways (UDSP): those that leave out some of them.

Source: Lustre Operations Manual, "User Defined Selection Policies": LNet takes what a policy names while it works.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.lnet_records import LnetInterface, LnetPolicy


def find_policy_faults(
    policies: Sequence[LnetPolicy],
    interfaces: Sequence[LnetInterface],
    gateways: Collection[str],
    normalize: Callable[[str], str],
) -> Iterator[RouteFault | CheckedItem]:
    """Gateways, and NIs of a network with several ones, that all policies together leave out. `gateways` are NIDs in
    the spelling that `normalize` gives."""
    routing = [policy for policy in policies if policy.gateways]
    if routing and gateways:
        yield CheckedItem("the policies of gateways", f"{len(routing)} of LNet")
        selected = {nid for nid in gateways for policy in routing if match_nids(policy.gateways, nid, normalize)}
        if selected < set(gateways):
            yield _describe_policies("gateways", routing, selected, len(gateways))
    binding = [policy for policy in policies if "@" in policy.source and not policy.gateways]
    networks = {normalize(interface.nid).partition("@")[2] for interface in interfaces}
    for network in sorted(networks) if binding else ():
        nids = {nid for item in interfaces if (nid := normalize(item.nid)).endswith(f"@{network}")}
        selected = {nid for nid in nids for policy in binding if match_nids(policy.source, nid, normalize)}
        if not selected:
            continue
        yield CheckedItem("the policies of NIs", network)
        if selected < nids:
            yield _describe_policies(f"NIs of {_drop_network_number_zero(network)}", binding, selected, len(nids))


def list_unread_policies(policies: Sequence[LnetPolicy]) -> list[str]:
    """The policies without gateways and NIDs of this host, which no check reads."""
    return [
        f"the policy {policy.number} of udsp (src {policy.source or 'NA'}, dst {policy.destination or 'NA'})"
        for policy in policies
        if not policy.gateways and "@" not in policy.source
    ]


def _describe_policies(
    noun: str, policies: Sequence[LnetPolicy], selected_nids: Collection[str], nid_count: int
) -> RouteFault:
    names = sorted(_drop_network_number_zero(nid) for nid in selected_nids)
    written = join_first_names(names)
    scopes = [
        f"{noun} {text}" for policy in policies[:1]
        for noun, text in (("from", policy.source), ("to", policy.destination)) if text
    ]  # fmt: skip
    effect = "others carry none while one of these works" if names else "none of them is among these, so LNet uses all"
    commands = "; ".join(f"lnetctl udsp del --idx {policy.number}" for policy in policies)
    return RouteFault(
        "LNet policy", ", ".join(policy.origin for policy in policies),
        f"{'policies' if len(policies) > 1 else 'a policy'} (UDSP) of messages {' '.join(scopes) or 'to all'} take"
        f"{'' if len(policies) > 1 else 's'} {len(names)} of {nid_count} {noun}{f' ({written})' if written else ''}:"
        f" {effect}",
        f"{commands}, or name all of them",
    )  # fmt: skip


def _drop_network_number_zero(name: str) -> str:
    """A NID or network without the number 0, which LNet does not print."""
    return re.sub(r"(?<=[a-z])0$", "", name)


def match_nids(expression: str, nid: str, normalize: Callable[[str], str]) -> bool:
    """Whether a list of NID ranges, as `10.1.0.[1-4,7]@tcp *@o2ib`, has a NID in the spelling of `normalize`. A name
    of a network alone is all of its NIDs."""
    address = nid.partition("@")[0]
    for text in re.findall(r"(?:\[[^\]]*\]|\S)+", expression):
        before, separator, after = text.rpartition("@")
        if normalize(f"{address}@{after}") != nid:
            continue
        parts, numbers = before.split("."), address.split(".")
        if not separator or before in ("*", address) or (
            len(parts) == len(numbers) and all(map(_match_number, parts, numbers))
        ):  # fmt: skip
            return True
    return False


def _match_number(pattern: str, number: str) -> bool:
    """Whether one part of an IPv4 address is `*`, a number, or in `[FIRST-LAST/STEP,…]`."""
    if pattern in ("*", number):
        return True
    for item in pattern.strip("[]").split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?:/(\d+))?)?", item.strip())
        if match and number.isdigit():
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            if int(number) in range(first, last + 1, step or 1):
                return True
    return False
