# SPDX-License-Identifier: Apache-2.0
"""Checks the counters of an interface (`ip -s addr`, `ethtool -S`) and of InfiniBand ports (`perfquery`): packets that
arrived broken, that nobody fetched in time, and that were not sent. A few are usual: when a link starts, or in a burst.

Source: Linux Documentation/networking/statistics.rst; the same, device_drivers/ethernet/mellanox/mlx5/counters.rst.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_arp_monitor import MANY_LINK_FAILURES
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables

# Errors count from this number on, and from this fraction of all packets on: TCP notices one lost packet of 100,000.
_MIN_ERRORS = 1000
_MIN_ERROR_FRACTION = 1e-5
# Drops have harmless reasons too (frames of unknown protocols, short bursts), so only a large fraction of many packets
# counts.
MIN_PACKETS = 1_000_000
MIN_DROPPED_SENT, _MIN_DROPPED_RECEIVED = 0.01, 0.1
# Counters of the drivers mlx5, ice, i40e, ixgbe, bnxt and others, by the sum of the kernel that they are part of.
_ADAPTER_COUNTERS = {
    "rx_packets": ("rx_packets_phy", "rx_packets"), "tx_packets": ("tx_packets_phy", "tx_packets"),
    "rx_crc_errors": ("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_crc_errors", "rx_crc_errors.nic",
                      "port.rx_crc_errors", "rx_fcs_err_frames", "rx_fec_uncorrectable_errors"),
    "rx_missed_errors": ("rx_out_of_buffer", "rx_discards_phy", "rx_no_dma_resources", "rx_missed_errors",
                         "rx_no_buffer_count", "rx_dropped.nic", "port.rx_dropped", "rx_discard_pkts"),
    "link_down_events": ("link_down_events_phy",),
}  # fmt: skip
# Counters of perfquery that count packets, and those that count events of the link.
_PORT_ERRORS = ("SymbolErrorCounter", "PortRcvErrors", "LocalLinkIntegrityErrors")
_LINK_ERRORS = ("LinkErrorRecoveryCounter", "LinkDownedCounter", "ExcessiveBufferOverrunErrors")


def find_counter_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Errors of one interface since it was made; nothing where its counters are unknown."""
    details = host_tables.link_details.get(device_name)
    counters = {**_read_adapter_counters(host_tables.adapters.get(device_name, {}))}
    for name, count in (details.counters if details is not None else {}).items():
        counters[name] = max(count, counters.get(name, 0))
    if not counters:
        return
    yield CheckedItem("the errors of an interface", device_name)
    missed = max(counters.get(name, 0) for name in ("rx_over_errors", "rx_missed_errors", "rx_fifo_errors"))
    broken = max(counters.get("rx_crc_errors", 0), counters.get("rx_errors", 0) - missed)
    received = counters.get("rx_packets", 0)
    if _are_many(broken, received):
        yield RouteFault(
            "packets arrive broken", device_name,
            f"{broken} of {received} packets arrived broken on {device_name} (rx errors): each lost packet slows its"
            " connection down",
            "look at the cable, the transceiver and the port of the switch (ethtool -S, ethtool -m)",
        )  # fmt: skip
    if _are_many(missed, received):
        yield RouteFault(
            "packets dropped early", device_name,
            f"{missed} of {received} packets were dropped because the ring of {device_name} was full (rx missed): the"
            " processors fetch them too late",
            f"ethtool -G {device_name} rx MAXIMUM, and spread its interrupts over more processors",
            versions="joined",  # with a ring that is small
        )  # fmt: skip
    sent = counters.get("tx_packets", 0)
    carrier = counters.get("tx_carrier_errors", 0)
    if _are_many(carrier, sent):
        yield RouteFault(
            "packets not sent", device_name,
            f"{carrier} of {sent} packets were not sent because {device_name} had no carrier (tx carrier errors)",
            "look at the cable, the transceiver and the port of the switch (ethtool -S, ethtool -m)",
        )  # fmt: skip
    yield from _check_drops(device_name, counters)
    link_losses = counters.get("link_down_events", 0)
    if link_losses >= MANY_LINK_FAILURES and (details is None or details.link_failures is None):
        yield RouteFault(
            "link unstable", device_name,
            f"{device_name} has lost its link {link_losses} times (link_down_events): connections stall each time",
            "look at the cable, the transceiver and the port of the switch (ethtool -m)",
        )  # fmt: skip
    collisions = max(
        *(counters.get(f"tx_{name}", 0) for name in ("collisions", "collsns")), counters.get("collisions", 0)
    )
    if _are_many(collisions, sent):
        yield RouteFault(
            "half duplex", device_name,
            f"{device_name} has met {collisions} collisions: it sends and receives in turn (half duplex)",
            f"let both ends negotiate: ethtool -s {device_name} autoneg on, and the same on the switch",
        )  # fmt: skip


