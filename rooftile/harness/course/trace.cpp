#include "rooftile/harness/course/trace.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "rooftile/harness/bench/device_calls.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/harness/course/sources.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using emulated::TraceKind;
using emulated::TraceLine;

}  // namespace

const char* access_name(TraceKind kind) {
  constexpr const char* kNames[] = {"global load", "global store", "shared load", "shared store", "atomic"};
  return kNames[static_cast<int>(kind)];
}

Trace trace(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant,
            const std::vector<std::string>& sources) {
  require(queue.status());
  const DeviceFunctions* device = queue.state().backend->device;
  if (!device)
    throw std::runtime_error("a trace needs the checked emulated device, and this is a CPU's queue");
  const Problem problem(spec, c, 1);
  Memory memory(problem);
  require(device->trace_begin(queue.state().cuda));
  const Run done = run(queue, problem, memory, variant.empty() ? nullptr : variant.c_str());
  Trace result;
  std::vector<TraceLine> lines;
  require(device->trace_end(
      queue.state().cuda, &lines,
      [](void* context, const TraceLine& line) {
        static_cast<std::vector<TraceLine>*>(context)->push_back(line);
      },
      result.totals));
  if (done.refused) throw std::runtime_error(done.message);
  result.variant = done.chosen;
  result.finding = done.damage;
  result.stated_bytes = spec.bytes(c);
  Sources source(sources);
  for (const TraceLine& line : lines) {
    const std::string file = from_root(line.file);
    result.lines.push_back({file, source.line(file, line.line), line});
  }
  // The kernel's own file first, as one reads: each file's lines in their order.
  std::stable_sort(result.lines.begin(), result.lines.end(), [](const TracedLine& a, const TracedLine& b) {
    const auto rank = [](const TracedLine& l) { return l.file.starts_with("rooftile/ops/") ? 0 : 1; };
    return std::tuple(rank(a), a.file, a.counts.line) < std::tuple(rank(b), b.file, b.counts.line);
  });
  return result;
}

nlohmann::json to_json(const Trace& trace, const Queue& queue, const Spec& spec, const Case& c) {
  nlohmann::json lines = nlohmann::json::array(), shape = nlohmann::json::array(),
                 parameters = nlohmann::json::object();
  for (const TracedLine& l : trace.lines)
    lines.push_back({{"file", l.file},
                     {"line", l.counts.line},
                     {"text", l.text},
                     {"access", access_name(l.counts.kind)},
                     {"access_bytes", l.counts.access_bytes},
                     {"requests", l.counts.requests},
                     {"lanes", l.counts.lanes},
                     {"bytes", l.counts.bytes},
                     {"used_bytes", l.counts.used_bytes},
                     {"sectors", l.counts.sectors},
                     {"wavefronts", l.counts.wavefronts},
                     {"conflicts", l.counts.conflicts}});
  for (const std::int64_t size : c.shape) shape.push_back(size);
  for (const auto& [name, value] : c.parameters) parameters[name] = value;
  const Op* op = find_op(spec.function);
  return {{"op", op ? op->name : spec.function},
          {"direction", op ? op->direction : ""},
          {"variant", trace.variant},
          {"isa", queue.isa()},
          {"dtype", name(c.dtype)},
          {"shape", shape},
          {"parameters", parameters},
          {"bytes", trace.stated_bytes},
          {"launches", trace.totals.launches},
          {"sectors", trace.totals.sectors},
          {"moved_bytes", trace.moved_bytes()},
          {"read_bytes", trace.totals.read_bytes},
          {"written_bytes", trace.totals.written_bytes},
          {"different_bytes", trace.totals.different_bytes},
          {"lines", lines}};
}

}  // namespace rooftile::harness
