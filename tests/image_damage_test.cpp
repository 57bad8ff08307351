// What is refused: files that are no picture, that lie about their size, that are cut off, and 2,000 seeded
// mutations; and what none of them may cost in time and memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "tests/image_making.h"

namespace {

namespace fs = std::filesystem;
using rooftile::Status;
using rooftile::cli::Image;
using rooftile::cli::load_image;
using namespace rooftile::test;

TEST(ImageDamage, RefusesWhatIsNoPicture) {
  Folder folder;
  write_bytes(folder / "empty.png", {});
  EXPECT_NE(refusal(folder / "empty.png").find("empty"), std::string::npos);
  std::ofstream(folder / "text.png") << "# a text\n";
  EXPECT_NE(refusal(folder / "text.png").find("neither PNG nor JPEG (9 bytes seen, first: 23 20 61 20)"),
            std::string::npos);
  std::ofstream(folder / "a.jpg") << "RIFF....WEBPVP8 ";
  EXPECT_NE(refusal(folder / "a.jpg").find("a WebP picture"), std::string::npos);
  fs::create_directory(folder / "folder.png");
  EXPECT_NE(refusal(folder / "folder.png").find("a folder"), std::string::npos);
  EXPECT_NE(refusal(folder / "none.png").find("No such file"), std::string::npos);
  write_bytes(folder / "b.jpg", make_jpeg(64, 64, {3, JCS_RGB, false, true}, smooth));
  EXPECT_NE(refusal(folder / "b.jpg").find("an arithmetic-coded JPEG"), std::string::npos);
  EXPECT_NE(refusal("/dev/zero").find("neither"), std::string::npos);
  EXPECT_NE(refusal("/" + std::string(5000, 'a')).find("too long"), std::string::npos);
}

void put_u32(Bytes& bytes, std::size_t offset, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[offset + i] = std::uint8_t(value >> (24 - 8 * i));
}

std::uint32_t get_u32(const Bytes& bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | bytes[offset + i];
  return value;
}

/// Where each chunk begins, as far as the lengths hold.
std::vector<std::size_t> png_chunks(const Bytes& bytes) {
  std::vector<std::size_t> chunks;
  for (std::size_t at = 8; at + 12 <= bytes.size() && get_u32(bytes, at) <= bytes.size() - at - 12;
       at += 12 + get_u32(bytes, at))
    chunks.push_back(at);
  return chunks;
}

/// Right checksums again, so that damage gets past them.
void fix_crcs(Bytes& bytes) {
  for (const std::size_t at : png_chunks(bytes)) {
    const std::uint32_t size = get_u32(bytes, at);
    std::uint32_t crc = ~0u;
    for (std::size_t i = at + 4; i < at + 8 + size; ++i) {
      crc ^= bytes[i];
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    put_u32(bytes, at + 8 + size, ~crc);
  }
}

/// Where each marker of a JPEG's header stands (0xFF), up to the first scan.
std::vector<std::size_t> jpeg_markers(const Bytes& bytes) {
  std::vector<std::size_t> markers;
  for (std::size_t at = 2; at + 4 <= bytes.size() && bytes[at] == 0xff;
       at += 2 + (std::size_t(bytes[at + 2]) << 8 | bytes[at + 3])) {
    markers.push_back(at);
    if (bytes[at + 1] == 0xda) break;
  }
  return markers;
}

/// The frame header: height and width are big-endian 16 bits at + 5 and + 7.
std::size_t jpeg_frame(const Bytes& bytes) {
  for (const std::size_t at : jpeg_markers(bytes)) {
    const int marker = bytes[at + 1];
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) return at;
  }
  return 0;
}

std::vector<Bytes> png_seeds() {
  std::vector<Bytes> seeds;
  for (const PngKind& kind :
       {PngKind{PNG_COLOR_TYPE_RGB}, PngKind{PNG_COLOR_TYPE_GRAY, 1}, PngKind{PNG_COLOR_TYPE_GRAY, 16},
        PngKind{PNG_COLOR_TYPE_PALETTE, 4, PNG_INTERLACE_ADAM7, true}, PngKind{PNG_COLOR_TYPE_PALETTE, 8},
        PngKind{PNG_COLOR_TYPE_RGB, 16, PNG_INTERLACE_ADAM7, true}, PngKind{PNG_COLOR_TYPE_GRAY_ALPHA, 8},
        PngKind{PNG_COLOR_TYPE_RGB_ALPHA, 16, PNG_INTERLACE_ADAM7}})
    seeds.push_back(make_png(21, 17, kind, [](int y) {
      Bytes row(21 * 8);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::uint8_t(i * i + 3 * y);
      return row;
    }));
  return seeds;
}

std::vector<Bytes> jpeg_seeds() {
  std::vector<Bytes> seeds;
  for (const JpegKind& kind :
       {JpegKind{}, JpegKind{1, JCS_GRAYSCALE}, JpegKind{3, JCS_RGB, true},
        JpegKind{4, JCS_CMYK, true, false, true}, JpegKind{3, JCS_RGB, false, false, false, 3},
        JpegKind{4, JCS_CMYK, false, false, true},
        JpegKind{3, JCS_RGB, false, false, false, 2, true, make_exif(6, true)},
        JpegKind{1, JCS_GRAYSCALE, true, false, false, 1, false, make_exif(3, false)}})
    seeds.push_back(
        make_jpeg(37, 29, kind, [](int x, int y, int c) { return (x * x + 5 * y + 90 * c) & 255; }));
  return seeds;
}

TEST(ImageDamage, RefusesLyingHeadersBeforeTakingMemory) {
  Folder folder;
  const Bytes png = png_seeds()[0];
  const Bytes jpeg = jpeg_seeds()[0];
  const auto png_of = [&](std::uint32_t width, std::uint32_t height) {
    Bytes lie = png;
    put_u32(lie, 16, width);
    put_u32(lie, 20, height);
    fix_crcs(lie);
    write_bytes(folder / "lie", lie);
    return refusal(folder / "lie");
  };
  const auto jpeg_of = [&](int width, int height) {
    Bytes lie = jpeg;
    const std::size_t at = jpeg_frame(lie) + 5;
    lie[at] = std::uint8_t(height >> 8);
    lie[at + 1] = std::uint8_t(height);
    lie[at + 2] = std::uint8_t(width >> 8);
    lie[at + 3] = std::uint8_t(width);
    write_bytes(folder / "lie", lie);
    return refusal(folder / "lie");
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos ? testing::AssertionSuccess()
                                                : testing::AssertionFailure() << text;
  };
  EXPECT_TRUE(has(png_of(100000, 100000), "100000 x 100000 pixels; 1 to 268435456"));
  EXPECT_TRUE(has(png_of(0x7fffffff, 0x7fffffff), "2147483647 x 2147483647 pixels"));
  EXPECT_TRUE(has(png_of(0x7fffffff, 1), "2147483647 x 1 pixels"));
  EXPECT_TRUE(has(png_of(16384, 16384), "promises 16384 x 16384 pixels, which take at least"));
  EXPECT_TRUE(has(png_of(1 << 28, 1), "promises 268435456 x 1 pixels"));
  EXPECT_TRUE(has(png_of(21, 18), "the PNG is damaged"));
  EXPECT_TRUE(has(png_of(0, 5), "damaged"));
  EXPECT_TRUE(has(png_of(0xffffffff, 5), "damaged"));
  EXPECT_TRUE(has(jpeg_of(65500, 65500), "65500 x 65500 pixels; 1 to"));
  EXPECT_TRUE(has(jpeg_of(16384, 16384), "promises 16384 x 16384 pixels"));
  EXPECT_TRUE(has(jpeg_of(37, 400), "damaged"));
  EXPECT_TRUE(has(jpeg_of(0, 10), "damaged"));
}

TEST(ImageDamage, RefusesEveryTruncationSilently) {
  Folder folder(memory_folder());
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  int accepted = 0, unlike = 0;
  for (const auto& seeds : {png_seeds(), jpeg_seeds()})
    for (const Bytes& seed : seeds)
      for (std::size_t size = 0; size < seed.size(); size += size + 20 < seed.size() ? 11 : 1) {
        write_bytes(folder / "cut", Bytes(seed.begin(), seed.begin() + size));
        Image image;
        const Status status = load_image(folder / "cut", image);
        accepted += bool(status);
        unlike += size >= 8 && !std::strstr(status.message(), "cut off");
      }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(accepted, 0) << "half pictures were taken for whole ones";
  EXPECT_EQ(unlike, 0) << "truncations were not called by their name";
}

TEST(ImageDamage, ToleratesHarmlessFlawsSilently) {
  // A wrong checksum on transparency, and stray bytes before a JPEG's marker: both libraries warn, we do not.
  Bytes png = png_seeds()[3];
  std::size_t transparency = 0;
  for (const std::size_t at : png_chunks(png))
    if (std::memcmp(&png[at + 4], "tRNS", 4) == 0) transparency = at;
  ASSERT_NE(transparency, 0u);
  png[transparency + 8] ^= 1;
  Bytes jpeg = make_jpeg(37, 29, {}, smooth);
  const std::uint8_t stray[] = {1, 2, 3};
  jpeg.insert(jpeg.begin() + jpeg_frame(jpeg), stray, stray + 3);
  Folder folder;
  write_bytes(folder / "png", png);
  testing::internal::CaptureStderr();
  Image image;
  EXPECT_TRUE(load_image(folder / "png", image));
  expect_picture(jpeg, make_image(37, 29, 3, smooth), 6);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ImageDamage, RefusesAJpegWithoutItsScans) {
  Folder folder;
  const auto refused = [&](Bytes jpeg, std::size_t size) {
    jpeg.resize(size);
    jpeg.insert(jpeg.end(), {0xff, 0xd9});
    write_bytes(folder / "a", jpeg);
    return refusal(folder / "a");
  };
  const auto starts_of_scans = [](const Bytes& jpeg) {
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i + 1 < jpeg.size(); ++i)
      if (jpeg[i] == 0xff && jpeg[i + 1] == 0xda) starts.push_back(i);
    return starts;
  };
  // Ended properly in the middle of a scan: libjpeg would fill the rest up with gray.
  const Bytes plain = jpeg_seeds()[0];
  EXPECT_NE(refused(plain, (starts_of_scans(plain).back() + plain.size()) / 2).find("premature end"),
            std::string::npos);
  // Ended properly before the last scans: a blurred picture, or one without its third colour.
  JpegKind by_colour{3, JCS_RGB, true};
  by_colour.scans = {{1, {0}, 0, 0, 0, 0}, {1, {1}, 0, 0, 0, 0}, {1, {2}, 0, 0, 0, 0}};
  for (const JpegKind& kind : {JpegKind{3, JCS_RGB, true}, by_colour}) {
    const Bytes jpeg = make_jpeg(37, 29, kind, smooth);
    const auto starts = starts_of_scans(jpeg);
    ASSERT_GE(starts.size(), 3u);
    for (std::size_t i = 1; i < starts.size(); ++i) {
      std::size_t end = starts[i];  // back over the Huffman tables that belong to this scan
      while (end > starts[i - 1] && !(jpeg[end] == 0xff && jpeg[end + 1] == 0xc4)) --end;
      if (end == starts[i - 1]) end = starts[i];
      EXPECT_NE(refused(jpeg, end).find("scans are missing"), std::string::npos) << i;
    }
  }
  // Each of ten thousand scans would cost time for the whole picture.
  JpegKind plain_scans{1, JCS_GRAYSCALE, true};
  plain_scans.scans = {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 0}};
  Bytes bomb = make_jpeg(1024, 1024, plain_scans, [](int, int, int) { return 9; });
  bomb.resize(bomb.size() - 2);
  const Bytes scan(bomb.begin() + starts_of_scans(bomb).back(), bomb.end());
  for (int i = 0; i < 10000; ++i) bomb.insert(bomb.end(), scan.begin(), scan.end());
  EXPECT_NE(refused(bomb, bomb.size()).find("more than 100 scans"), std::string::npos);
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;  // KiB on Linux
}

