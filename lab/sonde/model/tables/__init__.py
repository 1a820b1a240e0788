# SPDX-License-Identifier: Apache-2.0
"""Tables of a TOML or JSON file as frozen dataclasses: how members are declared, read, and written as JSON Schema."""
