// Loads and saves pictures of every variety, and shrinks them.
#include "cli/image_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/image_making.h"

namespace {

namespace fs = std::filesystem;
using rooftile::Status;
using rooftile::cli::Image;
using rooftile::cli::load_image;
using rooftile::cli::save_image;
using namespace rooftile::test;

TEST(ImageFile, SavesAndLoadsPngExactly) {
  Folder folder;
  for (const int channels : {1, 3})
    for (const auto& [width, height] : {std::pair(1, 1), std::pair(37, 23), std::pair(1, 300)}) {
      const Image image = make_image(width, height, channels,
                                     [](int x, int y, int c) { return (x * 91 + y * 57 + c * 13) & 255; });
      const Status saved = save_image(folder / "a.PNG", image);
      ASSERT_TRUE(saved) << saved.message();
      Image back;
      const Status loaded = load_image(folder / "a.PNG", back);
      ASSERT_TRUE(loaded) << loaded.message();
      EXPECT_EQ(back.width, width);
      EXPECT_EQ(back.height, height);
      EXPECT_EQ(back.channels, channels);
      EXPECT_EQ(back.pixels, image.pixels);
    }
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(ImageFile, SavesAndLoadsJpegClosely) {
  Folder folder;
  for (const int channels : {1, 3})
    for (const char* name : {"a.jpg", "a.JPEG"}) {
      const Image image = make_image(37, 23, channels, smooth);
      const Status saved = save_image(folder / name, image);
      ASSERT_TRUE(saved) << saved.message();
      std::ifstream file(folder / name, std::ios::binary);
      expect_picture(Bytes(std::istreambuf_iterator<char>(file), {}), image, 6);
    }
}

TEST(ImageFile, EncodesPngForEmbedding) {
  const Image image = make_image(20, 10, 3, smooth);
  Bytes bytes;
  const Status status = rooftile::cli::encode_png(image, bytes);
  ASSERT_TRUE(status) << status.message();
  expect_picture(bytes, image, 0);
}

/// tests/image_pattern_test.py decodes all frames.
TEST(ImageFile, EncodesAnimations) {
  using rooftile::cli::encode_animation;
  const auto frame = [](int k, int width) {
    return make_image(width, 10, 3, [k](int x, int y, int c) { return smooth(x + k, y, c); });
  };
  Bytes bytes;
  const Status status = encode_animation(
      3, 25, [&](int k, Image& to) { return to = frame(k, 20), Status(); }, bytes);
  ASSERT_TRUE(status) << status.message();
  expect_picture(bytes, frame(0, 20), 0);  // what knows no animations shows the first
  const auto refused = [&](const auto& draw) {
    Bytes none;
    const std::string sentence = encode_animation(3, 25, draw, none).message();
    EXPECT_TRUE(none.empty());
    return sentence;
  };
  EXPECT_EQ(refused([&](int k, Image& to) { return to = frame(k, 20 + k / 2), Status(); }),
            "PNG: frame 2 is 21 x 10 pixels of 3 channels, the first 20 x 10 of 3: all must be alike");
  EXPECT_EQ(refused([&](int k, Image& to) {
              return to = frame(k, 20), k == 1 ? Status::error("no frame %d", k) : Status();
            }),
            "no frame 1");
  EXPECT_TRUE(rooftile::cli::check_animation_name("a.PNG", 3));
  EXPECT_EQ(std::string(rooftile::cli::check_animation_name("a.jpeg", 3).message()),
            "a.jpeg: a JPEG holds one frame, 3 are to be written; name a .png, which holds many");
}

TEST(ImageFile, LoadsEveryPng) {
  constexpr int kWidth = 19, kHeight = 13;
  for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7})
    for (const bool transparent : {false, true}) {
      for (const int bits : {1, 2, 4, 8}) {
        // Samples of fewer than 8 bits, packed from the left; as gray and as palette entries.
        const auto sample = [&](int x, int y) { return (x * 5 + y * 3 + x * y) & ((1 << bits) - 1); };
        const auto row = [&](int y) {
          Bytes packed((kWidth * bits + 7) / 8);
          for (int x = 0; x < kWidth; ++x)
            packed[x * bits / 8] |= std::uint8_t(sample(x, y) << (8 - bits - x * bits % 8));
          return packed;
        };
        const auto gray = [&](int x, int y, int) {
          return transparent && sample(x, y) == 1 ? 255 : sample(x, y) * 255 / ((1 << bits) - 1);
        };
        const auto entry = [&](int x, int y, int c) {
          const int i = sample(x, y);
          return transparent && i == 1 ? 255 : c == 0 ? i : c == 1 ? 255 - i : 7 * i & 255;
        };
        SCOPED_TRACE(testing::Message() << bits << " bits, interlace " << interlace << transparent);
        expect_picture(make_png(kWidth, kHeight, {PNG_COLOR_TYPE_GRAY, bits, interlace, transparent}, row),
                       make_image(kWidth, kHeight, 1, gray), 0);
        expect_picture(make_png(kWidth, kHeight, {PNG_COLOR_TYPE_PALETTE, bits, interlace, transparent}, row),
                       make_image(kWidth, kHeight, 3, entry), 0);
      }
      for (const int bits : {8, 16})
        for (const int type :
             {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA}) {
          const bool alpha = type & PNG_COLOR_MASK_ALPHA;
          if (alpha && transparent) continue;
          const int colours = type & PNG_COLOR_MASK_COLOR ? 3 : 1;
          const int most = bits == 8 ? 255 : 65535;
          const auto sample = [&](int x, int y, int c) {
            return x == 3 ? 1 : c == colours && y == 2 ? 0 : (x * 3701 + y * 911 + c * 77) % (most + 1);
          };
          const auto row = [&](int y) {
            Bytes packed;
            for (int x = 0; x < kWidth; ++x)
              for (int c = 0; c < colours + alpha; ++c) {
                if (bits == 16) packed.push_back(std::uint8_t(sample(x, y, c) >> 8));
                packed.push_back(std::uint8_t(sample(x, y, c)));
              }
            return packed;
          };
          const auto expected = [&](int x, int y, int c) {
            if (transparent && sample(x, y, 0) == 1 && sample(x, y, colours - 1) == 1) return 255;
            const double value = double(sample(x, y, c)) / most;
            const double share = alpha ? double(sample(x, y, colours)) / most : 1;
            return int(255 * (value * share + 1 - share) + 0.5);
          };
          SCOPED_TRACE(testing::Message() << "type " << type << ", " << bits << " bits");
          expect_picture(make_png(kWidth, kHeight, {type, bits, interlace, transparent}, row),
                         make_image(kWidth, kHeight, colours, expected), bits == 16 && alpha ? 1 : 0);
        }
    }
}

