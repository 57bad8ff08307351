// Which kernel a call takes and who is told, and plug-ins that must be refused with a sentence.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rooftile/core/signature.h"
#include "rooftile/ops/softmax/softmax.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile {
namespace {

std::string softmax_on(const Queue& queue, float* y, std::int64_t columns, const SoftmaxOptions& options) {
  const std::vector<float> x(static_cast<std::size_t>(columns), 1.f);
  return softmax(queue, view(x.data(), {columns}), view(y, {columns}), options).message();
}

/// What an observer was told.
struct Log {
  std::vector<std::string> lines;
  pthread_t thread{};
  static void notify(void* context, const char* op, const char* variant, const char* reason) {
    Log& log = *static_cast<Log*>(context);
    log.lines.push_back(std::string(op) + " " + variant + ": " + reason);
    log.thread = pthread_self();
  }
};

TEST(Dispatch, TellsTheObserverWhatRan) {
  Queue queue = Queue::cpu({.threads = 2});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  Log log;
  queue.set_observer({&log, &Log::notify});
  std::vector<float> y(70000);
  const Queue copy = queue;
  EXPECT_EQ(softmax_on(copy, y.data(), 8, {}), "");
  EXPECT_EQ(softmax_on(queue, y.data(), 65536, {}), "");
  EXPECT_EQ(softmax_on(queue, y.data(), 65537, {}), "");  // past what is held: by length alone
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {.variant = "online"}), "");
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {.variant = "01_scalar"}), "");
  EXPECT_TRUE(softmax_backward(queue, view(y.data(), {8}), view(y.data(), {8}), view(y.data() + 100, {8})));
  const std::vector<std::string> expected = {"softmax tile: the first in the list that accepts",
                                             "softmax tile: the first in the list that accepts",
                                             "softmax online: the first in the list that accepts",
                                             "softmax online: asked for by name",
                                             "softmax 01_scalar: asked for by name",
                                             "softmax_backward tile: the first in the list that accepts"};
  EXPECT_EQ(log.lines, expected);
  EXPECT_TRUE(pthread_equal(log.thread, pthread_self()));
  // Nobody hears of calls that are refused.
  EXPECT_NE(softmax_on(queue, y.data(), 8, {.variant = "none"}), "");
  EXPECT_NE(softmax_on(queue, y.data(), 70000, {.variant = "tile"}), "");
  queue.set_observer({});
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {}), "");
  EXPECT_EQ(log.lines, expected);
}

TEST(Dispatch, RefusesUnknownAndUnwillingVariants) {
  const Queue queue = Queue::cpu({.threads = 1});
  std::vector<float> y(70000, 5);
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {.variant = "06_magic"}),
            "softmax: no variant \"06_magic\"; `rooftile list softmax` names those there are");
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {.variant = ""}),
            "softmax: no variant \"\"; `rooftile list softmax` names those there are");
  EXPECT_EQ(softmax_on(queue, y.data(), 70000, {.variant = "tile"}),
            "softmax: \"tile\" holds rows of up to 65536 elements, these have 70000");
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {.log = true, .variant = "01_scalar"}),
            "softmax: the ladder's rungs compute softmax, not log-softmax");
  EXPECT_EQ(y[0], 5);
}

struct Answers {
  std::vector<std::string> lines;
  static void answer(void* context, const Op& op, const Variant& variant, bool available, bool chosen,
                     const Status& status) {
    static_cast<Answers*>(context)->lines.push_back(std::string(op.function) + " " + variant.name +
                                                    (available ? "" : " missing") +
                                                    (chosen ? " chosen" : "") + (status ? "" : " refuses"));
  }
};

