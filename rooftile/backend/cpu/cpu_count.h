#pragma once

namespace rooftile::cpu {

/// How many threads can run at once here: the lesser of the affinity mask and the cgroup's CPU quota
/// (rounded up), at least 1. Reads /proc and /sys: ask once, not in a loop.
int usable_cpus();

/// CPUs in this thread's affinity mask, at least 1.
int affinity_cpus();

/// CPU quota of this process's cgroup and of those above it, version 1 and 2, rounded up, at least 1;
/// INT_MAX where there is none or it cannot be read. `root` goes before every path that is opened.
int cgroup_cpus(const char* root = "");

}  // namespace rooftile::cpu
