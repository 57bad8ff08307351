#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "rooftile/harness/report/record.h"
#include "rooftile/harness/spec.h"

/// Which results stand beside each other in a chart, in which colour, and where their lessons are. Part of
/// report.cpp.
namespace rooftile::harness::report {

/// A kernel's colour is the same in all charts: its op's place among the record's ops.
inline constexpr std::size_t kKernelColours = 18;

inline std::vector<std::string> ops_of(const Record& record) {
  std::vector<std::string> ops;
  for (const Result& r : record.results)
    if (std::find(ops.begin(), ops.end(), r.op) == ops.end()) ops.push_back(r.op);
  return ops;
}

inline std::size_t place_of(const std::vector<std::string>& ops, const std::string& op) {
  return static_cast<std::size_t>(std::find(ops.begin(), ops.end(), op) - ops.begin());
}

/// Where the data of a result lay, in words. What moves four times the last cache's bytes comes from memory.
inline std::string where_data_lay(const Record& record, const Result& r) {
  if (r.cache == "warm") return "in cache";
  double largest = 0;
  for (const Cache& c : record.caches)
    if (c.data) largest = std::max(largest, c.bytes.value_or(0));
  return r.cache == "cold" && r.bytes.value_or(0) < 4 * largest ? "flushed from the caches" : "in memory";
}

/// One result of each kernel, all under the same conditions.
struct View {
  std::string data;  ///< "in memory"
  double threads = 1;
  std::vector<const Result*> results;
  std::string label() const { return data + ", " + plural(threads, "thread", "threads"); }
};

/// Of each kernel's results under the same conditions, the first dtype measured and its largest size: one
/// mark each, where all sizes at once would be a smear. In memory and on all threads first, unless time ended
/// before half of the kernels were measured so.
inline std::vector<View> views(const Record& record) {
  const bool has_best = std::any_of(record.results.begin(), record.results.end(),
                                    [](const Result& r) { return r.group == "best"; });
  std::vector<View> all;
  for (const Result& r : record.results) {
    if (r.rung || !r.median_us || (has_best && r.group != "best")) continue;
    const std::string data = where_data_lay(record, r);
    const double threads = r.threads.value_or(1);
    auto view = std::find_if(all.begin(), all.end(),
                             [&](const View& v) { return v.data == data && v.threads == threads; });
    if (view == all.end()) view = all.insert(all.end(), {data, threads, {}});
    const auto same = std::find_if(view->results.begin(), view->results.end(),
                                   [&](const Result* other) { return other->name() == r.name(); });
    if (same == view->results.end())
      view->results.push_back(&r);
    else if ((*same)->dtype == r.dtype && r.bytes.value_or(0) > (*same)->bytes.value_or(0))
      *same = &r;
  }
  std::size_t most = 0;
  for (const View& v : all) most = std::max(most, v.results.size());
  std::stable_sort(all.begin(), all.end(), [most](const View& a, const View& b) {
    const auto rank = [most](const View& v) {
      return std::tuple(2 * v.results.size() < most, v.data != "in memory", -v.threads);
    };
    return rank(a) < rank(b);
  });
  return all;
}

inline bool in_roofline(const Result& r) {
  return r.has_flops() && r.intensity().value_or(0) > 0 && r.gflops().value_or(0) > 0;
}

/// The kernel's name, as a link to its lesson where the reader has the lessons.
inline std::string lesson_link(const Record& record, const std::string& op, const std::string& html) {
  const Spec* spec = record.docs_url ? find_spec(op) : nullptr;
  if (!spec) return html;
  return fmt::format("<a href=\"{}rooftile/ops/{}/README.md\">{}</a>", escape(*record.docs_url),
                     escape(spec->folder), html);
}

}  // namespace rooftile::harness::report
