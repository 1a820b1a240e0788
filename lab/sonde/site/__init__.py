# SPDX-License-Identifier: Apache-2.0
"""A static site of the whole archive: overview, histories, events, runs. It needs no script and no server.

`build_site` in `sonde.site.build` writes it; `site_folder` rewrites only pages whose content changed; `site_server`
shows it on the loopback interface.
"""
