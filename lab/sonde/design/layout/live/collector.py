# SPDX-License-Identifier: Apache-2.0
"""A shell script that prints everything that a layout check reads, for machines without Sonde. It only reads."""

from __future__ import annotations

from sonde.model.shell import ShellScript

# Commands that print what `saved_output` reads. `$pool` and `$array` are set by loops.
_BODY = r"""
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
part() { # part COMMAND...: the command and its output
    command -v "$1" > /dev/null 2>&1 || return 0
    printf '=== sonde layout collect: %s ===\n' "$*" # echo of dash would break the line at a \n of find
    "$@" 2>&1 || true
    echo
}
part date +%Y-%m-%dT%H:%M:%S%z
part lsblk --json --bytes --output-all
part findmnt --json --real --output TARGET,SOURCE,FSTYPE,OPTIONS
[ ! -r /etc/fstab ] || part cat /etc/fstab
part find /dev -path /dev/char -prune -o -path /dev/block -prune -o -type l -printf '%p %l\n'
part find /sys/block -type l -printf '%p %l\n'
part blkid
[ ! -r /proc/mdstat ] || part cat /proc/mdstat
for file in /etc/mdadm.conf /etc/mdadm/mdadm.conf; do
    [ ! -r "$file" ] || part cat "$file"
done
for array in /sys/block/md*; do
    [ ! -d "$array/md" ] || part mdadm --detail "/dev/${array##*/}"
    for member in "$array"/md/dev-*; do
        [ ! -d "$member" ] || part mdadm --examine "/dev/${member##*/md/dev-}"
    done
done
part lvs --segments --units b --nosuffix --reportformat json \
    -o +segtype,stripes,stripe_size,devices,seg_size,lv_size,origin,data_percent,metadata_percent,pool_lv,copy_percent
part pvs --units b --nosuffix --reportformat json -o pv_name,vg_name,pe_start,vg_extent_size,pv_size,dev_size
part lvmconfig --typeconfig full devices/filter devices/global_filter
[ ! -r /etc/lvm/devices/system.devices ] || part cat /etc/lvm/devices/system.devices
part dmsetup table
part multipath -ll
part multipathd show maps status
for disk in /sys/block/*; do
    case ${disk##*/} in loop* | ram* | zram* | sr* | fd*) continue ;; esac
    files=
    for file in scheduler read_ahead_kb max_sectors_kb max_hw_sectors_kb rotational nr_requests nomerges write_cache \
        rq_affinity wbt_lat_usec io_timeout zoned logical_block_size physical_block_size; do
        [ ! -r "$disk/queue/$file" ] || files="$files $disk/queue/$file"
    done
    for file in md/stripe_cache_size md/sync_action md/group_thread_cnt md/sync_speed_max \
        md/reshape_position md/mismatch_cnt md/bitmap/chunksize md/level md/layout \
        md/consistency_policy md/journal_mode \
        device/queue_depth device/timeout device/eh_timeout device/state ro alignment_offset; do
        [ ! -r "$disk/$file" ] || files="$files $disk/$file"
    done
    for file in "$disk"/device/../../../phy-*/sas_phy/*/negotiated_linkrate "$disk"/device/device/*_link_* \
        "$disk"/device/device/../max_link_* "$disk"/device/nvme*/device/*_link_*; do
        [ ! -r "$file" ] || files="$files $file"
    done
    part grep -H "" $files
    [ ! -e "$disk/device/timeout" ] || part smartctl -l scterc "/dev/${disk##*/}"
    [ ! -e "$disk/device" ] || part smartctl -a "/dev/${disk##*/}"
done
files=
for file in /sys/class/scsi_host/host*/proc_name /sys/class/scsi_host/host*/version_fw \
    /sys/class/scsi_host/host*/board_name /sys/class/scsi_host/host*/fw_version /sys/class/scsi_host/host*/fwrev \
    /sys/class/scsi_host/host*/model*name /sys/class/scsi_host/host*/device/../*_link_* \
    /sys/class/scsi_host/host*/device/../../max_link_* /sys/class/fc_host/host*/port_state \
    /sys/class/fc_host/host*/speed /sys/class/fc_host/host*/supported_speeds \
    /sys/devices/system/cpu/cpufreq/policy*/scaling_governor /sys/devices/system/cpu/cpufreq/policy*/scaling_driver \
    /sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference /proc/sys/vm/dirty_ratio \
    /proc/sys/vm/dirty_bytes /proc/sys/vm/dirty_background_ratio /proc/sys/vm/dirty_background_bytes \
    /proc/sys/vm/swappiness /proc/sys/vm/min_free_kbytes /proc/sys/vm/zone_reclaim_mode \
    /proc/sys/vm/vfs_cache_pressure; do
    [ ! -r "$file" ] || files="$files $file"
done
part grep -H "" $files
part cat /proc/swaps
for box in /sys/class/enclosure/*/; do
    [ -d "$box" ] || continue
    part grep -rsH --include=status --include=fault --include=components "" "$box" "${box}device/vendor" \
        "${box}device/model" "${box}device/rev"
    for generic in "${box}"device/scsi_generic/*; do
        [ ! -d "$generic" ] || part sg_ses --page=es "/dev/${generic##*/}"
    done
done
for tool in storcli64 storcli storcli2 perccli64 perccli perccli2; do
    part "$tool" /call show all
    part "$tool" /call/eall/sall show all
done
part ssacli controller all show config detail
part systemctl show --property=Id,LoadState,ActiveState,SubState,UnitFileState mdmonitor.service mdadm.service \
    smartd.service smartmontools.service zfs-zed.service zed.service multipathd.service fstrim.timer raid-check.timer \
    mdcheck_start.timer
part systemctl list-units --state=failed --all --plain --no-legend --no-pager
part dmesg --level=emerg,alert,crit,err,warn
part df -iT
findmnt --real --noheadings --types xfs --output TARGET 2>/dev/null | while read -r mount; do
    part xfs_info "$mount"
done
findmnt --real --noheadings --types ext4,ext3 --output SOURCE 2>/dev/null | sort -u | while read -r device; do
    case $device in *'['*) ;; *) part dumpe2fs -h "$device" ;; esac
done
part zpool status
part zpool list -o name,size,allocated,free,checkpoint,expandsize,fragmentation,capacity,dedupratio,health,altroot
part zpool get all
files=
for file in zfs_arc_max zfs_nocacheflush zfs_prefetch_disable zfs_txg_timeout zfs_dirty_data_max zil_replay_disable; do
    [ ! -r "/sys/module/zfs/parameters/$file" ] || files="$files /sys/module/zfs/parameters/$file"
done
[ -z "$files" ] || part grep -H "" $files
part zfs get -p -d 0 creation
part zfs get -t filesystem \
    sync,dedup,recordsize,checksum,primarycache,readonly,mountpoint,canmount,mounted,atime,xattr,compression,copies,redundant_metadata,logbias,dnodesize,special_small_blocks,acltype,quota,refquota,used,referenced,usedbysnapshots
findmnt --real --noheadings --types lustre --output SOURCE 2>/dev/null | sort -u | while read -r device; do
    case $device in /dev/*) part tunefs.lustre --dryrun "$device"; part dumpe2fs -h "$device" ;; esac
done
findmnt --real --noheadings --types lustre --output SOURCE,TARGET 2>/dev/null | while read -r source mount; do
    case $source in *:/*) part lfs getstripe -d "$mount" ;; *) continue ;; esac
    lfs pool_list "$mount" 2>/dev/null | grep '\.' | while read -r pool; do
        part lfs pool_list "$pool"
    done
done
part lctl list_nids
part lfs df
part lfs df -i
part lctl dl
part lctl get_param 'obdfilter.*.brw_size' 'osc.*.max_pages_per_rpc' 'osc.*.max_rpcs_in_flight' 'osc.*.active' \
    'osc.*.ost_conn_uuid' 'osc.*.max_dirty_mb' 'mdc.*.max_rpcs_in_flight' 'llite.*.max_read_ahead_mb' \
    'llite.*.max_cached_mb' 'llite.*.statahead_max' 'llite.*.xattr_cache' 'obdfilter.*.degraded' \
    'obdfilter.*.sync_journal' 'osp.*.max_create_count' 'osp.*.prealloc_status' 'lod.*.stripecount' \
    'lod.*.stripesize' debug version timeout at_max 'ost.OSS.*.threads_max' 'obdfilter.*.*_cache_enable' \
    'obdfilter.*.recovery_status' 'mdt.*.recovery_status' 'mdd.*.changelog_users' 'osd-*.*.quota_slave.enabled' \
    'osc.*.checksums'
"""


def make_collector() -> str:
    """The text of the script."""
    script = ShellScript()
    script.add_comment(
        "Prints what sonde layout check reads of this machine. It reads only; run it as root to see all."
    )
    script.add_comment("sh collect.sh > host.txt, then elsewhere: sonde layout check --from host.txt")
    script.add_literal_lines("set -u")
    script.add_literal_lines(_BODY)
    return str(script)
