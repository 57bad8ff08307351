// JPEG, by libjpeg-turbo.
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <jerror.h>
#include <jpeglib.h>  // needs <cstdio> before it

#include "cli/image_format.h"

// libjpeg reports an error by longjmp. No destructor may lie between setjmp and the call that jumps, so
// whatever owns memory (JpegReader, JpegWriter, vectors) lives outside `guarded`, and the lambdas that run
// inside it hold nothing but references and numbers.

namespace rooftile::cli {
namespace {

constexpr int kJpegQuality = 92;

struct JpegError {
  jpeg_error_mgr base{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> text{};
  bool ended_early = false;

  JpegError() {
    jpeg_std_error(&base);
    base.error_exit = fail;
    base.emit_message = warned;
    base.output_message = [](j_common_ptr) {};
  }

  [[noreturn]] static void fail(j_common_ptr cinfo) {
    auto& self = *reinterpret_cast<JpegError*>(cinfo->err);
    cinfo->err->format_message(cinfo, self.text.data());
    std::longjmp(self.jump, 1);
  }

  /// The same with a reason of ours.
  template <class Cinfo>
  [[noreturn]] static void fail_as(Cinfo cinfo, const char* text) {
    auto& self = *reinterpret_cast<JpegError*>(cinfo->err);
    std::snprintf(self.text.data(), self.text.size(), "%s", text);
    std::longjmp(self.jump, 1);
  }

  /// libjpeg goes on after damage and fills up with gray: what means lost pixels is made an error.
  static void warned(j_common_ptr cinfo, int level) {
    if (level >= 0) return;
    switch (cinfo->err->msg_code) {
      case JWRN_ADOBE_XFORM:
      case JWRN_BOGUS_ICC:
      case JWRN_EXTRANEOUS_DATA:  // stray bytes before a marker: some phones write them
      case JWRN_JFIF_MAJOR:
        return;
      default:
        fail(cinfo);
    }
  }
};

template <class Body>
bool guarded(JpegError& error, const Body& body) {
  if (setjmp(error.jump) != 0) return false;
  body();
  return true;
}

struct JpegReader {
  jpeg_decompress_struct cinfo{};
  JpegError error;
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::size_t file_bytes;

