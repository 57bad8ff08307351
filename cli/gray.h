#pragma once
#include "cli/image_file.h"
#include "rooftile/core/queue.h"

namespace rooftile::cli {

/// A picture through the library's gray kernel, and how long that took.
struct GrayResult {
  Image image;
  double seconds = 0;  ///< the median of `runs`
  int runs = 0;
  double bytes = 0;  ///< moved by one run
};

/// Whether this build has the kernel.
bool has_gray();

/// Throws a Failure with the library's sentence where it refuses. A gray picture counts as a colour one of
/// equal parts.
GrayResult to_gray(const Queue& queue, const Image& image, bool luminosity = false);

}  // namespace rooftile::cli
