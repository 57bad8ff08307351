#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/image_file.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "rooftile/core/signature.h"
#include "rooftile/core/view.h"
#include "rooftile/harness/bench/timing.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {
namespace {

/// "640x480": a width and a height that a picture can have.
Image sized(const std::string& text) {
  const harness::Shape size = parse_shape(text);
  if (size.size() != 2)
    refuse("image pattern: --size is \"{}\"; it takes a width and a height, such as 640x480", text);
  if (size[0] < 1 || size[1] < 1 || size[0] > kMaxPixels / size[1])
    refuse("image pattern: --size is {}x{} pixels; 1 to 2^28 pixels can be drawn", size[0], size[1]);
  return {size[0], size[1], 3, {}};
}

/// The kernel's pixels are red, green, blue and an alpha of 1, which a picture without one shows as well.
void drop_alpha(const std::vector<std::uint8_t>& rgba, std::vector<std::uint8_t>& rgb) {
  rgb.resize(rgba.size() / 4 * 3);
  for (std::size_t from = 0, to = 0; from < rgba.size(); from += 4, to += 3)
    for (std::size_t c = 0; c < 3; ++c) rgb[to + c] = rgba[from + c];
}

}  // namespace

int image_pattern(const PatternArguments& arguments) {
  const auto& [out, size, time, frames, fps] = arguments;
  if (const Status s = check_picture_name(out); !s) throw Failure(kUsage, s.message());
  if (frames > 1)
    if (const Status s = check_animation_name(out, frames); !s) throw Failure(kUsage, s.message());
  check_destination(out);
  const Image blank = sized(size);
  const Op* const op = harness::find_op("color_pattern");
  if (!op) fail("this build has no color_pattern: configure it with the op pattern");
  const Queue queue = Queue::cpu();
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  std::vector<std::uint8_t> rgba(static_cast<std::size_t>(blank.width * blank.height * 4));
  const ConstView y = view(rgba.data(), {blank.height, blank.width, 4});
  std::int64_t taken = 0;
  const auto draw = [&, first = time, rate = fps](int k, Image& frame) {
    const std::int64_t start = harness::now_ns();
    if (const Status s = call(queue, *op, {&y}, {first + static_cast<double>(k) / rate}, nullptr); !s)
      throw Failure(kUsage, s.message());
    taken += harness::now_ns() - start;
    frame = blank;
    drop_alpha(rgba, frame.pixels);
    return Status();
  };
  if (frames == 1) {
    Image image;
    if (const Status s = draw(0, image); !s) throw Failure(kTrouble, s.message());
    const HoldSignals hold;
    if (const Status s = save_image(out, image); !s) throw Failure(kTrouble, s.message());
  } else {
    std::vector<std::uint8_t> bytes;
    if (const Status s = encode_animation(frames, fps, draw, bytes); !s) throw Failure(kTrouble, s.message());
    write_destination(out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  say("{}x{}, {} frame{} in {:.3f} ms ({} thread{}), written to {}\n", blank.width, blank.height, frames,
      frames == 1 ? "" : "s", static_cast<double>(taken) * 1e-6, queue.threads(),
      queue.threads() == 1 ? "" : "s", out);
  return kOk;
}

}  // namespace rooftile::cli
