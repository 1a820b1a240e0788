# SPDX-License-Identifier: Apache-2.0
"""Declares tables of a TOML or JSON file as dataclasses, reads them, and generates their JSON Schema."""
