#include "rooftile/backend/cpu/isa.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/backend/cpu/cpu_count.h"

namespace rooftile::cpu {
namespace {

constexpr CpuFeatures kFull = {
    .leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29,
    .leaf7_ebx = 1u << 5 | 1u << 8 | 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31,
    .leaf7_1_eax = 0,
    .xcr0 = 0xe7};

CpuFeatures without(std::uint32_t CpuFeatures::*word, int bit) {
  CpuFeatures features = kFull;
  features.*word &= ~(1u << bit);
  return features;
}

CpuFeatures with_xcr0(std::uint64_t xcr0) {
  CpuFeatures features = kFull;
  features.xcr0 = xcr0;
  return features;
}

TEST(Isa, NamesParse) {
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    Isa parsed = isa == Isa::avx2 ? Isa::baseline : Isa::avx2;
    EXPECT_TRUE(parse(name(isa), parsed)) << name(isa);
    EXPECT_EQ(parsed, isa);
  }
  EXPECT_STREQ(name(Isa::avx512), "avx512");
  Isa untouched = Isa::avx2;
  for (const char* text : {"", "avx", "AVX2", "avx2 ", "avx5120"})
    EXPECT_FALSE(parse(text, untouched)) << text;
  EXPECT_EQ(untouched, Isa::avx2);
}

TEST(Isa, NamesWhatIsMissing) {
  constexpr auto ecx = &CpuFeatures::leaf1_ecx;
  constexpr auto ebx = &CpuFeatures::leaf7_ebx;
  const auto avx2 = [](const CpuFeatures& f) { return std::string(missing(Isa::avx2, f) ?: ""); };
  const auto avx512 = [](const CpuFeatures& f) { return std::string(missing(Isa::avx512, f) ?: ""); };
  EXPECT_EQ(avx2(kFull), "");
  EXPECT_EQ(avx512(kFull), "");
  const std::pair<CpuFeatures, const char*> both[] = {{without(ecx, 28), "avx"},
                                                      {without(ebx, 5), "avx2"},
                                                      {without(ecx, 12), "fma"},
                                                      {without(ecx, 29), "f16c"},
                                                      {without(ebx, 8), "bmi2"}};
  for (const auto& [features, what] : both) {
    EXPECT_EQ(avx2(features), std::string("this CPU has no ") + what);
    EXPECT_EQ(avx512(features), std::string("this CPU has no ") + what);
  }
  const std::pair<CpuFeatures, const char*> only512[] = {{without(ebx, 16), "avx512f"},
                                                         {without(ebx, 30), "avx512bw"},
                                                         {without(ebx, 28), "avx512cd"},
                                                         {without(ebx, 17), "avx512dq"},
                                                         {without(ebx, 31), "avx512vl"}};
  for (const auto& [features, what] : only512) {
    EXPECT_EQ(avx2(features), "");
    EXPECT_EQ(avx512(features), std::string("this CPU has no ") + what);
  }
  for (std::uint64_t xcr0 : {0x0, 0x2, 0x4, 0xe3})
    EXPECT_EQ(avx2(with_xcr0(xcr0)), "the operating system does not save the avx registers") << xcr0;
  for (std::uint64_t xcr0 : {0x07, 0x27, 0xc7, 0xa7, 0x67}) {
    EXPECT_EQ(avx2(with_xcr0(xcr0)), "") << xcr0;
    EXPECT_EQ(avx512(with_xcr0(xcr0)), "the operating system does not save the avx512 registers") << xcr0;
  }
  EXPECT_EQ(missing(Isa::baseline, CpuFeatures{}), nullptr);
}

TEST(Isa, ChoosesTheBest) {
  const CpuFeatures no_bw = without(&CpuFeatures::leaf7_ebx, 30);
  const std::pair<CpuFeatures, Isa> cases[] = {{kFull, Isa::avx512}, {no_bw, Isa::avx2}, {{}, Isa::baseline}};
  for (const auto& [features, isa] : cases)
    for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
      const IsaChoice choice = choose_isa(nothing, features);
      EXPECT_TRUE(choice.ok);
      EXPECT_EQ(choice.isa, isa);
      EXPECT_EQ(choice.reason, std::string(name(isa)) + ": the best this CPU supports");
    }
}

TEST(Isa, ObeysTheOverride) {
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    const IsaChoice choice = choose_isa(name(isa), kFull);
    EXPECT_TRUE(choice.ok);
    EXPECT_EQ(choice.isa, isa);
    EXPECT_EQ(choice.reason, std::string(name(isa)) + ": chosen by ROOFTILE_CPU");
  }
}

TEST(Isa, RefusesTheOverrideWithASentence) {
  const IsaChoice unknown = choose_isa("avx9", kFull);
  EXPECT_FALSE(unknown.ok);
  EXPECT_STREQ(unknown.reason, "ROOFTILE_CPU=avx9: unknown; known are baseline, avx2, avx512");
  const IsaChoice absent = choose_isa("avx512", without(&CpuFeatures::leaf7_ebx, 30));
  EXPECT_FALSE(absent.ok);
  EXPECT_EQ(absent.isa, Isa::baseline);
  EXPECT_STREQ(absent.reason, "ROOFTILE_CPU=avx512: this CPU has no avx512bw");
  const IsaChoice lengthy = choose_isa(std::string(5000, 'x').c_str(), kFull);
  EXPECT_FALSE(lengthy.ok);
  EXPECT_TRUE(std::string(lengthy.reason).ends_with("x: unknown; known are baseline, avx2, avx512"));
}

