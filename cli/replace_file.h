#pragma once

#include <cstddef>
#include <filesystem>

#include "rooftile/core/status.h"

namespace rooftile::cli {

/// Puts `size` bytes at `path`: writes a temporary file in the same folder (without a name, where the system
/// has such), flushes it to the disk, then renames it over `path`. So a full disk, a folder that can't be
/// written or Ctrl-C leaves what was there before, and no half-written file. A symbolic link stays one and
/// its target is replaced; an existing file keeps its permissions; a device or pipe is written to directly.
/// (Writing past RLIMIT_FSIZE raises SIGXFSZ: ignore that signal to get the sentence instead.)
Status replace_file(const std::filesystem::path& path, const void* data, std::size_t size);

}  // namespace rooftile::cli
