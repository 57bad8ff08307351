#include "cli/gray.h"

#include "cli/failure.h"
#include "rooftile/core/signature.h"
#include "rooftile/core/view.h"
#include "rooftile/harness/bench/timing.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {
namespace {

// Enough for a median; a large picture stops earlier.
constexpr int kRuns = 15;
constexpr double kSeconds = 0.5;

const Op* gray_op() { return harness::find_op("rgb_to_gray"); }

Status convert(const Queue& queue, ConstView rgb, View gray, bool luminosity) {
  const ConstView result = gray;
  return call(queue, *gray_op(), {&rgb, &result}, {luminosity ? 1. : 0.}, nullptr);
}

Image three_channels(const Image& gray) {
  Image rgb{gray.width, gray.height, 3, {}};
  rgb.pixels.reserve(3 * gray.pixels.size());
  for (const std::uint8_t value : gray.pixels) rgb.pixels.insert(rgb.pixels.end(), 3, value);
  return rgb;
}

}  // namespace

bool has_gray() { return gray_op() != nullptr; }

GrayResult to_gray(const Queue& queue, const Image& image, bool luminosity) {
  if (image.channels == 1) return to_gray(queue, three_channels(image), luminosity);
  GrayResult result;
  result.image = {image.width, image.height, 1, {}};
  result.image.pixels.resize(static_cast<std::size_t>(image.width * image.height));
  result.bytes = 4.0 * static_cast<double>(image.width * image.height);
  const ConstView rgb = view(image.pixels.data(), {image.height, image.width, 3});
  const View gray = view(result.image.pixels.data(), {image.height, image.width});
  harness::Samples seconds;
  const std::int64_t begun = harness::now_ns();
  for (int run = 0; run <= kRuns; ++run) {
    const std::int64_t start = harness::now_ns();
    if (const Status s = convert(queue, rgb, gray, luminosity); !s) throw Failure(kTrouble, s.message());
    const std::int64_t end = harness::now_ns();
    if (run > 0) seconds.add(static_cast<double>(end - start) * 1e-9);  // the first one wakes the threads
    if (run > 1 && static_cast<double>(end - begun) * 1e-9 > kSeconds) break;
  }
  result.seconds = seconds.median();
  result.runs = static_cast<int>(seconds.size());
  return result;
}

}  // namespace rooftile::cli
