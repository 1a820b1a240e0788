# SPDX-License-Identifier: Apache-2.0
"""Parameters of performance models (the `model` table of a part), by kind of part.

To add a parameter, add a line here and run ``tools/schemas``. The simulator reads them from the resolved form in base
units. Every parameter is optional; a model that lacks one reports its assumption.
"""

from __future__ import annotations

Parameters = dict[str, tuple[str, str]]  # name -> (kind of number, meaning)

COMMON_PARAMETERS: Parameters = {
    "noise": ("share", "coefficient of variation of the time of one request"),
    "slowdown": ("number", "factor on every service time; 1 is as built, 5 is a sick part"),
}
HOST_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "call_cost": ("duration", "processor time of one I/O call"),
    "call_rate": ("op_rate", "calls per second that one task can issue"),
    "copy_rate": ("rate", "rate of one copy between user memory and page cache"),
    "page_cache": ("size", "memory that may hold file pages"),
    "dirty_limit": ("size", "dirty pages at which writers wait"),
    "write_behind": ("rate", "rate at which dirty pages leave in the background"),
    "read_ahead": ("size", "largest read-ahead of one stream"),
    "read_ahead_total": ("size", "largest read-ahead of all streams of the node together, in flight"),
    "evict_cost": ("duration", "processor time to give up one cached page"),
    "cached_names": ("count", "names whose attributes the node keeps, so that a stat of one is no request"),
    "rpcs_in_flight": ("count", "requests under way per target"),
    "rpc_size": ("size", "largest request to a target"),
    "dirty_per_target": ("size", "dirty data held per target"),
}
SERVER_PARAMETERS: Parameters = HOST_PARAMETERS | {
    "threads": ("count", "service threads"),
    "request_cost": ("duration", "time of one request on a thread, beside moving its bytes"),
    "cache": ("size", "memory that caches what drives hold"),
    "cache_max_file": ("size", "largest file that the cache keeps"),
    "rate": ("rate", "bytes per second through the server"),
    "create_cost": ("duration", "service time of one create"),
    "stat_cost": ("duration", "service time of one stat"),
    "open_cost": ("duration", "service time of one open or close"),
    "remove_cost": ("duration", "service time of one remove"),
    "readdir_cost": ("duration", "service time of one entry of a listing"),
    "rename_cost": ("duration", "service time of one rename"),
    "mkdir_cost": ("duration", "service time of one mkdir or rmdir"),
    "journal_cost": ("duration", "extra service time of an operation that changes the journal"),
    "cached_cost": ("duration", "service time of an operation answered from memory"),
}
NETWORK_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "message_cost": ("duration", "time of one message beside latency and bytes"),
    "congestion": ("share", "share of the rate that is lost when every link is used"),
}
DRIVE_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "seek": ("duration", "average time to move to another place"),
    "rotation": ("duration", "time of one turn"),
    "turnaround": ("duration", "extra time between a read and a write"),
    "request_cost": ("duration", "time of one request, beside moving its bytes"),
    "inner_rate": ("share", "rate at the inner edge, as a share of the outer one"),
}
CONTROLLER_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "request_cost": ("duration", "time of one request, beside moving its bytes"),
    "parity_rate": ("rate", "rate at which parity is computed"),
}
RAID_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "partial_stripe_cost": ("duration", "extra time of a write that does not fill a stripe, beside reading it"),
    "rebuild_share": ("share", "share of the rate that a rebuild takes"),
    "degraded_share": ("share", "share of the rate that is left with a drive missing"),
}
TARGET_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "rate": ("rate", "bytes per second of the target, as seen by its server"),
    "queue_depth": ("count", "requests that it works on at once"),
    "request_cost": ("duration", "time of one request, beside moving its bytes"),
    "writer_cost": ("duration", "extra time of a request for each further writer of the same object"),
    "contention": ("share", "share of the rate that each further file with requests at the same time takes away"),
}
FILE_SYSTEM_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "lock_cost": ("duration", "time to be granted a lock that nobody holds"),
    "revoke_cost": ("duration", "time to take a lock from another client"),
    "lock_unit": ("size", "smallest extent that a lock covers"),
    "cached_page_cost": ("duration", "extra time of a read for each cached page of the file that a write left"),
    "log_rate": ("rate", "rate that the internal journal allows"),
    "layout_cost": ("duration", "extra time of an open for each target of a file's layout"),
}
MOUNT_PARAMETERS: Parameters = COMMON_PARAMETERS | {
    "forward_cost": ("duration", "extra time of one call that another node forwards, on a thread of that node"),
    "forward_threads": ("count", "calls that one forwarding node works on at once"),
    "forward_rate": ("rate", "bytes per second through one forwarding node"),
    "client_read_rate": ("rate", "bytes per second that one client reads on this path, all its tasks together"),
    "client_write_rate": ("rate", "bytes per second that one client writes on this path, all its tasks together"),
    "reads_in_flight": ("count", "reads that the client keeps under way for one task that streams"),
    "writes_in_flight": ("count", "writes that the client keeps under way for one task that streams"),
    "data_cost": ("duration", "extra time to create a file that holds something"),
    "size_cost": ("duration", "extra time to create a file for each KiB that it holds"),
}