TEST(ImageDamage, LeavesCompressedCommentsAlone) {
  // 100 comments that inflate to 7 MB each, as libpng would do.
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
  png_set_IHDR(png, info, 1, 1, 8, PNG_COLOR_TYPE_GRAY, 0, 0, 0);
  std::string comment(7000000, 'a');
  char key[] = "Comment";
  png_text text{};
  text.compression = PNG_TEXT_COMPRESSION_zTXt;
  text.key = key;
  text.text = comment.data();
  png_set_text(png, info, &text, 1);
  png_write_info(png, info);
  const png_byte gray = 77;
  png_write_row(png, &gray);
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  const std::size_t at = png_chunks(bytes)[1];
  const Bytes chunk(bytes.begin() + at, bytes.begin() + png_chunks(bytes)[2]);
  ASSERT_EQ(chunk[4], 'z');
  for (int i = 0; i < 99; ++i) bytes.insert(bytes.begin() + at, chunk.begin(), chunk.end());
  const long before = peak_kib();
  expect_picture(bytes, Image{1, 1, 1, {77}}, 0);
  EXPECT_LT(peak_kib() - before, 100 * 1024);
}

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return count ? random_() % count : 0; }

  Bytes apply(const Bytes& seed, const Bytes& other, bool png) {
    Bytes bytes = seed;
    const std::size_t kind = below(5);
    if (kind == 0)
      for (std::size_t i = 0, count = 1 + below(12); i < count; ++i)
        bytes[below(bytes.size())] ^= std::uint8_t(1u << below(8));
    if (kind == 1) bytes.resize(below(bytes.size()));
    if (kind == 2) {  // splice: a stretch of the other file in place of one of this
      const std::size_t from = below(other.size()), count = below(other.size() - from);
      const std::size_t to = below(bytes.size()), lost = below(std::min<std::size_t>(bytes.size() - to, 200));
      bytes.erase(bytes.begin() + to, bytes.begin() + to + lost);
      bytes.insert(bytes.begin() + to, other.begin() + from, other.begin() + from + count);
    }
    if (kind == 3) {  // sizes and the bytes beside them
      const std::size_t frame = png ? 16 : jpeg_frame(bytes) + 4;
      const std::size_t at = frame + below(png ? 8 : 15);
      for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) bytes[at + i] = extreme();
    }
    if (kind == 4) {  // lengths of chunks and segments
      const auto places = png ? png_chunks(bytes) : jpeg_markers(bytes);
      const std::size_t at = places[below(places.size())] + (png ? 0 : 2);
      if (png && below(2))
        put_u32(bytes, at, get_u32(bytes, at) + std::uint32_t(below(3)) - 1);
      else
        for (std::size_t i = 0, count = png ? 4 : 2; i < count; ++i) bytes[at + i] = extreme();
    }
    if (png && below(3) != 0) fix_crcs(bytes);
    return bytes;
  }

 private:
  std::uint8_t extreme() {
    const std::uint8_t values[] = {0, 0, 1, 3, 0x7f, 0x80, 0xff, std::uint8_t(random_())};
    return values[below(8)];
  }

  std::mt19937 random_;
};

