#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "cli/image_file.h"
#include "rooftile/core/queue.h"

namespace rooftile::cli {

/// The report's pictures: the photo (or, with an empty path, a generated one) and what the kernels made of
/// it.
nlohmann::json gallery(const Queue& queue, const Image& picture, const std::string& photo);

/// The picture for a report without a photo: soft rings of colour over a dusk.
Image generated_picture(std::int64_t width, std::int64_t height);

std::string base64(const std::uint8_t* data, std::size_t size);

}  // namespace rooftile::cli
