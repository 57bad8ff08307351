#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/gray.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/table.h"

namespace rooftile::cli {

int image_gray(const GrayArguments& arguments) {
  if (const Status s = check_picture_name(arguments.out); !s) throw Failure(kUsage, s.message());
  check_destination(arguments.out);
  const Queue queue = Queue::cpu();
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  Image image;
  if (const Status s = load_image(arguments.in, image); !s) throw Failure(kTrouble, s.message());
  const GrayResult gray = to_gray(queue, image, arguments.luminosity);
  {
    const HoldSignals hold;
    if (const Status s = save_image(arguments.out, gray.image); !s) throw Failure(kTrouble, s.message());
  }
  say("{}: {}x{}{}, gray in {:.3f} ms ({:.1f} GB/s, {} thread{}, median of {}), written to {}\n",
      arguments.in, image.width, image.height, image.channels == 1 ? " (gray already)" : "",
      gray.seconds * 1e3, gray.seconds > 0 ? gray.bytes / gray.seconds * 1e-9 : 0, queue.threads(),
      queue.threads() == 1 ? "" : "s", gray.runs, arguments.out);
  return kOk;
}

}  // namespace rooftile::cli
