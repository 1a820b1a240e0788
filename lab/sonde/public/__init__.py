# SPDX-License-Identifier: Apache-2.0
"""The public API of `import sonde`: reading an archive. Later versions only add members to these classes."""
