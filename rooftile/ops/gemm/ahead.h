#pragma once
// Lines of memory that will be packed soon, to be requested one by one while others are multiplied.
#include "rooftile/ops/gemm/pack.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// The lines of a block whose rows, or else whose columns, are side by side; of any other, none.
template <class T>
class Ahead {
 public:
  Ahead() = default;
  explicit Ahead(const Block<T>& block) : at_(reinterpret_cast<const char*>(block.data)) {
    const bool rows = block.column == 1;
    if (!rows && block.row != 1) return;
    runs_ = rows ? block.rows : block.columns;
    pitch_ = (rows ? block.row : block.column) * std::int64_t(sizeof(T));
    each_ = ((rows ? block.columns : block.rows) * std::int64_t(sizeof(T)) + kLineBytes - 1) / kLineBytes;
  }
  std::int64_t lines() const { return runs_ * each_; }

  /// The next `count`, to `to`; where there are no more, the last one again.
  void list(std::int64_t count, const void** to) {
    for (std::int64_t k = 0; k < count; ++k) {
      to[k] = at_ + line_ * kLineBytes;
      if (runs_ == 0 || ++line_ < each_) continue;
      line_ = 0;
      if (--runs_ > 0) at_ += pitch_;
    }
  }

 private:
  const char* at_ = nullptr;
  std::int64_t runs_ = 0, pitch_ = 0, each_ = 0, line_ = 0;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
