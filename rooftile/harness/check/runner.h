#pragma once
// Runs one variant on one problem in guarded memory.
#include <memory>
#include <string>
#include <vector>

#include "rooftile/core/queue.h"
#include "rooftile/harness/check/device_memory.h"
#include "rooftile/harness/check/problem.h"

namespace rooftile::harness {

/// Instruction sets that were built and that this CPU runs: plug-ins beside librooftile.so, or in
/// $ROOFTILE_PLUGINS.
std::vector<std::string> built_isas();

/// Whether the variant runs on the queue: its plug-in holds it for its architecture, or it is composed.
bool has_variant(const Queue& queue, const Op& op, std::size_t variant);

/// A queue, its options as a word for sentences ("3 threads, streaming").
struct NamedQueue {
  std::string name;
  Queue queue;
};
/// Queues of one instruction set or device ("avx512", "cuda", "emulated"), made once for a whole check.
struct Queues {
  std::string isa;
  /// One, two, three, seven threads through the caches; one and three past them. Of a GPU: the default stream
  /// throughout. Of the emulated device: other orders of the threads.
  std::vector<NamedQueue> all;
  static constexpr std::size_t kOne = 0, kTwo = 1, kThree = 2, kSeven = 3, kOneStreaming = 4,
                               kThreeStreaming = 5, kQueues = 6;
  explicit Queues(const std::string& isa);
};

/// The operands of a problem in memory, and views of them.
class Memory {
 public:
  /// By the case's layout, offset and in_place.
  explicit Memory(const Problem& problem, Edge edge = Edge::none);
  Memory(const Problem& problem, const std::vector<Placement>& placements, bool in_place,
         Edge edge = Edge::none);

  const std::vector<View>& views() const { return views_; }
  Arguments arguments() const;
  /// A copy in the device's memory, at the same places; from_device() brings it back.
  Status to_device(const Queue& queue);
  Status from_device();
  void* on_device(void* host) const { return device_.on_device(host); }
  /// Outputs by operand, dense; then memory is as it was before the call. `damage` gets a sentence where
  /// anything but the outputs changed; with `outputs_too`, where these did.
  std::vector<Bytes> take(std::string& damage, bool outputs_too = false);
  /// As many bytes as the op asks for, guarded, poisoned anew.
  Status workspace(const Queue& queue, Workspace& workspace);
  /// Strides as they are, for sentences.
  std::string describe() const;

 private:
  const Problem& problem_;
  std::vector<std::unique_ptr<Tensor>> tensors_;  // by operand; null: in another's
  std::vector<std::size_t> owner_;
  std::vector<View> views_;
  std::unique_ptr<Tensor> workspace_;
  DeviceMemory device_;
};
/// The operand whose memory output `o` may take, or operands().size().
std::size_t in_place_of(const Problem& problem, std::size_t o);

struct Run {
  bool refused = false;
  std::string message;  ///< of the refusal
  std::string damage;   ///< what was changed that must not be
  std::string chosen;   ///< the variant that ran
  std::vector<Bytes> outputs;
};
/// While it lives, the queue says in `chosen` which variant runs.
class Observed {
 public:
  Observed(const Queue& queue, std::string& chosen);
  ~Observed() { queue_.set_observer({}); }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  Queue queue_;
};
/// The caller's floating-point mode around a call.
struct FpMode {
  const char* name;  ///< "rounding up"
  int rounding, traps;
};
/// Back to the default.
void leave_fp_mode();
/// `variant`: a name, or null for the library's choice. `mode`: null: the default.
Run run(const Queue& queue, const Problem& problem, Memory& memory, const char* variant,
        const FpMode* mode = nullptr);

}  // namespace rooftile::harness
