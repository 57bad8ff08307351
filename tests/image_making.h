#pragma once
// Pictures and files for the tests of cli/: every variety of PNG and JPEG, made by the libraries themselves.
#include <gtest/gtest.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <jpeglib.h>  // needs <cstdio> before it

#include "cli/image_file.h"

namespace rooftile::test {

namespace fs = std::filesystem;
using cli::Image;
using cli::load_image;
using Bytes = std::vector<std::uint8_t>;

class Folder {
 public:
  explicit Folder(const fs::path& parent = fs::temp_directory_path()) {
    std::string name = (parent / "rooftile-image-XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
    fs::permissions(path_, fs::perms(0755));  // a test enters it as another user
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path_)) all.push_back(entry.path().filename().string());
    return all;
  }

 private:
  fs::path path_;
};

/// For thousands of files: on a disk, writing one over another waits for the disk (5 ms; here 0.02).
inline fs::path memory_folder() {
  return access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
}

inline void write_bytes(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

struct PngKind {
  int colour_type = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  int interlace = PNG_INTERLACE_NONE;
  bool transparent = false;  ///< tRNS: palette entry 1, or the colour whose samples are all 1
};

/// A palette of 1 << bits entries: entry i is (i, 255 - i, 7 i).
inline Bytes make_png(int width, int height, const PngKind& kind,
                      const std::function<Bytes(int y)>& packed_row) {
  Bytes bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep from, std::size_t size) {
        auto& to = *static_cast<Bytes*>(png_get_io_ptr(p));
        to.insert(to.end(), from, from + size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, width, height, kind.bits, kind.colour_type, kind.interlace, 0, 0);
  if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette;
    for (int i = 0; i < 1 << kind.bits; ++i)
      palette.push_back({png_byte(i), png_byte(255 - i), png_byte(7 * i)});
    png_set_PLTE(png, info, palette.data(), int(palette.size()));
  }
  png_byte alphas[] = {255, 0};
  png_color_16 key{1, 1, 1, 1, 1};
  if (kind.transparent) png_set_tRNS(png, info, alphas, 2, &key);
  png_text text{};
  text.compression = PNG_TEXT_COMPRESSION_NONE;
  char word[] = "Comment", value[] = "made by the test";
  text.key = word;
  text.text = value;
  png_set_text(png, info, &text, 1);
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass)
    for (int y = 0; y < height; ++y) png_write_row(png, packed_row(y).data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

struct JpegKind {
  int components = 3;
  J_COLOR_SPACE space = JCS_RGB;
  bool progressive = false;
  bool arithmetic = false;
  bool adobe = false;
  int restart = 0;
  bool full_colour = false;  ///< 4:4:4 rather than 4:2:0
  Bytes app1 = {};
  std::vector<jpeg_scan_info> scans = {};
};

using Sample = std::function<int(int x, int y, int c)>;

inline Bytes make_jpeg(int width, int height, const JpegKind& kind, const Sample& sample) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &memory, &size);
  cinfo.image_width = width;
  cinfo.image_height = height;
  cinfo.input_components = kind.components;
  cinfo.in_color_space = kind.space;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&cinfo);
  cinfo.arith_code = kind.arithmetic;
  cinfo.restart_interval = kind.restart;
  if (kind.full_colour) cinfo.comp_info[0].h_samp_factor = cinfo.comp_info[0].v_samp_factor = 1;
  if (kind.components == 4) cinfo.write_Adobe_marker = kind.adobe;
  if (!kind.scans.empty()) {
    cinfo.scan_info = kind.scans.data();
    cinfo.num_scans = int(kind.scans.size());
  }
  jpeg_start_compress(&cinfo, TRUE);
  if (!kind.app1.empty())
    jpeg_write_marker(&cinfo, JPEG_APP0 + 1, kind.app1.data(), unsigned(kind.app1.size()));
  Bytes row(std::size_t(width) * kind.components);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < kind.components; ++c) row[x * kind.components + c] = std::uint8_t(sample(x, y, c));
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&cinfo, &line, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

inline Bytes make_exif(int orientation, bool little, std::uint32_t directory = 8) {
  Bytes bytes = {'E', 'x', 'i', 'f', 0, 0};
  const auto put = [&](std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(std::uint8_t(value >> 8 * (little ? i : size - 1 - i)));
  };
  bytes.insert(bytes.end(), 2, little ? 'I' : 'M');
  put(42, 2);
  put(directory, 4);
  put(2, 2);
  for (const auto& [tag, value] : {std::pair(0x0100, 9), std::pair(0x0112, orientation)}) {
    put(tag, 2);
    put(3, 2);
    put(1, 4);
    put(value, 2);
    put(0, 2);
  }
  put(0, 4);
  return bytes;
}

inline int smooth(int x, int y, int c) { return 40 + 3 * x + (c == 1 ? 2 : 1) * y + 20 * c; }

inline int at(const Image& image, std::int64_t x, std::int64_t y, int c) {
  return image.pixels[(y * image.width + x) * image.channels + c];
}

inline Image make_image(int width, int height, int channels, const Sample& sample) {
  Image image{width, height, channels, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) image.pixels.push_back(std::uint8_t(sample(x, y, c)));
  return image;
}

/// Loads the bytes as a file whose name says nothing, and checks sizes and every sample within `slack`.
inline void expect_picture(const Bytes& file, const Image& expected, int slack) {
  Folder folder(memory_folder());
  write_bytes(folder / "picture", file);
  Image image;
  const Status status = load_image(folder / "picture", image);
  ASSERT_TRUE(status) << status.message();
  ASSERT_EQ(image.width, expected.width);
  ASSERT_EQ(image.height, expected.height);
  ASSERT_EQ(image.channels, expected.channels);
  ASSERT_EQ(image.pixels.size(), expected.pixels.size());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    ASSERT_NEAR(image.pixels[i], expected.pixels[i], slack) << "byte " << i;
}

inline std::string refusal(const fs::path& path) {
  Image image{1, 1, 1, {7}};
  const Status status = load_image(path, image);
  EXPECT_FALSE(status) << path;
  EXPECT_EQ(image.pixels, Bytes{7}) << "a failed load changed the picture";
  return status.message();
}

inline const Image& noise() {
  static const Image image = [] {
    std::mt19937 random(1);
    return make_image(200, 100, 3, [&](int, int, int) { return int(random() & 255); });
  }();
  return image;
}

}  // namespace rooftile::test
