# SPDX-License-Identifier: Apache-2.0
"""What would help an application, from what it was seen to do."""
