// What a team reads and writes, and that it touches nothing beside it: rows lie at the very end or beginning
// of pages whose neighbours may not be touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "rooftile/core/convert.h"
#include "rooftile/core/element.h"
#include "rooftile/tile/tile.h"
#include "tests/tile/tile_checks.h"

namespace {
using namespace rooftile;
using namespace rooftile::tile;

constexpr unsigned char kUntouched = 0xa5;

/// 32 KiB between two pages that may not be touched.
class Guarded {
 public:
  static constexpr std::size_t kBytes = 32 * 1024;
  Guarded() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* all = mmap(nullptr, kBytes + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin_ = static_cast<unsigned char*>(all) + page_;
    usable_ = all != MAP_FAILED && mprotect(begin_, kBytes, PROT_READ | PROT_WRITE) == 0;
  }
  ~Guarded() { munmap(begin_ - page_, kBytes + 2 * page_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  bool usable() const { return usable_; }
  unsigned char* begin() const { return begin_; }
  unsigned char* end() const { return begin_ + kBytes; }
  void wipe() { std::memset(begin_, kUntouched, kBytes); }

  /// A row of `size` elements, each `width` of T wide, that touches the last byte, or the first.
  template <class T>
  Row<T> row(std::int64_t size, std::int64_t stride, bool at_end, int width = 1) const {
    const std::int64_t reach = size > 0 ? (size - 1) * stride : 0, low = reach < 0 ? reach : 0;
    const std::int64_t span = (size > 0 ? width : 0) + (reach < 0 ? -reach : reach);
    T* lowest = at_end ? reinterpret_cast<T*>(end()) - span : reinterpret_cast<T*>(begin());
    return {lowest - low, size, stride};
  }

 private:
  std::size_t page_;
  unsigned char* begin_;
  bool usable_;
};

/// Element k, exact in every format: whole numbers up to 250.
template <class T>
T element(std::int64_t k) {
  const int value = 1 + static_cast<int>(k % 250);
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return from_double<T>(value);
}
template <class S, class T>
S as_lane(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<S>(x);
  else
    return static_cast<S>(to_float(x));
}

template <class S, class T>
void parts(Checker& checker) {
  Guarded memory;
  checker.expect(memory.usable(), "no guarded pages");
  if (!memory.usable()) return;
  for (int live = 0; live <= kLanes<S>; ++live)
    for (const bool at_end : {false, true}) {
      memory.wipe();
      const Row<T> row = memory.row<T>(live, 1, at_end);
      for (int k = 0; k < live; ++k) row.data[k] = element<T>(k);
      S in[kLanes<S>];
      store_whole(in, load_part<S>(static_cast<const T*>(row.data), live, S(-7)));
      for (int k = 0; k < kLanes<S>; ++k) {
        const S expected = k < live ? as_lane<S>(element<T>(k)) : S(-7);
        checker.expect(in[k] == expected, "of %d lanes of %s, lane %d is %g, not %g", live, name(dtype_of<T>),
                       k, double(in[k]), double(expected));
      }
      memory.wipe();
      for (int k = 0; k < kLanes<S>; ++k) in[k] = as_lane<S>(element<T>(k));
      store_part(row.data, live, load_whole<S>(in));
      for (unsigned char* p = memory.begin(); p < memory.end(); ++p) {
        const std::ptrdiff_t k = (p - reinterpret_cast<unsigned char*>(row.data)) / std::ptrdiff_t(sizeof(T));
        if (p >= reinterpret_cast<unsigned char*>(row.data) && k < live) continue;
        checker.expect(*p == kUntouched, "%d lanes of %s: byte %td was written", live, name(dtype_of<T>),
                       p - reinterpret_cast<unsigned char*>(row.data));
      }
      for (int k = 0; k < live; ++k) {
        const T expected = element<T>(k);
        checker.expect(std::memcmp(row.data + k, &expected, sizeof(T)) == 0,
                       "%d lanes of %s: lane %d was not stored", live, name(dtype_of<T>), k);
      }
    }
}

void tails(const TileReport& report) {
  Checker checker(report);
  parts<float, float>(checker);
  parts<float, f16>(checker);
  parts<float, bf16>(checker);
  parts<double, double>(checker);
  parts<double, float>(checker);
  parts<std::int32_t, std::int32_t>(checker);
  parts<std::int32_t, std::uint8_t>(checker);
}

/// Copies a row of one type to one of another, chunk by chunk.
template <class Real, Access kAccess, class From, class To>
void copies(Checker& checker) {
  using Team = CpuTeam<Real, kAccess>;
  Guarded from, to;
  checker.expect(from.usable() && to.usable(), "no guarded pages");
  if (checker.failed()) return;
  for (std::int64_t size = 0; size <= 3 * Team::kLanes + 1; size += size < 2 * Team::kLanes ? 1 : 7)
    for (int variant = 0; variant < (kAccess == Access::strided ? 12 : 4); ++variant) {
      constexpr std::int64_t kStrides[][2] = {{1, 1}, {3, 2}, {-1, 3}};  // in, out
      const auto [stride_in, stride_out] = kStrides[variant / 4];
      const Row<From> x = from.row<From>(size, stride_in, variant % 2);
      const Row<To> y = to.row<To>(size, stride_out, variant / 2 % 2);
      from.wipe();
      to.wipe();
      for (std::int64_t k = 0; k < size; ++k) x.data[k * stride_in] = element<From>(k);
      Team team(nullptr);
      const Row<const From> in{x.data, size, stride_in};
      team.each(size, [&](auto chunk) {
        if constexpr (std::is_integral_v<From>)
          team.store(y, chunk, team.load_integers(in, chunk));
        else
          team.store(y, chunk, team.load(in, chunk));
      });
      if (kAccess == Access::streaming) stream_fence();
      std::int64_t written = 0;
      for (unsigned char* p = to.begin(); p < to.end(); ++p) written += *p != kUntouched;
      checker.expect(written <= size * std::int64_t(sizeof(To)),
                     "%s to %s, %lld elements: %lld bytes written", name(dtype_of<From>), name(dtype_of<To>),
                     (long long)size, (long long)written);
      for (std::int64_t k = 0; k < size; ++k) {
        const To expected = element<To>(k);
        checker.expect(std::memcmp(y.data + k * stride_out, &expected, sizeof(To)) == 0,
                       "%s to %s, %lld elements, strides %d and %d: element %lld is wrong",
                       name(dtype_of<From>), name(dtype_of<To>), (long long)size, int(stride_in),
                       int(stride_out), (long long)k);
      }
    }
}

template <Access kAccess>
void access(const TileReport& report) {
  Checker checker(report);
  copies<float, kAccess, float, float>(checker);
  copies<float, kAccess, f16, bf16>(checker);
  copies<float, kAccess, bf16, f16>(checker);
  copies<float, kAccess, std::uint8_t, std::uint8_t>(checker);
  copies<float, kAccess, std::uint8_t, std::int32_t>(checker);
  copies<double, kAccess, double, double>(checker);
  copies<double, kAccess, float, double>(checker);
  copies<double, kAccess, double, float>(checker);
}

void planes(const TileReport& report) {
  Checker checker(report);
  using Team = CpuTeam<float, Access::strided>;
  Guarded memory;
  checker.expect(memory.usable(), "no guarded pages");
  if (checker.failed()) return;
  for (std::int64_t size = 0; size <= 2 * Team::kLanes + 1; ++size)
    for (const std::int64_t stride : {3, 4, 7, -3, -5})
      for (const bool at_end : {false, true}) {
        const Row<std::uint8_t> pixels = memory.row<std::uint8_t>(size, stride, at_end, 3);
        memory.wipe();
        for (std::int64_t k = 0; k < size; ++k)
          for (int c = 0; c < 3; ++c)
            pixels.data[k * stride + c] = static_cast<std::uint8_t>(k * 31 + c * 85 + 128);
        Team team(nullptr);
        team.each(size, [&](auto chunk) {
          Team::Integers rgb[3];
          team.load_planes(Row<const std::uint8_t>{pixels.data, size, stride}, chunk, rgb);
          for (int c = 0; c < 3; ++c) {
            std::int32_t lanes[Team::kLanes];
            store_whole(lanes, rgb[c]);
            for (int k = 0; k < chunk.live; ++k) {
              const int expected = static_cast<std::uint8_t>((chunk.first + k) * 31 + c * 85 + 128);
              checker.expect(lanes[k] == expected,
                             "%lld pixels, stride %lld: pixel %lld, plane %d is %d, not %d", (long long)size,
                             (long long)stride, (long long)chunk.first + k, c, lanes[k], expected);
            }
          }
        });
      }
}

/// Weighs the channels of rows of pixels: packed, padded, further apart, backwards, and each channel by
/// itself.
template <Access kAccess>
void weigh_pixels(Checker& checker) {
  using Team = CpuTeam<float, kAccess>;
  Guarded memory;
  checker.expect(memory.usable(), "no guarded pages");
  if (checker.failed()) return;
  const auto byte = [](std::int64_t k, int c) { return static_cast<std::uint8_t>(k * 37 + c * 85 + 200); };
  for (std::int64_t size = 0; size <= 2 * Team::kLanes + 1; ++size)
    for (const std::int64_t stride : {3, 4, 5, -3, -4, 1})
      for (const bool at_end : {false, true}) {
        const std::int64_t channel = stride == 1 ? size + 3 : 1;  // planes apart
        const int width = stride == 1 ? static_cast<int>(2 * channel + 1) : 3;
        const Row<std::uint8_t> place = memory.row<std::uint8_t>(size, stride, at_end, width);
        memory.wipe();
        for (std::int64_t k = 0; k < size; ++k)
          for (int c = 0; c < 3; ++c) place.data[k * stride + c * channel] = byte(k, c);
        const Team team(nullptr);
        const auto pixels = team.hold(Pixels{place.data, size, stride, channel, 1 << 20});
        team.each(size, [&](auto chunk) {
          constexpr int kWeights[][3] = {{1, 256, 4096}, {-32768, 32767, 5}};
          for (const auto& w : kWeights) {
            std::int32_t sums[kPixelLanes], green[kPixelLanes], products[kPixelLanes];
            store_whole(sums, weigh(pixels[chunk], w[0], w[1], w[2]));
            store_whole(green, plane<1>(pixels[chunk]));
            store_whole(products, multiply_short(plane<2>(pixels[chunk]) * 128, w[0]));
            for (int k = 0; k < chunk.live; ++k) {
              const std::int64_t at = chunk.first + k;
              const int r = byte(at, 0), g = byte(at, 1), b = byte(at, 2);
              checker.expect(sums[k] == w[0] * r + w[1] * g + w[2] * b,
                             "%lld pixels, stride %lld: pixel %lld weighs %d", (long long)size,
                             (long long)stride, (long long)at, sums[k]);
              checker.expect(green[k] == g, "%lld pixels, stride %lld: pixel %lld has green %d, not %d",
                             (long long)size, (long long)stride, (long long)at, green[k], g);
              checker.expect(products[k] == b * 128 * w[0], "%d · %d is %d", b * 128, w[0], products[k]);
            }
          }
        });
      }
}

void pixels(const TileReport& report) {
  Checker checker(report);
  weigh_pixels<Access::cached>(checker);
  weigh_pixels<Access::strided>(checker);
}

}  // namespace

extern const TileCheck tile_memory_checks[] = {{"tails", tails},
                                               {"cached_access", access<Access::cached>},
                                               {"streaming_access", access<Access::streaming>},
                                               {"strided_access", access<Access::strided>},
                                               {"planes", planes},
                                               {"pixels", pixels},
                                               {}};
