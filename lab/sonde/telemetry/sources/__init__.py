# SPDX-License-Identifier: Apache-2.0
"""One file per source of telemetry; `sonde.telemetry.list` lists them."""
