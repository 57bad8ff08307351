// PNG, by libpng.
#include <png.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "cli/image_format.h"

// libpng reports an error by longjmp. No destructor may lie between setjmp and the call that jumps, so
// whatever owns memory (PngReader, PngWriter, vectors) lives outside `guarded`, and the lambdas that run
// inside it hold nothing but references and numbers.

namespace rooftile::cli {
namespace {

struct PngError {
  std::array<char, 160> text{};
};

[[noreturn]] void png_failed(png_structp png, png_const_charp text) {
  auto& error = *static_cast<PngError*>(png_get_error_ptr(png));
  std::snprintf(error.text.data(), error.text.size(), "%s", text);
  png_longjmp(png, 1);
}

void png_warned(png_structp, png_const_charp) {}  // libpng's own would print

/// Runs `body`, which holds nothing that needs a destructor; false where libpng jumped out of it.
template <class Body>
bool guarded(png_structp png, const Body& body) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  body();
  return true;
}

struct PngReader {
  PngError error;
  const Bytes& file;
  std::size_t offset = 0;
  bool ended_early = false;
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngReader(const Bytes& bytes) : file(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &error, png_failed, png_warned);
    if (png) info = png_create_info_struct(png);
    if (png) png_set_read_fn(png, this, read);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  static void read(png_structp png, png_bytep to, std::size_t size) {
    auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > self.file.size() - self.offset) {
      self.ended_early = true;
      png_error(png, "ends early");
    }
    std::memcpy(to, self.file.data() + self.offset, size);
    self.offset += size;
  }

  Status failed(const std::string& name) const {
    if (ended_early)
      return Status::error("%s: the PNG is cut off: %zu bytes, and more are announced", name.c_str(),
                           file.size());
    return Status::error("%s: the PNG is damaged: %s", name.c_str(), error.text.data());
  }
};

/// Chunks that cannot change the samples are skipped unread: a hostile file could have libpng inflate a
/// thousand of them to 8 MB each.
void skip_side_chunks(png_structp png) {
  static constexpr png_byte kNames[] =
      "cHRM\0gAMA\0iCCP\0sBIT\0sRGB\0bKGD\0hIST\0pHYs\0sPLT\0tIME\0tEXt\0zTXt\0iTXt\0eXIf\0oFFs\0pCAL\0sCAL"
      "\0";
  constexpr int kCount = static_cast<int>(sizeof(kNames) / 5);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kNames, kCount);
}

/// Gray + alpha or RGBA over white, in place: each pixel is written at or before where it is read.
void composite_over_white(Image& image) {
  const int colours = image.channels - 1;
  const std::size_t count = image.pixels.size() / static_cast<std::size_t>(image.channels);
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = image.pixels.data();
  for (std::size_t i = 0; i < count; ++i, from += colours + 1) {
    const int alpha = from[colours];
    for (int c = 0; c < colours; ++c)
      *to++ = static_cast<std::uint8_t>((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
  image.channels = colours;
  image.pixels.resize(count * static_cast<std::size_t>(colours));
}

struct PngWriter {
  PngError error;
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngWriter(Bytes& bytes) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &error, png_failed, png_warned);
    if (png) info = png_create_info_struct(png);
    if (png) png_set_write_fn(png, &bytes, write, flush);
  }
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  static void write(png_structp png, png_bytep from, std::size_t size) {
    if (!append(*static_cast<Bytes*>(png_get_io_ptr(png)), from, size)) png_error(png, "out of memory");
  }
  static void flush(png_structp) {}
};

}  // namespace

Status decode_png(const std::string& name, const Bytes& file, Image& image) {
  PngReader reader(file);
  if (!reader.info) throw std::bad_alloc();
  png_structp const png = reader.png;
  png_infop const info = reader.info;
  int passes = 1;
  const bool header = guarded(png, [&] {
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours name the values seen
    skip_side_chunks(png);
    png_read_info(png, info);
    image.width = png_get_image_width(png, info);
    image.height = png_get_image_height(png, info);
  });
  if (!header) return reader.failed(name);
  // Deflate makes at most 1032 bytes of one. Rows before the transformations below, each with its filter
  // byte.
  const auto packed = static_cast<std::int64_t>(png_get_rowbytes(png, info) + 1);
  const std::int64_t least = packed > kMaxPixels * 8 ? kMaxPixels : packed * image.height / 1032;
  const auto file_bytes = static_cast<std::int64_t>(file.size());
  if (Status s = check_promise(name, image.width, image.height, file_bytes, least); !s) return s;

  const bool prepared = guarded(png, [&] {
    png_set_expand(png);  // palette to RGB, 1 2 4 bits to 8, a transparent colour to alpha
    png_set_scale_16(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    image.channels = png_get_channels(png, info);
  });
  if (!prepared) return reader.failed(name);
  const std::size_t stride = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  if (png_get_rowbytes(png, info) != stride)
    return Status::error("%s: libpng gives rows of %zu bytes for %lld pixels of %d channels", name.c_str(),
                         png_get_rowbytes(png, info), static_cast<long long>(image.width), image.channels);
  image.pixels.resize(stride * static_cast<std::size_t>(image.height));
  std::uint8_t* const pixels = image.pixels.data();
  const bool read = guarded(png, [&] {
    for (int pass = 0; pass < passes; ++pass)
      for (std::int64_t y = 0; y < image.height; ++y)
        png_read_row(png, pixels + stride * static_cast<std::size_t>(y), nullptr);
    png_read_end(png, nullptr);
  });
  if (!read) return reader.failed(name);
  if (image.channels == 2 || image.channels == 4) composite_over_white(image);
  return Status();
}

Status encode_png(const Image& image, Bytes& bytes) try {
  if (Status s = check_image("PNG", image); !s) return s;
  Bytes encoded;
  PngWriter writer(encoded);
  if (!writer.info) throw std::bad_alloc();
  png_structp const png = writer.png;
  const bool written = guarded(png, [&] {
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(png, writer.info, static_cast<png_uint_32>(image.width),
                 static_cast<png_uint_32>(image.height), 8,
                 image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, 3);  // zlib's own 6: four times as long for 4% less of a 4K photo
    png_write_info(png, writer.info);
    const std::size_t stride = static_cast<std::size_t>(image.width * image.channels);
    for (std::int64_t y = 0; y < image.height; ++y)
      png_write_row(png, image.pixels.data() + stride * static_cast<std::size_t>(y));
    png_write_end(png, nullptr);
  });
  if (!written) return Status::error("PNG: %s", writer.error.text.data());
  bytes = std::move(encoded);
  return Status();
} catch (const std::bad_alloc&) {
  return Status::error("PNG: not enough memory to encode the picture");
}

}  // namespace rooftile::cli
