#pragma once
// Runs one variant on one problem in guarded memory.
#include <memory>
#include <string>
#include <vector>

#include "rooftile/core/queue.h"
#include "rooftile/harness/problem.h"

namespace rooftile::harness {

/// Instruction sets that were built and that this CPU runs: plug-ins beside librooftile.so, or in
/// $ROOFTILE_PLUGINS.
std::vector<std::string> built_isas();

/// A queue, its options as a word for sentences ("3 threads, streaming").
struct NamedQueue {
  std::string name;
  Queue queue;
};
/// Queues of one instruction set, made once for a whole check.
struct Queues {
  std::string isa;
  std::vector<NamedQueue>
      all;  ///< one, two, three, seven threads through the caches; one and three past them
  static constexpr std::size_t kOne = 0, kTwo = 1, kThree = 2, kSeven = 3, kOneStreaming = 4,
                               kThreeStreaming = 5;
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
/// `variant`: a name, or null for the library's choice.
Run run(const Queue& queue, const Problem& problem, Memory& memory, const char* variant);

}  // namespace rooftile::harness