TEST(Dispatch, ExplainsWithoutRunning) {
  const Queue queue = Queue::cpu({.threads = 1});
  Answers answers;
  set_explanation(queue, {&answers, &Answers::answer});
  std::vector<float> y(70000, 5);
  EXPECT_EQ(softmax_on(queue, y.data(), 70000, {}), "");
  EXPECT_EQ(y[0], 5);
  const std::vector<std::string> expected = {"softmax tile refuses",
                                             "softmax online chosen",
                                             "softmax 05_streaming refuses",
                                             "softmax 04_accumulators refuses",
                                             "softmax 03_fast_exp refuses",
                                             "softmax 02_vectors",
                                             "softmax 01_scalar"};
  ASSERT_GT(answers.lines.size(), expected.size());
  const auto gpu_rungs = answers.lines.begin() + static_cast<std::ptrdiff_t>(expected.size());
  EXPECT_EQ(std::vector<std::string>(answers.lines.begin(), gpu_rungs), expected);
  for (auto line = gpu_rungs; line != answers.lines.end(); ++line)
    EXPECT_NE(line->find(" missing"), std::string::npos) << *line;
  answers.lines.clear();
  EXPECT_EQ(softmax_on(queue, y.data(), 0, {}), "");  // an empty row, too
  EXPECT_EQ(answers.lines.at(0), "softmax tile chosen");
  EXPECT_EQ(answers.lines.at(1), "softmax online");  // accepts as well, and comes too late
  set_explanation(queue, {});
  EXPECT_EQ(softmax_on(queue, y.data(), 8, {}), "");
  EXPECT_NE(y[0], 5);
}

Status refuse_shape(const int& n) { return Status::error("toy: takes no %d", n); }
Status refuse_all(const int&) { return Status::error("toy: takes nothing"); }

TEST(Dispatch, RefusesWithTheLastStandardVariantsSentence) {
  const Queue queue = Queue::cpu({.threads = 1});
  const Variant variants[] = {{"a", "", Role::standard, accepts<refuse_shape>},
                              {"b", "", Role::standard, accepts<refuse_all>},
                              {"c", "", Role::rung, accepts<refuse_shape>}};
  const int problem = 3;
  const Signature takes_nothing{"toy", {}, {}};
  const auto never = [](const Queue&, const Op&, const Call&) -> Status { return {}; };
  const Op toy{"toy", "forward", "toy", variants, takes_nothing, never},
      none{"toy", "forward", "toy", std::span(variants).subspan(2), takes_nothing, never};
  EXPECT_STREQ(dispatch(queue, toy, &problem, nullptr).message(), "toy: takes nothing");
  EXPECT_STREQ(dispatch(queue, toy, &problem, "a").message(), "toy: takes no 3");
  EXPECT_STREQ(dispatch(queue, none, &problem, nullptr).message(), "toy: has no variant to choose");
}

TEST(Dispatch, EveryOpHasNamesAndAPlaceOfItsOwn) {
  ASSERT_TRUE(Queue::cpu({.threads = 1}).status());
  std::vector<std::string> seen;
  int slots = 0;
  for (const Op* op : all_ops()) {
    EXPECT_EQ(op->slot, slots) << op->function;
    slots += static_cast<int>(op->variants.size());
    EXPECT_EQ(std::count(seen.begin(), seen.end(), op->function), 0) << op->function;
    seen.push_back(op->function);
    EXPECT_FALSE(op->variants.empty());
    for (const Variant& v : op->variants) {
      EXPECT_TRUE(v.accept != nullptr && *v.name && *v.idea) << op->function;
      for (const Variant& w : op->variants)
        EXPECT_TRUE(&v == &w || std::strcmp(v.name, w.name) != 0) << v.name;
    }
  }
  EXPECT_GT(seen.size(), 1u);
}

std::filesystem::path folder_of(const char* plugin) {
  return std::filesystem::path(ROOFTILE_TEST_PLUGINS) / plugin;
}

/// The sentence with which a folder's plug-in is refused, its path taken off.
std::string refusal(const std::filesystem::path& folder) {
  const Queue queue = Queue::cpu({.threads = 1, .isa = "baseline", .plugin_folder = folder.c_str()});
  float y[4] = {7, 7, 7, 7};
  const std::string text = softmax_on(queue, y, 4, {});
  EXPECT_EQ(text, queue.status().message());
  const std::string path = (folder / "rooftile-cpu-baseline.so: ").string();
  EXPECT_EQ(text.substr(0, path.size()), path);
  return text.size() > path.size() ? text.substr(path.size()) : text;
}

TEST(Plugins, FaultyOnesAreRefusedWithASentence) {
  for (int again = 0; again < 2; ++again) {  // a refusal is not kept as if it were a plug-in
    EXPECT_EQ(refusal(folder_of("version_99")),
              "is a plug-in of version 99, this library needs version " + std::to_string(kPluginVersion));
    EXPECT_EQ(refusal(folder_of("another_name")), "holds the plug-in \"cpu-avx1024\", not \"cpu-baseline\"");
    EXPECT_EQ(refusal(folder_of("unknown_variant")),
              "holds variant \"06_magic\" of softmax, which this library does not know");
    EXPECT_EQ(refusal(folder_of("unknown_op")),
              "holds variant \"online\" of hardmax, which this library does not know");
    EXPECT_EQ(refusal(folder_of("no_symbol")),
              "is a shared library, but no rooftile plug-in (no symbol rooftile_plugin)");
    EXPECT_NE(refusal(folder_of("null_plugin")), "");
  }
}

