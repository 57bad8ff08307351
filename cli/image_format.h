#pragma once
// What the two picture formats share: image_file.cpp calls png_file.cpp and jpeg_file.cpp with these.
#include <cstdint>
#include <string>
#include <vector>

#include "cli/image_file.h"

namespace rooftile::cli {

using Bytes = std::vector<std::uint8_t>;

/// Decodes the bytes of a whole file; `name` begins the sentences. May throw std::bad_alloc.
Status decode_png(const std::string& name, const Bytes& file, Image& image);
Status decode_jpeg(const std::string& name, const Bytes& file, Image& image);
/// The picture as the bytes of a JPEG file. The picture passed check_image. May throw std::bad_alloc.
Status encode_jpeg(const Image& image, Bytes& bytes);

/// Refuses a header before memory is taken for its picture: too large for anyone, or for the file.
Status check_promise(const std::string& name, std::int64_t width, std::int64_t height,
                     std::int64_t file_bytes, std::int64_t least_bytes);

/// Refuses a picture that no file can hold; `what` begins the sentence.
Status check_image(const char* what, const Image& image);

/// False where memory is short: an exception must not cross the C library.
bool append(Bytes& bytes, const void* data, std::size_t size) noexcept;

}  // namespace rooftile::cli