TEST(ImageFile, LoadsEveryJpeg) {
  constexpr int kWidth = 43, kHeight = 29;  // no multiple of 8 or 16
  for (const bool progressive : {false, true})
    for (const int restart : {0, 2})
      for (const bool full : {false, true}) {
        JpegKind kind{3, JCS_RGB, progressive, false, false, restart, full};
        SCOPED_TRACE(testing::Message() << progressive << restart << full);
        expect_picture(make_jpeg(kWidth, kHeight, kind, smooth), make_image(kWidth, kHeight, 3, smooth), 6);
        kind.components = 1;
        kind.space = JCS_GRAYSCALE;
        expect_picture(make_jpeg(kWidth, kHeight, kind, smooth), make_image(kWidth, kHeight, 1, smooth), 6);
      }
  // CMYK: red, green and blue as 255 - ink, with some black; Adobe's files hold 255 - ink.
  const auto ink = [](int x, int y, int c) { return c == 3 ? 30 : 255 - smooth(x, y, c); };
  const auto inverted = [&](int x, int y, int c) { return 255 - ink(x, y, c); };
  const auto paper = [](int x, int y, int c) { return smooth(x, y, c) * 225 / 255; };
  const Image expected = make_image(kWidth, kHeight, 3, paper);
  expect_picture(make_jpeg(kWidth, kHeight, {4, JCS_CMYK}, ink), expected, 6);
  expect_picture(make_jpeg(kWidth, kHeight, {4, JCS_CMYK, false, false, true}, inverted), expected, 6);
}

