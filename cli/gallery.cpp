#include "cli/gallery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/failure.h"
#include "cli/gray.h"

namespace rooftile::cli {
namespace {

// The page holds each picture as PNG in base64: at this size some 400 KB of a photo.
constexpr std::int64_t kMaxSide = 640;

nlohmann::json entry(const std::string& title, const std::string& caption, const Image& image) {
  const Image small = shrink(image, kMaxSide);
  std::vector<std::uint8_t> png;
  if (const Status s = encode_png(small, png); !s) throw Failure(kTrouble, s.message());
  return {{"title", title},       {"caption", caption},
          {"mime", "image/png"},  {"base64", base64(png.data(), png.size())},
          {"width", small.width}, {"height", small.height}};
}

}  // namespace

nlohmann::json gallery(const Queue& queue, const Image& picture, const std::string& photo) {
  nlohmann::json pictures = nlohmann::json::array();
  const std::string size = fmt::format("{}×{}", picture.width, picture.height);
  pictures.push_back(
      entry("Original",
            photo.empty() ? fmt::format("{}, generated, as no photograph was given (--photo FILE).", size)
                          : fmt::format("{}, {}.", std::filesystem::path(photo).filename().string(), size),
            picture));
  for (const bool luminosity : {false, true}) {
    if (!has_gray()) break;
    const GrayResult gray = to_gray(queue, picture, luminosity);
    pictures.push_back(entry(
        luminosity ? "Gray, by luminosity" : "Gray",
        fmt::format("rgb_to_gray at full size, {}: {:.2f} ms, {:.1f} GB/s with {} thread{}.",
                    luminosity ? "0.21 red, 0.72 green, 0.07 blue" : "0.299 red, 0.587 green, 0.114 blue",
                    gray.seconds * 1e3, gray.seconds > 0 ? gray.bytes / gray.seconds * 1e-9 : 0,
                    queue.threads(), queue.threads() == 1 ? "" : "s"),
        gray.image));
  }
  return pictures;
}

Image generated_picture(std::int64_t width, std::int64_t height) {
  Image image{width, height, 3, {}};
  image.pixels.reserve(static_cast<std::size_t>(3 * width * height));
  const double scale = 1.0 / static_cast<double>(std::max<std::int64_t>(height, 1));
  for (std::int64_t row = 0; row < height; ++row)
    for (std::int64_t column = 0; column < width; ++column) {
      const double x = (static_cast<double>(column) - 0.62 * static_cast<double>(width)) * scale;
      const double y = (static_cast<double>(row) - 0.42 * static_cast<double>(height)) * scale;
      const double radius = std::sqrt(x * x + y * y);
      const double rings = 0.5 + 0.5 * std::cos(34 * radius - 3 * x);
      const double glow = std::exp(-2.2 * radius);
      const double down = static_cast<double>(row) * scale;
      const double hue = 0.9 * radius + 0.25 * down;
      for (const double phase : {0.02, 0.30, 0.52}) {
        const double colour = 0.55 + 0.45 * std::cos(6.283185 * (hue + phase));
        const double value = colour * (0.45 + 0.35 * rings) + 0.42 * glow;
        image.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0))));
      }
    }
  return image;
}

std::string base64(const std::uint8_t* data, std::size_t size) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((size + 2) / 3 * 4);
  for (std::size_t i = 0; i < size; i += 3) {
    const std::size_t left = std::min<std::size_t>(size - i, 3);
    std::uint32_t word = static_cast<std::uint32_t>(data[i]) << 16;
    if (left > 1) word |= static_cast<std::uint32_t>(data[i + 1]) << 8;
    if (left > 2) word |= data[i + 2];
    for (std::size_t digit = 0; digit < 4; ++digit)
      out += digit <= left ? kDigits[word >> (18 - 6 * digit) & 63] : '=';
  }
  return out;
}

}  // namespace rooftile::cli