// The kernel's own list: it leaves out what the operating system does not save.
TEST(Isa, AgreesWithProcCpuinfo) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(cpuinfo, line))
    if (line.starts_with("flags")) flags = line + " ";
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto has_all = [&](std::vector<const char*> names) {
    for (const char* flag : names)
      if (flags.find(std::string(" ") + flag + " ") == std::string::npos) return false;
    return true;
  };
  const bool avx2 = has_all({"avx", "avx2", "fma", "f16c", "bmi2"});
  const bool avx512 = avx2 && has_all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  EXPECT_TRUE(supported(Isa::baseline));
  EXPECT_EQ(supported(Isa::avx2), avx2);
  EXPECT_EQ(supported(Isa::avx512), avx512);
  EXPECT_EQ(has_avx512_bf16(), avx512 && has_all({"avx512_bf16"}));
  EXPECT_EQ(best_isa(), avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::baseline);
}

/// A made-up /proc and /sys below a folder of its own.
class CgroupCpus : public testing::Test {
 protected:
  CgroupCpus() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rooftile_cgroup_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~CgroupCpus() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  int cpus() { return cgroup_cpus(root_.c_str()); }

  std::string root_;
};

constexpr char kV2Mount[] =
    "25 30 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(CgroupCpus, NoneWithoutCgroups) {
  EXPECT_EQ(cpus(), INT_MAX);
  write("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(cpus(), INT_MAX);
  write("/proc/self/mountinfo", kV2Mount);
  EXPECT_EQ(cpus(), INT_MAX);  // the root cgroup has no cpu.max
}

TEST_F(CgroupCpus, V2RoundsUp) {
  write("/proc/self/mountinfo", kV2Mount);
  write("/proc/self/cgroup", "0::/user.slice\n");
  const std::pair<const char*, int> cases[] = {
      {"max 100000\n", INT_MAX}, {"100000 100000\n", 1},   {"100001 100000\n", 2}, {"150000 100000\n", 2},
      {"1000 100000\n", 1},      {"400000 50000", 8},      {"", INT_MAX},          {"nonsense\n", INT_MAX},
      {"100000 0\n", INT_MAX},   {"-1 100000\n", INT_MAX}, {"100000\n", INT_MAX}};
  for (const auto& [text, expected] : cases) {
    write("/sys/fs/cgroup/user.slice/cpu.max", text);
    EXPECT_EQ(cpus(), expected) << text;
  }
}

TEST_F(CgroupCpus, V2TakesTheLeastOnTheWayUp) {
  write("/proc/self/mountinfo", kV2Mount);
  write("/proc/self/cgroup", "0::/a.slice/b.slice/c.scope\n");
  write("/sys/fs/cgroup/a.slice/b.slice/c.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), INT_MAX);
  write("/sys/fs/cgroup/a.slice/b.slice/cpu.max", "700000 100000\n");
  EXPECT_EQ(cpus(), 7);
  write("/sys/fs/cgroup/a.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpus(), 3);
  write("/sys/fs/cgroup/a.slice/b.slice/c.scope/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpus(), 2);
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");  // a container's own: its mount point has one
  EXPECT_EQ(cpus(), 1);
  write("/sys/fs/cgroup/a.slice/other/cpu.max", "1 100000\n");
  EXPECT_EQ(cpus(), 1);
}

TEST_F(CgroupCpus, V1WithControllersMountedTogether) {
  write("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro,mode=755\n"
        "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:11 master:3 - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "12:cpuset:/x\n4:cpu,cpuacct:/docker/12ab\n1:name=systemd:/\n0::/\n");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/12ab/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/12ab/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpus(), INT_MAX);
  write("/sys/fs/cgroup/cpu,cpuacct/docker/12ab/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpus(), 3);
  write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "50000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(cpus(), 2);
}

TEST_F(CgroupCpus, ContainersMountTheirOwnCgroup) {
  // Seen from inside without a cgroup namespace: the path is the host's, the mount starts at it.
  write("/proc/self/mountinfo",
        "33 31 0:30 /docker/12ab /sys/fs/cgroup/cpu ro master:3 - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/12ab/inner\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(cpus(), 4);
  write("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(cpus(), 2);
  write("/sys/fs/cgroup/34cd/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/34cd/cpu.cfs_quota_us", "100000\n");
  // A name that only begins alike, and another namespace's path: the mount point is what there is.
  for (const char* path : {"/docker/12abc", "/../12ab", "/docker/12ab/../34cd", ""}) {
    write("/proc/self/cgroup", std::string("4:cpu,cpuacct:") + path + "\n");
    EXPECT_EQ(cpus(), 4) << path;
  }
}

TEST_F(CgroupCpus, ReadsLongLinesAndEscapedNames) {
  write("/proc/self/mountinfo", "20 1 0:9 / / rw - overlay overlay rw,lowerdir=" + std::string(20000, 'x') +
                                    "\n25 30 0:22 / /sys/a\\040b\\134c rw - cgroup2 none rw\n");
  write("/proc/self/cgroup", "0::/d:e\n");
  write("/sys/a b\\c/d:e/cpu.max", "500000 100000\n");
  EXPECT_EQ(cpus(), 5);
}

TEST_F(CgroupCpus, BothVersionsMounted) {
  write("/proc/self/mountinfo", std::string(kV2Mount) + "33 31 0:30 / /cpu rw - cgroup cgroup rw,cpu\n");
  write("/proc/self/cgroup", "1:cpu:/\n0::/\n");
  write("/cpu/cpu.cfs_period_us", "100000\n");
  write("/cpu/cpu.cfs_quota_us", "600000\n");
  write("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpus(), 6);
}

TEST(CpuCount, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(affinity_cpus(), CPU_COUNT(&before));
  EXPECT_LE(usable_cpus(), affinity_cpus());
  EXPECT_GE(usable_cpus(), 1);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(affinity_cpus(), 1);
  EXPECT_EQ(usable_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace rooftile::cpu