TEST(ImageFile, TurnsJpegUprightByItsExif) {
  // The EXIF standard's table: where the stored top left and top right corner belong. t, b: top, bottom.
  const char* const corners[] = {"tl tr", "tr tl", "br bl", "bl br", "tl bl", "tr br", "br tr", "bl tl"};
  constexpr int kWidth = 48, kHeight = 32;
  const auto sample = [](int x, int y, int) { return y < 16 ? (x < 24 ? 240 : 160) : 20; };
  for (int orientation = 0; orientation <= 9; ++orientation)
    for (const bool little : {false, true}) {
      SCOPED_TRACE(testing::Message() << "orientation " << orientation << ", little " << little);
      JpegKind kind{3, JCS_RGB, false, false, false, 0, true, make_exif(orientation, little)};
      Folder folder;
      write_bytes(folder / "a", make_jpeg(kWidth, kHeight, kind, sample));
      Image image;
      ASSERT_TRUE(load_image(folder / "a", image));
      const bool valid = orientation >= 1 && orientation <= 8;
      const bool swapped = valid && orientation >= 5;
      ASSERT_EQ(image.width, swapped ? kHeight : kWidth);
      ASSERT_EQ(image.height, swapped ? kWidth : kHeight);
      const char* corner = corners[valid ? orientation - 1 : 0];
      const auto seen = [&](const char* name) {
        return at(image, name[1] == 'l' ? 4 : image.width - 5, name[0] == 't' ? 4 : image.height - 5, 0);
      };
      EXPECT_NEAR(seen(corner), 240, 8);
      EXPECT_NEAR(seen(corner + 3), 160, 8);
    }
  // An EXIF that points outside itself, or is cut short, is no reason to lose the photo.
  for (std::uint32_t directory : {0u, 25u, 33u, 34u, 1000u, 0xffffffffu}) {
    const Bytes exif = make_exif(6, true, directory);
    for (std::size_t size = 0; size <= exif.size(); ++size) {
      JpegKind kind{
          1, JCS_GRAYSCALE, false, false, false, 0, false, Bytes(exif.begin(), exif.begin() + size)};
      expect_picture(make_jpeg(9, 8, kind, smooth), make_image(9, 8, 1, smooth), 6);
    }
  }
}

TEST(ImageFile, ReadsAPipe) {
  Folder folder;
  const Image image = make_image(500, 300, 3, [](int x, int y, int c) { return (x * y * 7 + c * x) & 255; });
  Bytes bytes;
  ASSERT_TRUE(rooftile::cli::encode_png(image, bytes));
  ASSERT_GT(bytes.size(), 65536u);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { write_bytes(folder / "pipe", bytes); });
  Image back;
  const Status status = load_image(folder / "pipe", back);
  writer.join();
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(back.pixels, image.pixels);
}

TEST(ImageFile, Shrinks) {
  using rooftile::cli::shrink;
  EXPECT_EQ(shrink(Image{3, 1, 1, {0, 90, 180}}, 2).pixels, (Bytes{30, 150}));
  EXPECT_EQ(shrink(Image{1, 3, 1, {0, 90, 180}}, 2).pixels, (Bytes{30, 150}));
  EXPECT_EQ(shrink(Image{2, 2, 3, {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14}}, 1).pixels, (Bytes{6, 7, 8}));
  const Image same{3, 2, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(shrink(same, 3).pixels, same.pixels);
  const Image wide = shrink(make_image(1000, 3, 3, [](int, int, int c) { return 100 + c; }), 64);
  EXPECT_EQ(wide.width, 64);
  EXPECT_EQ(wide.height, 1);  // 0.19 rows, but never none
  for (int x = 0; x < 64; ++x)
    for (int c = 0; c < 3; ++c) ASSERT_EQ(at(wide, x, 0, c), 100 + c);
  // Against the mean in floating point, sizes that do not divide.
  const Image image = make_image(53, 31, 3, [](int x, int y, int c) { return (x * 37 + y * 101 + c) % 256; });
  const Image small = shrink(image, 20);
  ASSERT_EQ(small.width, 20);
  ASSERT_EQ(small.height, 12);
  for (int y = 0; y < 12; ++y)
    for (int x = 0; x < 20; ++x)
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        const auto share = [](int old_index, double old_size, int index, double size) {
          const double from = std::max(old_index / old_size, index / size);
          return std::max(0., std::min((old_index + 1) / old_size, (index + 1) / size) - from) * size;
        };
        for (int v = 0; v < 31; ++v)
          for (int u = 0; u < 53; ++u) sum += share(v, 31, y, 12) * share(u, 53, x, 20) * at(image, u, v, c);
        ASSERT_NEAR(at(small, x, y, c), sum, 0.5001);
      }
}

}  // namespace