  explicit JpegReader(const Bytes& file) : file_bytes(file.size()) {
    cinfo.err = &error.base;
    source.next_input_byte = file.data();
    source.bytes_in_buffer = file.size();
    source.init_source = source.term_source = [](j_decompress_ptr) {};
    source.fill_input_buffer = [](j_decompress_ptr d) -> boolean { ended(d); };
    source.skip_input_data = [](j_decompress_ptr d, long count) {
      if (count <= 0) return;
      if (static_cast<std::size_t>(count) > d->src->bytes_in_buffer) ended(d);
      d->src->next_input_byte += count;
      d->src->bytes_in_buffer -= static_cast<std::size_t>(count);
    };
    source.resync_to_restart = jpeg_resync_to_restart;
    // Each scan costs time in proportion to the whole picture, and a hostile one only 10 bytes. Encoders
    // make 10.
    progress.progress_monitor = [](j_common_ptr c) {
      if (reinterpret_cast<j_decompress_ptr>(c)->input_scan_number > 100)
        JpegError::fail_as(c, "it has more than 100 scans");
    };
  }
  ~JpegReader() { jpeg_destroy_decompress(&cinfo); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// libjpeg's own source would invent an end marker and go on.
  [[noreturn]] static void ended(j_decompress_ptr d) {
    reinterpret_cast<JpegError*>(d->err)->ended_early = true;
    JpegError::fail_as(d, "cut off");
  }

  Status failed(const std::string& name) const {
    if (error.ended_early)
      return Status::error("%s: the JPEG is cut off: %zu bytes, and more are announced", name.c_str(),
                           file_bytes);
    return Status::error("%s: the JPEG is damaged or of an unknown kind: %s", name.c_str(),
                         error.text.data());
  }
};

/// The orientation, 1 to 8, that an APP1 segment's EXIF asks for; 0 where it has none that makes sense.
int exif_orientation(const std::uint8_t* data, std::size_t size) {
  if (size < 14 || std::memcmp(data, "Exif\0\0", 6) != 0) return 0;
  data += 6;
  size -= 6;
  const bool little = data[0] == 'I' && data[1] == 'I';
  if (!little && !(data[0] == 'M' && data[1] == 'M')) return 0;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | data[at + (little ? bytes - 1 - i : i)];
    return value;
  };
  const std::size_t directory = number(4, 4);
  if (number(2, 2) != 42 || directory > size - 2) return 0;
  const std::size_t entries = std::min(number(directory, 2), (size - directory - 2) / 12);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;  // tag, type, count, value
    if (number(entry, 2) != 0x0112 || number(entry + 2, 2) != 3) continue;
    const std::size_t value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

/// Turns the picture upright. EXIF: 2 mirrored, 3 upside down, 4 both; 5 to 8 the same with the axes swapped.
void orient(Image& image, int orientation) {
  if (orientation <= 1) return;
  const bool swap = orientation >= 5;
  const bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image turned{swap ? image.height : image.width, swap ? image.width : image.height, image.channels, {}};
  turned.pixels.resize(image.pixels.size());
  // The first pixel of the result lies in the corner (right, bottom) of the stored picture.
  const std::int64_t along_x = right ? -1 : 1;
  const std::int64_t along_y = bottom ? -image.width : image.width;
  const std::int64_t start = (right ? image.width - 1 : 0) + (bottom ? image.height - 1 : 0) * image.width;
  std::uint8_t* to = turned.pixels.data();
  for (std::int64_t y = 0; y < turned.height; ++y)
    for (std::int64_t x = 0; x < turned.width; ++x) {
      const std::int64_t from = start + (swap ? y * along_x + x * along_y : x * along_x + y * along_y);
      for (int c = 0; c < image.channels; ++c) *to++ = image.pixels[from * image.channels + c];
    }
  image = std::move(turned);
}

/// Adobe stores CMYK inverted (255: no ink); other writers, rarely met, as it is named.
void cmyk_to_rgb(const std::uint8_t* from, std::uint8_t* to, std::int64_t width, bool inverted) {
  for (std::int64_t x = 0; x < width; ++x, from += 4)
    for (int c = 0; c < 3; ++c) {
      const int paper = inverted ? from[c] * from[3] : (255 - from[c]) * (255 - from[3]);
      *to++ = static_cast<std::uint8_t>((paper + 127) / 255);
    }
}

struct JpegWriter {
  jpeg_compress_struct cinfo{};
  JpegError error;
  jpeg_destination_mgr destination{};
  Bytes& bytes;
  std::array<JOCTET, 16384> buffer{};

