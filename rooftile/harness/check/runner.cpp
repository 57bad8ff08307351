#include "rooftile/harness/check/runner.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <stdexcept>

#include "rooftile/backend/cpu/isa.h"
#include "rooftile/harness/check/survive.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

std::string plugin_folder() {
  if (const char* named = std::getenv("ROOFTILE_PLUGINS"); named && *named) return named;
  Dl_info info;
  const auto function = static_cast<Queue (*)(const CpuOptions&)>(&Queue::cpu);
  if (!dladdr(reinterpret_cast<const void*>(function), &info) || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

void enter(const FpMode& mode) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(mode.rounding);
#if defined(__GLIBC__)
  feenableexcept(mode.traps);
#endif
}

Placement in_memory(const Operand& operand, const Case& c) { return place(operand, c.layout, c.offset); }

}  // namespace

std::vector<std::string> built_isas() {
  std::vector<std::string> isas;
  for (cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    const std::string file = plugin_folder() + "/rooftile-cpu-" + cpu::name(isa) + ".so";
    if (cpu::supported(isa) && access(file.c_str(), R_OK) == 0) isas.emplace_back(cpu::name(isa));
  }
  return isas;
}

bool has_variant(const Queue& queue, const Op& op, std::size_t variant) {
  return queue.state().has(op, variant);
}

Queues::Queues(const std::string& isa_) : isa(isa_) {
  const auto add_device = [&](std::string name, Queue queue) {
    if (const Status s = queue.status(); !s) throw std::runtime_error(s.message());
    all.push_back({std::move(name), std::move(queue)});
  };
  if (isa == "cuda") {
    const Queue queue = Queue::cuda();
    for (std::size_t i = 0; i < kQueues; ++i) add_device("the GPU", queue);
    return;
  }
  if (isa == "emulated" || isa == "emulated-checked") {
    for (std::size_t i = 0; i < kQueues; ++i) {
      EmulatedOptions options;
      options.threads = i % 2 ? 3 : 1;
      options.seed = i;
      options.checked = isa != "emulated";
      add_device(fmt::format("{} threads, seed {}", options.threads, i), Queue::emulated(options));
    }
    return;
  }
  constexpr std::int64_t kNever = std::int64_t{1} << 62;
  const auto add = [&](int threads, std::int64_t streaming_bytes) {
    CpuOptions options;
    options.threads = threads;
    options.isa = isa.c_str();
    options.streaming_bytes = streaming_bytes;
    NamedQueue q{
        fmt::format("{} thread{}{}", threads, threads == 1 ? "" : "s", streaming_bytes ? "" : ", streaming"),
        Queue::cpu(options)};
    if (const Status s = q.queue.status(); !s) throw std::runtime_error(s.message());
    all.push_back(std::move(q));
  };
  for (int threads : {1, 2, 3, 7}) add(threads, kNever);
  for (int threads : {1, 3}) add(threads, 0);
}

std::size_t in_place_of(const Problem& problem, std::size_t o) {
  const auto& operands = problem.operands();
  if (!problem.is_output(o) || !operands[o].may_be) return operands.size();
  const std::size_t input = problem.index_of(operands[o].may_be);
  if (input == operands.size() || operands[input].dtype != operands[o].dtype ||
      operands[input].shape != operands[o].shape)
    return operands.size();
  return input;
}

Memory::Memory(const Problem& problem, Edge edge)
    : Memory(
          problem,
          [&] {
            std::vector<Placement> placements;
            for (const Operand& operand : problem.operands())
              placements.push_back(in_memory(operand, problem.what()));
            return placements;
          }(),
          problem.what().in_place && problem.what().layout != Layout::broadcast, edge) {}

Memory::Memory(const Problem& problem, const std::vector<Placement>& placements, bool in_place, Edge edge)
    : problem_(problem) {
  const auto& operands = problem.operands();
  tensors_.resize(operands.size());
  std::int64_t reach = 0;  // of another operand's strides
  for (std::size_t o = 0; o < operands.size(); ++o)
    reach = std::max(reach, span_of(operands[o].shape, placements[o]));
  for (std::size_t o = 0; o < operands.size(); ++o) {
    const std::size_t host = in_place ? in_place_of(problem, o) : operands.size();
    owner_.push_back(host == operands.size() ? o : host);
    if (owner_[o] != o) continue;
    tensors_[o] = std::make_unique<Tensor>(operands[o].dtype, operands[o].shape, placements[o], edge, reach,
                                           problem.is_input(o) ? &problem.bytes(o) : nullptr);
  }
  for (std::size_t o = 0; o < operands.size(); ++o) views_.push_back(tensors_[owner_[o]]->view());
}

