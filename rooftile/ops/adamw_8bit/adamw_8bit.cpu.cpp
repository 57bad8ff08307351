#include "rooftile/ops/adamw_8bit/adamw_8bit.tile.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr DynamicCodes kCodes[] = {dynamic_codes(kSignedMap), dynamic_codes(kUnsignedMap)};
constexpr const DynamicMap* kMaps[] = {&kSignedMap, &kUnsignedMap};

/// Elements [begin, end) of an operand: a view of them, or f32 copies in `staged`.
class Operand {
 public:
  Operand(const Adamw8bitItem& t, int list, std::int64_t begin, std::int64_t end)
      : t_(t), list_(list), begin_(begin), end_(end) {}

  bool present() const { return t_.data[list_] != nullptr; }
  /// f(address, index in the block) for each element.
  template <class F>
  void for_each(F f) const {
    const int bytes = bits(t_.dtype[list_]) / 8;
    std::int64_t row = begin_ / t_.rows.columns, column = begin_ % t_.rows.columns;
    for (std::int64_t i = begin_; i < end_; ++row, column = 0) {
      const std::int64_t first = t_.rows.offset(list_, row);
      for (; i < end_ && column < t_.rows.columns; ++i, ++column)
        f(static_cast<std::byte*>(t_.data[list_]) + (first + column * t_.rows.column_stride[list_]) * bytes,
          i - begin_);
    }
  }
  AnyRow row(bool contiguous, float* staged, bool reads) const {
    if (!present()) return {nullptr, end_ - begin_, DType::f32};
    if (contiguous)
      return {static_cast<std::byte*>(t_.data[list_]) + begin_ * (bits(dtype()) / 8), end_ - begin_, dtype()};
    if (reads)
      for_each([&](const std::byte* from, std::int64_t i) {
        staged[i] = static_cast<float>(load_scalar(from, dtype()));
      });
    return {reinterpret_cast<std::byte*>(staged), end_ - begin_, DType::f32};
  }
  void scatter(const float* staged) const {
    for_each([&](std::byte* to, std::int64_t i) { store_scalar(to, dtype(), double(staged[i])); });
  }
  DType dtype() const { return t_.dtype[list_]; }

 private:
  const Adamw8bitItem& t_;
  int list_;
  std::int64_t begin_, end_;
};

void update_block(const kernels::AdamwStep& step, const Adamw8bitItem& t, bool contiguous,
                  std::int64_t block) {
  const std::int64_t begin = block * kDynamicBlock, end = std::min(t.size(), begin + kDynamicBlock);
  alignas(64) float staged[3][kDynamicBlock], means[2][kDynamicBlock];
  const Operand parameter(t, k8bitParameter, begin, end), gradient(t, k8bitGradient, begin, end),
      master(t, k8bitMaster, begin, end), codes[2] = {{t, k8bitM, begin, end}, {t, k8bitV, begin, end}};
  const bool has_master = master.present();
  const AnyRow p = parameter.row(contiguous, staged[0], !has_master),
               g = gradient.row(contiguous, staged[1], true), full = master.row(contiguous, staged[2], true);
  float* absmax[2];
  for (int o = 0; o < 2; ++o) {
    absmax[o] = static_cast<float*>(t.data[k8bitMAbsmax + o]) + block * t.absmax_stride[o];
    codes[o].for_each([&, scale = *absmax[o]](const std::byte* from, std::int64_t i) {
      means[o][i] = kMaps[o]->numbers[static_cast<std::uint8_t>(*from)] * scale;
    });
  }
  const CpuTeam<float, Access::cached> team(nullptr);
  const AnyRow rows[2] = {{reinterpret_cast<std::byte*>(means[0]), end - begin, DType::f32},
                          {reinterpret_cast<std::byte*>(means[1]), end - begin, DType::f32}};
  Tile<float> most[2]{};
  team.each(end - begin, [&](auto chunk) ROOFTILE_INLINE {
    const auto y = kernels::adamw_8bit_element(
        step,
        kernels::Adamw8bitElement<Tile<float>>{(has_master ? full : p).load(team, chunk),
                                               rows[0].load(team, chunk), rows[1].load(team, chunk)},
        g.load(team, chunk));
    p.store(team, chunk, y.p);
    if (has_master) full.store(team, chunk, y.p);
    rows[0].store(team, chunk, y.m);
    rows[1].store(team, chunk, y.v);
    most[0] = max(most[0], abs(y.m));
    most[1] = max(most[1], y.v);
  });
  for (int o = 0; o < 2; ++o) {
    const float largest = reduce_max(most[o]);
    *absmax[o] = largest;
    if (largest != 0)
      team.each(end - begin, [&](auto chunk) ROOFTILE_INLINE {
        rows[o].store(team, chunk, rows[o].load(team, chunk) / largest);
      });
    codes[o].for_each([&](std::byte* to, std::int64_t i) {
      *to = static_cast<std::byte>(kCodes[o].code(kMaps[o]->above, means[o][i]));
    });
  }
  if (contiguous) return;
  parameter.scatter(staged[0]);
  if (has_master) master.scatter(staged[2]);
}

Status launch_adamw_8bit(const CpuLaunch& launch, const Adamw8bitProblem& p) {
  const kernels::AdamwStep step = kernels::adamw_step(p.numbers);
  if (step.skips) return {};
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < p.count(); ++i) bytes += 16 * p.size(i);
  for_pieces(
      launch, p.count(), bytes,
      [&](std::int64_t i) { return (p.size(i) + kDynamicBlock - 1) / kDynamicBlock; },
      [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
        const Adamw8bitItem t = p.item(i);
        const bool contiguous = t.contiguous();
        for (std::int64_t block = begin; block < end; ++block) update_block(step, t, contiguous, block);
      },
      [] {});
  return {};
}

}  // namespace

ROOFTILE_CPU_KERNELS(adamw_8bit) = {entry<launch_adamw_8bit>("adamw_8bit", "tile"), {}};

}  // namespace rooftile