def _read_adapter_counters(values: Mapping[str, str]) -> dict[str, int]:
    """The counters of ethtool by the names that the kernel has for their sums."""
    counts = {
        name.removeprefix("counter "): int(value) for name, value in values.items() if name.startswith("counter ")
    }
    sums = {name: max((counts[each] for each in names if each in counts), default=0)
            for name, names in _ADAPTER_COUNTERS.items()}  # fmt: skip
    return {name: count for name, count in sums.items() if count}


def find_port_counter_faults(host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Errors of InfiniBand ports: one fault for each port, as they have one cause, its link."""
    for counters in host_tables.infiniband_counters:
        counts = dict(counters.counts)
        yield CheckedItem("the counters of an InfiniBand port", counters.port)
        received = counts.get("PortRcvPkts", 0) or counts.get("PortUnicastRcvPkts", 0)
        errors = [f"{name} {counts[name]}" for name in _PORT_ERRORS if _are_many(counts.get(name, 0), received)]
        errors += [f"{name} {counts[name]}" for name in _LINK_ERRORS if counts.get(name, 0) >= MANY_LINK_FAILURES]
        if errors:
            yield RouteFault(
                "InfiniBand errors", counters.port,
                f"{counters.port} has many errors ({', '.join(errors)}): packets are sent again, and the link falls"
                " back to fewer lanes or a lower speed",
                "look at the cable and the port of the switch (ibqueryerrors, mlxlink), then clear the counters"
                " (perfquery -R) and look again",
            )  # fmt: skip
        discards, sent = counts.get("PortXmitDiscards", 0), counts.get("PortXmitPkts", 0)
        if _are_many(discards, sent):
            yield RouteFault(
                "packets not sent", counters.port,
                f"{counters.port} discarded {discards} packets that it was to send (PortXmitDiscards): what is behind"
                " it is down or congested",
                "look for the congested or failed port behind it (ibqueryerrors, ibdiagnet)",
            )  # fmt: skip


def _check_drops(device_name: str, counters: Mapping[str, int]) -> Iterator[RouteFault]:
    """Packets that the kernel dropped before it sent them, or after it received them."""
    sent, received = counters.get("tx_packets", 0), counters.get("rx_packets", 0)
    unsent, ignored = counters.get("tx_dropped", 0), counters.get("rx_dropped", 0)
    if sent + unsent >= MIN_PACKETS and unsent >= MIN_DROPPED_SENT * (sent + unsent):
        yield RouteFault(
            "packets not sent", device_name,
            f"{unsent} of {sent + unsent} packets were dropped before {device_name} sent them (tx dropped), for one of"
            " several reasons: a full queue, a queueing discipline, a firewall or the driver",
            f"tc -s qdisc show dev {device_name}, then ethtool -S {device_name}",
        )  # fmt: skip
    if received >= MIN_PACKETS and ignored >= _MIN_DROPPED_RECEIVED * received:
        yield RouteFault(
            "received packets dropped", device_name,
            f"the kernel dropped {ignored} of {received} packets that {device_name} received (rx dropped), for one of"
            " several reasons: a full backlog, little memory, a VLAN or protocol that it does not know",
            f"look at /proc/net/softnet_stat and ethtool -S {device_name}, and at what arrives (tcpdump -i"
            f" {device_name})",
        )  # fmt: skip


def _are_many(error_count: int, packet_count: int) -> bool:
    return error_count >= _MIN_ERRORS and error_count > _MIN_ERROR_FRACTION * packet_count
