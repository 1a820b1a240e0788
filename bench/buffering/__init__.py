# SPDX-License-Identifier: Apache-2.0
"""What the preload library costs and gains, in turns with the same program without it.

`cells` says what is measured and under which settings, `places` makes the file systems, `programs` compiles what runs
there, `turns` runs it, `costs` measures single calls within one process. `bench/preload.py` is the program.
"""
