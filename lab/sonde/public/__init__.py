# SPDX-License-Identifier: Apache-2.0
"""What `import sonde` gives to programs of others: reading an archive. Members of these classes are only ever added."""
