// SPDX-License-Identifier: Apache-2.0
// Facts about node, groups and devices, from trees that look like /proc and /sys, and from this machine.
#include "records/environment.hpp"
#include "records/block_device.hpp"
#include "records/cgroup.hpp"
#include "records/file_system.hpp"
#include "records/system_file.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <filesystem>

using nlohmann::json;
using sonde::records::describe_block_device;
using sonde::records::read_cgroup_limits;
using sonde::tests::TemporaryFolder;

TEST_CASE("cgroup_v2_tightest_limit_counts") {
    const TemporaryFolder root;
    root.write("proc/self/cgroup", "0::/batch/job 7\n");
    root.write("proc/self/mountinfo", "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    root.write("cg/batch/job 7/memory.max", "max\n");
    root.write("cg/batch/job 7/cpu.max", "max 100000\n");
    root.write("cg/batch/memory.max", "4096000\n");
    root.write("cg/batch/memory.current", "1000\n");
    root.write("cg/batch/memory.stat", "anon 400\nfile 600\ninactive_file 500\nactive_file 70\n");
    root.write("cg/batch/cpu.max", "150000 100000\n");
    const auto limits = read_cgroup_limits(root.path());
    CHECK(limits.memory_bytes == 4096000);
    CHECK(limits.memory_used_bytes == 1000);
    CHECK(limits.memory_cache_bytes == 570);
    CHECK(limits.cpus == 1.5);
}

TEST_CASE("cgroup_v2_in_container_uses_mounted_part") {
    const TemporaryFolder root;
    root.write("proc/self/cgroup", "0::/docker/abc/inner\n");
    root.write("proc/self/mountinfo", "30 20 0:26 /docker/abc /cg rw - cgroup2 cgroup rw\n");
    root.write("cg/inner/memory.max", "8000\n");
    root.write("cg/memory.max", "7000\n");
    CHECK(read_cgroup_limits(root.path()).memory_bytes == 7000);
}

TEST_CASE("cgroup_v1_huge_number_means_no_limit") {
    const TemporaryFolder root;
    root.write("proc/self/cgroup", "5:memory:/slurm/job\n4:cpu,cpuacct:/slurm\n1:name=systemd:/\n");
    root.write("proc/self/mountinfo",
               "31 20 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n"
               "32 20 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    root.write("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("cg/memory/slurm/job/memory.limit_in_bytes", "123456789\n");
    root.write("cg/memory/slurm/job/memory.stat", "inactive_file 1\ntotal_inactive_file 10\ntotal_active_file 5\n");
    root.write("cg/cpu/cpu.cfs_quota_us", "-1\n");
    root.write("cg/cpu/cpu.cfs_period_us", "100000\n");
    root.write("cg/cpu/slurm/cpu.cfs_quota_us", "400000\n");
    root.write("cg/cpu/slurm/cpu.cfs_period_us", "100000\n");
    const auto limits = read_cgroup_limits(root.path());
    CHECK(limits.memory_bytes == 123456789);
    CHECK(limits.memory_cache_bytes == 15);
    CHECK(limits.cpus == 4.0);
}

TEST_CASE("no_cgroups_mean_no_limits") {
    const TemporaryFolder root;
    const auto limits = read_cgroup_limits(root.path());
    CHECK_FALSE(limits.memory_bytes.has_value());
    CHECK_FALSE(limits.cpus.has_value());
}

TEST_CASE("partition_has_its_size_and_the_queue_of_its_disk") {
    const TemporaryFolder root;
    const std::string disk = "sys/devices/pci0/nvme0n1/";
    root.write(disk + "size", "2000\n");
    root.write(disk + "queue/scheduler", "none [mq-deadline] kyber\n");
    root.write(disk + "queue/rotational", "0\n");
    root.write(disk + "queue/nr_requests", "1023\n");
    root.write(disk + "queue/max_sectors_kb", "1280\n");
    root.write(disk + "queue/read_ahead_kb", "128\n");
    root.write(disk + "queue/optimal_io_size", "0\n");
    root.write(disk + "device/model", "Fast \xE9 Disk   \n");
    root.write(disk + "nvme0n1p2/partition", "2\n");
    root.write(disk + "nvme0n1p2/size", "100\n");
    std::filesystem::create_directories(root / "sys/dev/block");
    std::filesystem::create_directory_symlink("../../devices/pci0/nvme0n1/nvme0n1p2", root / "sys/dev/block/259:2");
    const json device = describe_block_device("259:2", root.path());
    CHECK(device == json{{"name", "nvme0n1p2"},
                         {"kind", "partition"},
                         {"size_bytes", 51200},
                         {"rotational", false},
                         {"scheduler", "mq-deadline"},
                         {"queue_requests", 1023},
                         {"maximum_request_bytes", 1280 * 1024},
                         {"read_ahead_bytes", 131072},
                         {"model", "Fast \\xe9 Disk"}});
}

TEST_CASE("disabled_read_ahead_is_zero_not_absent") {
    const TemporaryFolder root;
    root.write("sys/dev/block/7:0/size", "2000\n");
    root.write("sys/dev/block/7:0/queue/read_ahead_kb", "0\n");
    root.write("sys/dev/block/7:0/queue/optimal_io_size", "0\n");
    const json device = describe_block_device("7:0", root.path());
    CHECK(device["read_ahead_bytes"] == 0);
    CHECK_FALSE(device.contains("optimal_io_bytes"));
}

TEST_CASE("raid_device_lists_members_and_chunk") {
    const TemporaryFolder root;
    const std::string device = "sys/dev/block/9:0/";
    root.write(device + "md/level", "raid6\n");
    root.write(device + "md/chunk_size", "524288\n");
    root.write(device + "slaves/sdb/size", "1\n");
    const json device_facts = describe_block_device("9:0", root.path());
    CHECK(device_facts["kind"] == "md");
    CHECK(device_facts["raid_level"] == "raid6");
    CHECK(device_facts["raid_chunk_bytes"] == 524288);
    CHECK(device_facts["members"] == json::array({"sdb"}));
}

TEST_CASE("missing_device_is_null") {
    const TemporaryFolder root;
    CHECK(describe_block_device("0:45", root.path()).is_null());
    CHECK(sonde::records::read_device_number("/dev/null").empty());
}

TEST_CASE("proc_numbers_need_their_unit") {
    CHECK(sonde::records::find_bytes("A: 5 kB\nMemTotal:       16 kB\nX: 1\n", "MemTotal") == 16384);
    CHECK(sonde::records::find_bytes("HugePages_Total:       3\n", "HugePages_Total") == 3);
    CHECK_FALSE(sonde::records::find_bytes("MemTotalX: 1 kB\n", "MemTotal").has_value());
    CHECK_FALSE(sonde::records::find_bytes("MemTotal: many kB", "MemTotal").has_value());
    CHECK(sonde::records::read_bracketed_choice("always [madvise] never") == "madvise");
    CHECK(sonde::records::read_bracketed_choice("none") == "none");
}

TEST_CASE("node_line_matches_system") {
    const TemporaryFolder folder;
    const json node = sonde::records::describe_node(folder.path());
    utsname name{};
    REQUIRE(::uname(&name) == 0);
    CHECK(node["type"] == "node");
    CHECK(node["host"] == name.nodename);
    CHECK(node["kernel"] == std::string("Linux ") + name.release);
    cpu_set_t set;
    REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
    CHECK(node["cpus"] == CPU_COUNT(&set));
    CHECK(node["page_bytes"] == ::sysconf(_SC_PAGESIZE));
    CHECK(node["memory_bytes"].get<std::uint64_t>() <= node["memory_physical_bytes"].get<std::uint64_t>());
    CHECK(node["memory_bytes"].get<std::uint64_t>() > (64ULL << 20U));
    const json& system = node["file_system"];
    CHECK(system["total_bytes"].get<std::uint64_t>() >= system["free_bytes"].get<std::uint64_t>());
    CHECK(system["free_bytes"].get<std::uint64_t>() >= system["available_bytes"].get<std::uint64_t>());
    CHECK(folder.path().rfind(system["mount_point"].get<std::string>(), 0) == 0);
    CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("node_line_counts_bound_processors") {
    cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    cpu_set_t single_cpu;
    CPU_ZERO(&single_cpu);
    for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &single_cpu);
            break;
        }
    }
    REQUIRE(::sched_setaffinity(0, sizeof single_cpu, &single_cpu) == 0);
    CHECK(sonde::records::describe_node(".")["cpus"] == 1);
    REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("directory_with_invalid_utf8_is_described") {
    const TemporaryFolder folder;
    const std::string odd = folder / "odd \xFF name\n\"quoted\"";
    std::filesystem::create_directory(odd);
    CHECK_NOTHROW(sonde::records::describe_node(odd).dump());
}

TEST_CASE("memory_backed_and_pseudo_file_systems_are_recognized") {
    const auto shared = sonde::records::describe_file_system("/dev/shm");
    if (shared.type == "tmpfs") {
        CHECK(shared.memory_backed);
        CHECK_FALSE(shared.network);
        CHECK(shared.direct_offset_align == 0);
    } else {
        MESSAGE("skipped: no tmpfs at /dev/shm");
    }
    CHECK(sonde::records::describe_file_system("/proc").type == "proc");
}

TEST_CASE("direct_io_alignment_is_read_when_reported") {
    const TemporaryFolder folder;
    const auto system = sonde::records::describe_file_system(folder.path());
    if (system.type != "ext4" && system.type != "xfs") {
        MESSAGE("skipped: " << system.type << " may say nothing");
        return;
    }
    if (system.direct_offset_align == 0) {
        MESSAGE("skipped: this kernel has no STATX_DIOALIGN");
        return;
    }
    CHECK(system.direct_offset_align >= 512);
    CHECK((system.direct_offset_align & (system.direct_offset_align - 1)) == 0);
    CHECK(system.direct_memory_align > 0);
}
