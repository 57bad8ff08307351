// What is measured and told of a GPU, by a plug-in that pretends one (tests/plugins/pretend_gpu.cpp).
#include "rooftile/harness/bench/gpu.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "cli/gpus.h"

namespace rooftile::harness {
namespace {

Queue pretended() { return Queue::cuda({.plugin_folder = ROOFTILE_TEST_PRETENDED}); }

TEST(Gpu, IsDescribed) {
  const Gpu gpu = describe_gpu(pretended());
  EXPECT_STREQ(gpu.what.name, "Pretended 1000");
  EXPECT_EQ(gpu.what.rated_gbs(), 2048);  // 1 GHz, both edges, 1024 bytes
  EXPECT_TRUE(gpu.copies.empty());
}
TEST(Gpu, IsMeasuredBySize) {
  Gpu gpu = describe_gpu(pretended());
  measure_gpu(pretended(), gpu);
  ASSERT_EQ(gpu.copies.size(), 3u);  // it has no 2 GiB
  std::size_t mib = 16;
  for (const GpuCopy& copy : gpu.copies) {
    EXPECT_EQ(copy.bytes, mib << 20);
    EXPECT_NEAR(copy.us, 1 + double(mib << 20) / 2e6, 1e-3);
    mib *= 4;
  }
  ASSERT_EQ(gpu.notes.size(), 1u);
  EXPECT_EQ(gpu.notes[0], "pretended: no memory for 2147483648 bytes");
  EXPECT_EQ(gpu.launch_host_us, 1.25);
  EXPECT_EQ(gpu.launch_us, 0.75);
  EXPECT_EQ(gpu.round_trip_us, 6.5);
  const nlohmann::json json = to_json(gpu);
  EXPECT_EQ(json["copies"].size(), 3u);
  EXPECT_EQ(json["l2_bytes"], 40 << 20);
  EXPECT_EQ(json["empty_kernel"]["device_us"], 0.75);
  EXPECT_FALSE(json.contains("loaded"));
}
TEST(Gpu, StandsInTheTable) {
  ASSERT_EQ(::setenv("ROOFTILE_PLUGINS", ROOFTILE_TEST_PRETENDED, 1), 0);
  const cli::GpuReport report = cli::gpus(true);
  ::unsetenv("ROOFTILE_PLUGINS");
  EXPECT_EQ(report.missing, "");
  EXPECT_EQ(report.gpus.size(), 2u);
  for (const char* part :
       {"GPU 0            Pretended 1000, compute capability 8.0\n", "\nGPU 1            Pretended 1000",
        "999.1, for CUDA 13.1 and before; this build's runtime is 13.0\n",
        "3 at 1500 MHz at most; each 65536 registers, 164 KiB shared memory, 2048 threads, 32 blocks\n",
        "48 KiB shared memory, 163 KiB when asked for; 65536 registers, 1024 threads\n",
        "8 GiB, 7 GiB free; 8192 bits at 1000 MHz, both edges: rated 2048 GB/s; ECC on\n",
        "L2 cache         40 MiB\n", "note: pretended: no memory for 2147483648 bytes\n",
        "1.25 µs of the host, 0.75 µs of the device; 6.50 µs until the host knows that it is done\n",
        "Emulated GPU     none: "})
    EXPECT_NE(report.text.find(part), std::string::npos) << part << "is not in\n" << report.text;
  // A variant that needs 9.0 stands apart.
  const nlohmann::json& variants = report.gpus[0]["variants"];
  for (const auto& it : variants) {
    if (it["function"] == "softmax") {
      EXPECT_EQ(it["variants"], nlohmann::json::array({"tile"}));
    }
    if (it["function"] == "copy") {
      EXPECT_EQ(it["elsewhere"], "tile needs 9.0");
      EXPECT_TRUE(it["variants"].empty());
    }
  }
}
TEST(Gpu, ThatIsNotThereIsASentence) {
  const Queue none = Queue::cuda({.plugin_folder = "/nowhere"});
  EXPECT_THROW(describe_gpu(none), std::runtime_error);
}

}  // namespace
}  // namespace rooftile::harness