  explicit JpegWriter(Bytes& to) : bytes(to) {
    cinfo.err = &error.base;
    destination.init_destination = [](j_compress_ptr c) { of(c).restart(); };
    destination.empty_output_buffer = [](j_compress_ptr c) -> boolean {
      of(c).flush(0);  // the whole buffer: libjpeg says so, whatever free_in_buffer shows
      return TRUE;
    };
    destination.term_destination = [](j_compress_ptr c) { of(c).flush(c->dest->free_in_buffer); };
  }
  ~JpegWriter() { jpeg_destroy_compress(&cinfo); }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  static JpegWriter& of(j_compress_ptr c) { return *static_cast<JpegWriter*>(c->client_data); }
  void restart() {
    destination.next_output_byte = buffer.data();
    destination.free_in_buffer = buffer.size();
  }
  void flush(std::size_t left) {
    if (!append(bytes, buffer.data(), buffer.size() - left)) ERREXIT1(&cinfo, JERR_OUT_OF_MEMORY, 0);
    restart();
  }
};

}  // namespace

Status decode_jpeg(const std::string& name, const Bytes& file, Image& image) {
  JpegReader reader(file);
  jpeg_decompress_struct& cinfo = reader.cinfo;
  const bool header = guarded(reader.error, [&] {
    jpeg_create_decompress(&cinfo);
    cinfo.src = &reader.source;
    cinfo.progress = &reader.progress;
    cinfo.mem->max_memory_to_use = 1L << 31;  // a progressive picture's coefficients: 6 bytes a pixel
    jpeg_save_markers(&cinfo, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&cinfo, TRUE);
  });
  if (!header) return reader.failed(name);
  image.width = cinfo.image_width;
  image.height = cinfo.image_height;
  // Arithmetic coding (which no camera and no browser knows) can put 2^28 pixels into a few bytes, so no
  // header could be told from a lie. A Huffman scan has at least one bit for each block, which covers at most
  // 128 pixels (sampling 4x1 against 1x4): a byte holds at most 1024.
  if (cinfo.arith_code)
    return Status::error("%s: an arithmetic-coded JPEG; only Huffman-coded ones are read", name.c_str());
  const std::int64_t least = image.width * image.height / 1024;
  const auto file_bytes = static_cast<std::int64_t>(file.size());
  if (Status s = check_promise(name, image.width, image.height, file_bytes, least); !s) return s;
  const bool cmyk = cinfo.jpeg_color_space == JCS_CMYK || cinfo.jpeg_color_space == JCS_YCCK;
  if (!cmyk && cinfo.num_components != 1 && cinfo.num_components != 3)
    return Status::error("%s: a JPEG of %d colour components; 1, 3 and 4 (CMYK) are read", name.c_str(),
                         cinfo.num_components);
  image.channels = cinfo.num_components == 1 ? 1 : 3;
  cinfo.out_color_space = cmyk ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;

  int orientation = 0;  // taken now: finishing frees the markers
  for (jpeg_saved_marker_ptr m = cinfo.marker_list; m && !orientation; m = m->next)
    orientation = exif_orientation(m->data, m->data_length);

  const std::size_t stride = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  image.pixels.resize(stride * static_cast<std::size_t>(image.height));
  Bytes inks(cmyk ? static_cast<std::size_t>(image.width) * 4 : 0);
  const bool read = guarded(reader.error, [&] {
    jpeg_start_decompress(&cinfo);
    while (cinfo.output_scanline < cinfo.output_height) {
      std::uint8_t* const row = image.pixels.data() + stride * cinfo.output_scanline;
      JSAMPROW line = cmyk ? inks.data() : row;
      jpeg_read_scanlines(&cinfo, &line, 1);
      if (cmyk) cmyk_to_rgb(inks.data(), row, image.width, cinfo.saw_Adobe_marker != 0);
    }
    // A progressive file may end properly and still lack scans. coef_bits: bits still to come, -1: none came.
    // Encoders may leave high frequencies out, but begin nothing that they do not finish.
    for (int c = 0; cinfo.coef_bits && c < cinfo.num_components; ++c)
      for (int k = 0; k < DCTSIZE2; ++k)
        if (cinfo.coef_bits[c][k] > 0 || (k == 0 && cinfo.coef_bits[c][k] < 0))
          JpegError::fail_as(&cinfo, "some of its scans are missing");
    jpeg_finish_decompress(&cinfo);
  });
  if (!read) return reader.failed(name);
  orient(image, orientation);
  return Status();
}

Status encode_jpeg(const Image& image, Bytes& bytes) {
  if (image.width > JPEG_MAX_DIMENSION || image.height > JPEG_MAX_DIMENSION)
    return Status::error("JPEG: %lld x %lld pixels; its sides are at most %ld",
                         static_cast<long long>(image.width), static_cast<long long>(image.height),
                         JPEG_MAX_DIMENSION);
  JpegWriter writer(bytes);
  jpeg_compress_struct& cinfo = writer.cinfo;
  const bool written = guarded(writer.error, [&] {
    jpeg_create_compress(&cinfo);
    cinfo.client_data = &writer;
    cinfo.dest = &writer.destination;
    cinfo.image_width = static_cast<JDIMENSION>(image.width);
    cinfo.image_height = static_cast<JDIMENSION>(image.height);
    cinfo.input_components = image.channels;
    cinfo.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, kJpegQuality, TRUE);
    jpeg_start_compress(&cinfo, TRUE);
    const std::size_t stride = static_cast<std::size_t>(image.width * image.channels);
    while (cinfo.next_scanline < cinfo.image_height) {
      auto* line = const_cast<JSAMPROW>(image.pixels.data() + stride * cinfo.next_scanline);
      jpeg_write_scanlines(&cinfo, &line, 1);
    }
    jpeg_finish_compress(&cinfo);
  });
  return written ? Status() : Status::error("JPEG: %s", writer.error.text.data());
}

}  // namespace rooftile::cli