TEST(Plugins, WhatIsNoSharedLibraryIsRefusedWithASentence) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rooftile_dispatch_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string cpu = ", or choose another by ROOFTILE_CPU";
  EXPECT_EQ(refusal(folder),
            "no such plug-in; build or reinstall rooftile, or name the folder of its plug-ins by "
            "ROOFTILE_PLUGINS" +
                cpu);
  // As a build folder and a Python package look.
  for (const auto& [file, instead] :
       {std::pair{"CMakeCache.txt", "run `make build`"},
        std::pair{"_core.abi3.so", "reinstall the package: pip install --force-reinstall rooftile"}}) {
    std::filesystem::create_directories(folder / "lib");
    std::ofstream(folder / file) << "\n";
    EXPECT_EQ(refusal(folder / "lib"), std::string("no such plug-in; ") + instead + cpu);
    std::filesystem::remove(folder / file);
    std::filesystem::remove(folder / "lib");
  }
  const std::filesystem::path file = folder / "rooftile-cpu-baseline.so";
  std::ofstream(file) << "a text, and no library\n";
  EXPECT_EQ(refusal(folder).substr(0, 19), "cannot be loaded: /");
  std::ofstream(file, std::ios::trunc).flush();
  EXPECT_EQ(refusal(folder).substr(0, 18), "cannot be loaded: ");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_EQ(refusal(folder).substr(0, 18), "cannot be loaded: ");
  std::filesystem::remove_all(folder);
}

TEST(Plugins, AVariantThatOneLacksIsPassedOver) {
  const Queue queue =
      Queue::cpu({.threads = 1, .isa = "baseline", .plugin_folder = folder_of("online_only").c_str()});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  float y[4] = {7, 7, 7, 7};
  EXPECT_EQ(softmax_on(queue, y, 4, {.variant = "tile"}),
            "softmax: variant \"tile\" is not part of plug-in cpu-baseline");
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(softmax_on(queue, y, 4, {}), "");
  EXPECT_EQ(y[0], 42);
  EXPECT_STREQ(softmax_backward(queue, view(y, {2}), view(y, {2}), view(y + 2, {2})).message(),
               "softmax_backward: variant \"tile\" is not part of plug-in cpu-baseline");
  Answers answers;
  set_explanation(queue, {&answers, &Answers::answer});
  EXPECT_EQ(softmax_on(queue, y, 4, {}), "");
  EXPECT_EQ(answers.lines.at(0), "softmax tile missing");
  EXPECT_EQ(answers.lines.at(1), "softmax online chosen");
}

TEST(Plugins, AKernelThatWantsMoreScratchThanThereIsIsRefused) {
  const Queue queue =
      Queue::cpu({.threads = 1, .isa = "baseline", .plugin_folder = folder_of("online_only").c_str()});
  float y[2] = {};
  const Status greedy = softmax(queue, view(static_cast<const float*>(y), {2}), view(y, {2}), {.scale = 77});
  EXPECT_STREQ(greedy.message(),
               "softmax: variant \"online\" asked for 1234 more bytes of scratch than the 262144 of a thread "
               "hold; its result is worthless, call another variant");
  EXPECT_TRUE(softmax(queue, view(static_cast<const float*>(y), {2}), view(y, {2})))
      << "the next call is fine";
}

TEST(Plugins, KernelsStartInTheDefaultModeOfFloatingPoint) {
  const Queue queue =
      Queue::cpu({.threads = 1, .isa = "baseline", .plugin_folder = folder_of("online_only").c_str()});
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    float y[4] = {7, 7, 7, 7};
    std::fesetround(rounding);
    const std::string text = softmax_on(queue, y, 4, {});
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(text, "");
    EXPECT_EQ(y[0], 42) << "on the caller's thread, outside all tasks";
    EXPECT_EQ(after, rounding);
  }
}

}  // namespace
}  // namespace rooftile
