# SPDX-License-Identifier: Apache-2.0
"""The rules of a firewall, and a packet's path through its chains, with all rules that may decide about the packet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from sonde.design.routes.packet_selectors import Match, Packet, Selector, evaluate_selector

_ENDS = ("ACCEPT", "DROP", "REJECT", "MASQUERADE", "SNAT", "DNAT", "REDIRECT", "NETMAP", "TARPIT", "QUEUE", "TPROXY")
_DROPPING = ("DROP", "REJECT", "TARPIT", "QUEUE")
_TRANSLATING = ("MASQUERADE", "SNAT")
_MAX_DEPTH = 16
_ALL_BITS = 0xFFFFFFFF
# The version of a firewall for packets of ARP, which are none of IP.
ARP = 0
# The hooks that a packet passes, in their order.
HOOKS_BY_PATH = {
    "forward": ("prerouting", "forward", "postrouting"),
    "input": ("prerouting", "input"),
    "output": ("output", "postrouting"),
}


@dataclass(frozen=True)
class FirewallRule:
    """One rule of a chain: all its selectors must match. The target is in capitals as of iptables, or a chain."""

    table: str
    chain: str
    text: str
    origin: str
    selectors: tuple[Selector, ...] = ()
    target: str = ""
    is_goto: bool = False  # a packet that the target chain returns does not come back to this chain
    mark: int | None = None  # that it gives to a packet without a mark
    mark_mask: int = _ALL_BITS  # the bits of the mark that it changes
    segment_bytes: int | None = None  # to which it lowers the maximum segment size (MSS) of TCP
    is_logging: bool = False  # writes a line to the kernel log for each packet

    @property
    def destination_ports(self) -> str:
        """The destination ports that it selects, as 1191,50000-50100; "" for all."""
        return ",".join(each.value for each in self.selectors if each.member == "destination_ports")

    def evaluate(self, packet: Packet) -> Match:
        """Whether the rule matches a packet."""
        return min((evaluate_selector(selector, packet) for selector in self.selectors), default=Match.ALWAYS)


@dataclass(frozen=True)
class BaseChain:
    """A chain that the kernel calls: its hook in small letters, its type (filter, nat, route), and its policy."""

    hook: str
    kind: str
    table: str
    name: str
    policy: str = "ACCEPT"
    priority: int = 0
    devices: tuple[str, ...] = ()  # of a chain of one interface (hook ingress)


@dataclass(frozen=True)
class Firewall:
    """The rules of all chains in their order, and the chains that the kernel calls. IP version 4 or 6,
    or ARP."""

    version: int
    rules: tuple[FirewallRule, ...]
    base_chains: tuple[BaseChain, ...]

    @cached_property
    def rules_by_chain(self) -> dict[tuple[str, str], list[FirewallRule]]:
        """The rules by table and chain."""
        chains: dict[tuple[str, str], list[FirewallRule]] = {}
        for rule in self.rules:
            chains.setdefault((rule.table, rule.chain), []).append(rule)
        return chains

    def list_base_chains(self, packet: Packet) -> list[BaseChain]:
        """The chains that the kernel calls for a packet, in their order. It calls those of nat for new connections
        only."""
        hooks = ("ingress", *HOOKS_BY_PATH[packet.path], "egress")
        chains = [
            chain
            for chain in self.base_chains
            if chain.hook in hooks
            and (chain.kind != "nat" or packet.states == {"NEW"})
            and (chain.hook != "ingress" or packet.input_device in chain.devices)
            and (chain.hook != "egress" or packet.output_device in chain.devices)
        ]
        return sorted(chains, key=lambda chain: (hooks.index(chain.hook), chain.priority))


@dataclass(frozen=True)
class Decision:
    """What a rule, or the policy of a chain (`rule` is None), does with a packet, and for which of these packets.
    `conditions` are the rules before it, and itself, that match some packets or are not understood."""

    verdict: str
    rule: FirewallRule | None
    chain: BaseChain
    match: Match
    conditions: tuple[FirewallRule, ...] = ()

    @property
    def is_certain_drop(self) -> bool:
        """Whether the packet is dropped in any case."""
        return self.verdict in _DROPPING and self.verdict != "QUEUE" and self.match is Match.ALWAYS

    @property
    def origin(self) -> str:
        """The file and line of the rule, or the chain of the policy."""
        return self.rule.origin if self.rule is not None else f"chain {self.chain.name}"

    @property
    def description(self) -> str:
        """The rule or policy for a sentence."""
        return f"the rule {self.rule.text}" if self.rule is not None else f"the policy of the chain {self.chain.name}"


@dataclass
class _Walk:
    """A packet on its way through one base chain, what rules do with it, and the rules that it may match."""

    firewall: Firewall
    packet: Packet
    base_chain: BaseChain
    decisions: list[Decision] = field(default_factory=list)
    rules: list[FirewallRule] = field(default_factory=list)
    logging_rules: list[FirewallRule] = field(default_factory=list)  # that log it in any case

    def pass_chain(
        self, name: str, match: Match, conditions: tuple[FirewallRule, ...], depth: int = 0
    ) -> tuple[Match, tuple[FirewallRule, ...], bool]:
        """Follows the packet, which reaches the chain by `match`. Returns for which packets, and after which
        conditions, the chain returns; and whether it accepts some."""
        returned, returned_conditions, has_accepted = Match.NEVER, conditions, False
        first_match, first_conditions = match, conditions
        for rule in self.firewall.rules_by_chain.get((self.base_chain.table, name), ()):
            own_match = rule.evaluate(self.packet)
            if own_match is Match.NEVER:
                continue
            self.rules.append(rule)
            self._change_packet(rule, own_match)
            joint_match = min(match, own_match)
            self.logging_rules += [rule] if rule.is_logging and joint_match is Match.ALWAYS else []
            is_conditional = own_match is not Match.ALWAYS
            jump_conditions = (*conditions, rule) if is_conditional else conditions
            is_accepting, is_leaving = False, rule.is_goto or rule.target == "RETURN"
            if rule.target in _ENDS:
                self.decisions.append(Decision(rule.target, rule, self.base_chain, joint_match, jump_conditions))
                is_accepting = rule.target not in _DROPPING
                back = Match.NEVER
            elif (self.base_chain.table, rule.target) in self.firewall.rules_by_chain and depth < _MAX_DEPTH:
                back, back_conditions, is_accepting = self.pass_chain(
                    rule.target, joint_match, jump_conditions, depth + 1
                )
                if not is_conditional:
                    conditions = back_conditions
            else:
                back = joint_match
            has_accepted |= is_accepting
            if is_leaving and back is not Match.NEVER and back >= returned:
                returned, returned_conditions = back, conditions
            if not is_conditional:
                match = Match.NEVER if is_leaving else back
            elif is_accepting or is_leaving:
                match, conditions = joint_match, (*conditions, rule)
            if match is Match.NEVER:
                break
        if match is not Match.NEVER and not has_accepted:
            return first_match, first_conditions, False
        if match >= returned:
            returned, returned_conditions = match, conditions
        return returned, returned_conditions, has_accepted

    def _change_packet(self, rule: FirewallRule, own_match: Match) -> None:
        """Gives the packet the mark that the rule sets, and takes it out of connection tracking."""
        if rule.target == "NOTRACK" and own_match is Match.ALWAYS:
            self.packet = replace(self.packet, states=frozenset({"UNTRACKED"}))
        if rule.mark is None or (self.packet.mark ^ rule.mark) & rule.mark_mask == 0:
            return
        if own_match is Match.ALWAYS:
            mark, unknown_bits = (self.packet.mark & ~rule.mark_mask) | rule.mark, ~rule.mark_mask
            self.packet = replace(
                self.packet, mark=mark, unknown_mark_bits=self.packet.unknown_mark_bits & unknown_bits
            )
        else:
            changed_bits = self.packet.unknown_mark_bits | ((self.packet.mark ^ rule.mark) & rule.mark_mask)
            self.packet = replace(self.packet, unknown_mark_bits=changed_bits)


def list_decisions(firewall: Firewall, packet: Packet) -> list[Decision]:
    """All that the firewall may do with a packet, up to the first rule or policy that drops it in any case."""
    decisions = list[Decision]()
    for chain in firewall.list_base_chains(packet):
        walk = _Walk(firewall, packet, chain)
        returned, conditions, _ = walk.pass_chain(chain.name, Match.ALWAYS, ())
        packet = walk.packet
        decisions += walk.decisions
        if returned is not Match.NEVER:
            decisions.append(Decision(chain.policy, None, chain, returned, conditions))
        if any(each.is_certain_drop for each in decisions):
            break
    return decisions


def list_drops(firewall: Firewall, packet: Packet) -> list[Decision]:
    """The decisions that drop a packet or some of its kind: the one that does it in any case alone, where there is
    one."""
    drops = [decision for decision in list_decisions(firewall, packet) if decision.verdict in _DROPPING]
    return [drop for drop in drops if drop.is_certain_drop][:1] or drops


def find_certain_drop(firewall: Firewall, packet: Packet) -> Decision | None:
    """The decision that drops a packet in any case."""
    return next((drop for drop in list_drops(firewall, packet) if drop.is_certain_drop), None)


def iterate_rules_on_path(firewall: Firewall, packet: Packet, kind: str = "") -> Iterator[FirewallRule]:
    """The rules that a packet may match before a rule decides about it, of all chains or of those of one kind.
    Rules with selectors that are not understood are among them."""
    for chain in firewall.list_base_chains(packet):
        walk = _Walk(firewall, packet, chain)
        walk.pass_chain(chain.name, Match.ALWAYS, ())
        packet = walk.packet
        if kind in ("", chain.kind):
            yield from walk.rules


def list_logging_rules(firewall: Firewall, packet: Packet) -> list[FirewallRule]:
    """The rules that log each such packet, where the firewall drops none of them."""
    rules = list[FirewallRule]()
    if list_drops(firewall, packet):
        return rules
    for chain in firewall.list_base_chains(packet):
        walk = _Walk(firewall, packet, chain)
        walk.pass_chain(chain.name, Match.ALWAYS, ())
        packet = walk.packet
        rules += walk.logging_rules
    return rules


def find_translation(firewall: Firewall, packet: Packet) -> FirewallRule | None:
    """The rule that gives a forwarded packet another source address."""
    decisions = list_decisions(firewall, packet)
    return next((each.rule for each in decisions if each.verdict in _TRANSLATING and each.match is Match.ALWAYS), None)
