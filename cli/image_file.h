#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "rooftile/core/status.h"

namespace rooftile::cli {

/// A picture of 8-bit samples: gray (1 channel) or red, green, blue (3), rows packed, top row first.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  ///< width * height * channels bytes
};

/// A picture with more pixels than this (2^28, 16384 x 16384) is refused before memory is taken for it.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// Reads a PNG or JPEG file, told apart by its first bytes, never by its name; pipes work too.
///
/// The samples are taken as stored: gamma chunks and colour profiles are not applied. 16 bits become 8
/// (rounded), palettes and 1, 2 and 4 bits are expanded, CMYK becomes RGB. A gray file gives 1 channel, every
/// other one 3. Alpha is composited over white, the page that a browser would show the picture on. A JPEG is
/// turned upright by its EXIF orientation; arithmetic-coded ones are refused. Of an animation the first
/// picture is read.
///
/// A damaged or truncated file, one that promises more pixels than its bytes can hold, or more than
/// kMaxPixels, gives a sentence and leaves `image` as it was; nothing is printed.
Status load_image(const std::filesystem::path& path, Image& image);

/// Refuses a name that ends in none of save_image's formats.
Status check_picture_name(const std::filesystem::path& path);

/// Refuses a name that does not end in .png, the only format that holds `frames` pictures.
Status check_animation_name(const std::filesystem::path& path, int frames);

/// Writes PNG (.png) or JPEG (.jpg, .jpeg; quality 92), chosen by the name's ending, upper or lower case.
/// The file appears whole or not at all (see cli/replace_file.h).
Status save_image(const std::filesystem::path& path, const Image& image);

/// The picture as the bytes of a PNG file.
Status encode_png(const Image& image, std::vector<std::uint8_t>& bytes);

/// Draws frame k of an animation.
using DrawFrame = std::function<Status(int k, Image& frame)>;

/// `frames` pictures of one size and kind, drawn one after the other and shown for 1 / fps seconds each, for
/// ever, as the bytes of an animated PNG. `frames` is at least 1, `fps` 1 to 65535. Browsers play it; what
/// knows no animations shows the first frame.
Status encode_animation(int frames, int fps, const DrawFrame& draw, std::vector<std::uint8_t>& bytes);

/// The picture made smaller, so that neither side is over `max_side` (at least 1): each new pixel is the mean
/// of the area it covers, rounded. A picture that fits comes back as it is; none is ever enlarged.
Image shrink(const Image& image, std::int64_t max_side);

}  // namespace rooftile::cli