TEST(ImageDamage, SurvivesTwoThousandMutations) {
  Folder folder(memory_folder());
  const fs::path path = folder / "mutant";
  const long before = peak_kib();
  int refused = 0;
  for (const bool png : {true, false}) {
    int loaded = 0;
    const std::vector<Bytes> seeds = png ? png_seeds() : jpeg_seeds();
    for (std::uint32_t i = 0; i < 1000; ++i) {
      SCOPED_TRACE(testing::Message() << (png ? "PNG" : "JPEG") << " mutation " << i);
      Damage damage(i * 2 + png);
      write_bytes(path, damage.apply(seeds[i % seeds.size()], seeds[damage.below(seeds.size())], png));
      Image image;
      const auto start = std::chrono::steady_clock::now();
      const Status status = load_image(path, image);
      ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
      if (!status) {
        ++refused;
        ASSERT_GT(std::strlen(status.message()), path.string().size() + 10);
        ASSERT_TRUE(image.pixels.empty());
        continue;
      }
      ++loaded;
      ASSERT_TRUE(image.channels == 1 || image.channels == 3);
      ASSERT_GT(image.width, 0);
      ASSERT_GT(image.height, 0);
      ASSERT_EQ(image.pixels.size(), std::size_t(image.width * image.height * image.channels));
    }
    // Damage that is all noticed would not have reached the decoders' depths.
    EXPECT_GT(loaded, 40) << (png ? "PNG" : "JPEG");
  }
  // AddressSanitizer alone keeps up to 256 MiB of freed memory.
  EXPECT_LT(peak_kib() - before, 400 * 1024);
  EXPECT_GT(refused, 1000);
}

}  // namespace
