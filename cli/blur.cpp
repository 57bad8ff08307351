#include <fmt/format.h>

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

int image_blur(const BlurArguments& arguments) {
  if (const Status s = check_picture_name(arguments.out); !s) throw Failure(kUsage, s.message());
  check_destination(arguments.out);
  if (arguments.radius < 0 && arguments.sigma == 0)
    throw Failure(kUsage, "image blur: --radius N gives a box blur, --sigma PIXELS a Gaussian: say one");
  const bool gaussian = arguments.sigma != 0;
  const char* const function = gaussian ? "gaussian_blur" : "box_blur";
  const Op* const op = harness::find_op(function);
  if (!op)
    throw Failure(kTrouble, fmt::format("this build has no {}: configure it with the op blur", function));
  const Queue queue = Queue::cpu();
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  Image image;
  if (const Status s = load_image(arguments.in, image); !s) throw Failure(kTrouble, s.message());
  Image blurred{image.width, image.height, image.channels, {}};
  blurred.pixels.resize(image.pixels.size());
  const ConstView x = view(image.pixels.data(), {image.height, image.width, image.channels});
  const ConstView y = view(blurred.pixels.data(), {image.height, image.width, image.channels});
  const std::int64_t start = harness::now_ns();
  const double size = gaussian ? arguments.sigma : static_cast<double>(arguments.radius);
  if (const Status s = call(queue, *op, {&x, &y}, {size, static_cast<double>(arguments.border)}, nullptr); !s)
    throw Failure(kUsage, s.message());
  const double seconds = static_cast<double>(harness::now_ns() - start) * 1e-9;
  {
    const HoldSignals hold;
    if (const Status s = save_image(arguments.out, blurred); !s) throw Failure(kTrouble, s.message());
  }
  say("{}: {}x{}, {} {} in {:.3f} ms ({} thread{}), written to {}\n", arguments.in, image.width, image.height,
      gaussian ? "Gaussian blur of sigma" : "box blur of radius", size, seconds * 1e3, queue.threads(),
      queue.threads() == 1 ? "" : "s", arguments.out);
  return kOk;
}

}  // namespace rooftile::cli
