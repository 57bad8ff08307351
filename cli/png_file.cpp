// PNG and animated PNG, by libpng.
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

std::uint32_t big_endian(const std::uint8_t* from) {
  return std::uint32_t{from[0]} << 24 | std::uint32_t{from[1]} << 16 | std::uint32_t{from[2]} << 8 | from[3];
}

/// Calls `each` with the type, the content and the size of each chunk of a PNG that encode_png wrote.
template <class Each>
void for_chunks(const std::uint8_t* png, std::size_t size, const Each& each) {
  constexpr std::size_t kSignature = 8, kLength = 4, kType = 4, kSum = 4;
  for (std::size_t at = kSignature; at < size;) {
    const std::uint32_t length = big_endian(png + at);
    each(png + at + kLength, png + at + kLength + kType, length);
    at += kLength + kType + length + kSum;
  }
}

/// How many frames; 0 plays: for ever.
void write_animation_control(png_structp png, int frames) {
  std::array<png_byte, 8> control{};
  png_save_uint_32(control.data(), static_cast<png_uint_32>(frames));
  png_write_chunk(png, reinterpret_cast<png_const_bytep>("acTL"), control.data(), control.size());
}

/// A frame that takes the whole picture's place, for 1 / fps seconds.
void write_frame_control(png_structp png, png_uint_32 sequence, const Image& frame, int fps) {
  std::array<png_byte, 26> control{};  // offsets, dispose and blend operations: 0
  png_save_uint_32(control.data(), sequence);
  png_save_uint_32(control.data() + 4, static_cast<png_uint_32>(frame.width));
  png_save_uint_32(control.data() + 8, static_cast<png_uint_32>(frame.height));
  png_save_uint_16(control.data() + 20, 1);
  png_save_uint_16(control.data() + 22, static_cast<unsigned>(fps));
  png_write_chunk(png, reinterpret_cast<png_const_bytep>("fcTL"), control.data(), control.size());
}

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

// Each frame is encoded as a PNG of its own, whose IDAT chunks become the animation's: of the first frame as
// they are, so that a reader without animations shows it; of the others as fdAT, behind a sequence number.
Status encode_animation(int frames, int fps, const DrawFrame& draw, Bytes& bytes) try {
  Bytes encoded, alone;
  PngWriter writer(encoded);
  if (!writer.info) throw std::bad_alloc();
  png_structp const png = writer.png;
  png_uint_32 sequence = 0;
  std::int64_t width = 0, height = 0;
  int channels = 0;
  for (int k = 0; k < frames; ++k) {
    Image frame;
    if (Status s = draw(k, frame); !s) return s;
    if (Status s = encode_png(frame, alone); !s) return s;
    if (k == 0) {
      width = frame.width, height = frame.height, channels = frame.channels;
    } else if (frame.width != width || frame.height != height || frame.channels != channels) {
      return Status::error(
          "PNG: frame %d is %lld x %lld pixels of %d channels, the first %lld x %lld of %d: all must be "
          "alike",
          k, static_cast<long long>(frame.width), static_cast<long long>(frame.height), frame.channels,
          static_cast<long long>(width), static_cast<long long>(height), channels);
    }
    const std::uint8_t* const from = alone.data();
    const std::size_t size = alone.size();
    const bool written = guarded(png, [&] {
      if (k == 0) png_write_sig(png);
      bool begun = k > 0;
      if (begun) write_frame_control(png, sequence++, frame, fps);
      for_chunks(from, size, [&](const png_byte* type, const png_byte* content, std::size_t length) {
        const bool data = std::memcmp(type, "IDAT", 4) == 0;
        if (data && !begun) {
          write_animation_control(png, frames);
          write_frame_control(png, sequence++, frame, fps);
          begun = true;
        }
        if (data && k > 0) {
          std::array<png_byte, 4> number{};
          png_save_uint_32(number.data(), sequence++);
          png_write_chunk_start(png, reinterpret_cast<png_const_bytep>("fdAT"),
                                static_cast<png_uint_32>(length + number.size()));
          png_write_chunk_data(png, number.data(), number.size());
          png_write_chunk_data(png, content, length);
          png_write_chunk_end(png);
        } else if (data || (k == 0 && std::memcmp(type, "IEND", 4) != 0)) {
          png_write_chunk(png, type, content, length);
        }
      });
      if (k == frames - 1) png_write_chunk(png, reinterpret_cast<png_const_bytep>("IEND"), nullptr, 0);
    });
    if (!written) return Status::error("PNG: %s", writer.error.text.data());
  }
  bytes = std::move(encoded);
  return Status();
} catch (const std::bad_alloc&) {
  return Status::error("PNG: not enough memory to encode %d frames", frames);
}

}  // namespace rooftile::cli