Arguments Memory::arguments() const {
  Arguments a;
  for (std::size_t o = 0; o < views_.size(); ++o) {
    View view = views_[o];
    view.data = device_.on_device(view.data);
    a.add(problem_.operands()[o].name, view);
  }
  return a;
}

Status Memory::to_device(const Queue& queue) {
  device_.clear();
  for (const auto& tensor : tensors_)
    if (tensor) device_.add(tensor->memory(), tensor->bytes());
  if (workspace_) device_.add(workspace_->memory(), workspace_->bytes());
  return device_.to_device(queue);
}
Status Memory::from_device() {
  const Status status = device_.from_device();
  device_.clear();
  return status;
}

std::vector<Bytes> Memory::take(std::string& damage, bool outputs_too) {
  const auto& operands = problem_.operands();
  std::vector<Bytes> outputs(operands.size());
  std::vector<bool> written(operands.size());
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (!problem_.is_output(o)) continue;
    outputs[o] = tensors_[owner_[o]]->read();
    written[owner_[o]] = true;
  }
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (!tensors_[o]) continue;
    const std::string where = tensors_[o]->restore(outputs_too || !written[o]);
    if (!where.empty() && damage.empty())
      damage = fmt::format("{} was changed {}",
                           written[o] ? operands[o].name : std::string("input ") + operands[o].name, where);
  }
  if (workspace_) {
    const std::string where = workspace_->restore(false);
    if (!where.empty() && damage.empty()) damage = "the workspace's surroundings were changed " + where;
  }
  return outputs;
}

Status Memory::workspace(const Queue& queue, Workspace& workspace) {
  workspace = {};
  const Spec& spec = problem_.spec();
  if (!spec.workspace) return {};
  std::size_t bytes = 0;
  if (Status s = spec.workspace(queue, problem_.what(), arguments(), bytes); !s) return s;
  if (bytes == 0) return {};
  const auto size = static_cast<std::int64_t>(bytes);
  if (!workspace_ || workspace_->view().size() != size)
    workspace_ = std::make_unique<Tensor>(DType::u8, Shape{size}, Placement{{1}, 0});
  workspace_->fill(Bytes(bytes, std::byte{0xFF}));
  workspace = {workspace_->view().mutable_data(), bytes};
  return {};
}

std::string Memory::describe() const {
  std::string text;
  for (std::size_t o = 0; o < views_.size(); ++o) {
    text += fmt::format("{}{} strides {{", o ? ", " : "", problem_.operands()[o].name);
    for (int d = 0; d < views_[o].rank; ++d) text += fmt::format("{}{}", d ? ", " : "", views_[o].stride[d]);
    text += fmt::format("}} at {} mod 64", reinterpret_cast<std::uintptr_t>(views_[o].data) % 64);
  }
  return text;
}

void leave_fp_mode() {
#if defined(__GLIBC__)
  fedisableexcept(FE_ALL_EXCEPT);
#endif
  std::fesetround(FE_TONEAREST);
}

Observed::Observed(const Queue& queue, std::string& chosen) : queue_(queue) {
  queue_.set_observer({&chosen, [](void* context, const char*, const char* name, const char*) {
                         *static_cast<std::string*>(context) = name;
                       }});
}

Run run(const Queue& q, const Problem& problem, Memory& memory, const char* variant, const FpMode* mode) {
  Run result;
  const Observed observed(q, result.chosen);
  Workspace workspace;
  const auto call = [&] {
    const Arguments arguments = memory.arguments();
    const Announced announced(q, variant, problem.what(), mode ? mode->name : "");
    if (mode) enter(*mode);
    std::size_t bytes = 0;
    Status s;
    if (mode && problem.spec().workspace) s = problem.spec().workspace(q, problem.what(), arguments, bytes);
    if (s) s = problem.spec().call(q, problem.what(), arguments, variant, workspace);
    if (mode) leave_fp_mode();
    return s;
  };
  Status status = memory.workspace(q, workspace);
  if (status && has_own_memory(q)) {
    if (Status s = memory.to_device(q); !s) throw std::runtime_error(s.message());
    workspace.pointer = memory.on_device(workspace.pointer);
    status = call();
    // Also where it was refused: nothing may have changed. A kernel that failed shows here.
    if (Status s = memory.from_device(); !s) throw std::runtime_error(s.message());
  } else if (status) {
    status = call();
  }
  const DeviceFunctions* device = q.device() == Device::cpu ? nullptr : q.state().backend->device;
  const Status found = device ? device->findings(q.state().cuda) : Status{};
  result.refused = !status;
  result.message = status.message();
  result.outputs = memory.take(result.damage, result.refused);
  if (!found) result.damage = found.message();
  return result;
}

}  // namespace rooftile::harness
