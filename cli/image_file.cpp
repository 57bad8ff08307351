#include "cli/image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "cli/file_descriptor.h"
#include "cli/image_format.h"
#include "cli/replace_file.h"

namespace rooftile::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

bool begins(const Bytes& file, std::size_t offset, const char* magic, std::size_t size) {
  return file.size() >= offset + size && std::memcmp(file.data() + offset, magic, size) == 0;
}

std::string lower_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending;
}

bool is_png(const Bytes& file) { return begins(file, 0, "\x89PNG\r\n\x1a\n", 8); }
bool is_jpeg(const Bytes& file) { return begins(file, 0, "\xff\xd8\xff", 3); }

/// Why a file that is neither PNG nor JPEG is refused; the common formats of cameras and the web by name.
Status refuse_format(const std::string& name, const Bytes& file) {
  if (file.empty()) return Status::error("%s: the file is empty", name.c_str());
  const char* format = nullptr;
  if (begins(file, 0, "GIF8", 4)) format = "GIF";
  if (begins(file, 0, "RIFF", 4) && begins(file, 8, "WEBP", 4)) format = "WebP";
  if (begins(file, 4, "ftyphei", 7) || begins(file, 4, "ftypmif1", 8)) format = "HEIC";
  if (begins(file, 4, "ftypavif", 8)) format = "AVIF";
  if (begins(file, 0, "II*\0", 4) || begins(file, 0, "MM\0*", 4)) format = "TIFF (or raw camera)";
  if (begins(file, 0, "BM", 2)) format = "BMP";
  if (format) return Status::error("%s: a %s picture; only PNG and JPEG are read", name.c_str(), format);
  std::array<std::uint8_t, 4> first{};
  std::copy_n(file.begin(), std::min(file.size(), first.size()), first.begin());
  return Status::error("%s: neither PNG nor JPEG (%zu byte%s seen, first: %02x %02x %02x %02x)", name.c_str(),
                       file.size(), file.size() == 1 ? "" : "s", first[0], first[1], first[2], first[3]);
}

Status read_file(const fs::path& path, const std::string& name, Bytes& file) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    return Status::error("%s: cannot be opened: %s", name.c_str(), reason(errno).c_str());
  if (S_ISDIR(info.st_mode)) return Status::error("%s: a folder, not a picture", name.c_str());
  const bool regular = S_ISREG(info.st_mode);
  if (regular && info.st_size > static_cast<off_t>(kMaxFileBytes))
    return Status::error("%s: %lld bytes; at most %zu are read", name.c_str(),
                         static_cast<long long>(info.st_size), kMaxFileBytes);
  // Grown step by step, because a pipe has no size and a regular one may grow or shrink under us; the format
  // is judged on the first step, so that /dev/zero does not have to fill a gigabyte to be refused.
  std::size_t size = 0;
  std::size_t step = 4096;
  while (true) {
    file.resize(size + step);
    const ssize_t got = ::read(fd.get(), file.data() + size, step);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::error("%s: cannot be read: %s", name.c_str(), reason(errno).c_str());
    size += static_cast<std::size_t>(got);
    file.resize(size);
    if (got == 0 || size >= 16) {
      if (!is_png(file) && !is_jpeg(file)) return refuse_format(name, file);
    }
    if (got == 0) return Status();
    if (size > kMaxFileBytes)
      return Status::error("%s: over %zu bytes; at most so many are read", name.c_str(), kMaxFileBytes);
    step = std::min(std::max<std::size_t>(size, 1 << 16), kMaxFileBytes - size + 1);
    if (regular && static_cast<std::size_t>(info.st_size) >= size)
      step = static_cast<std::size_t>(info.st_size) - size + 1;  // + 1: sees the end in the same call
  }
}

}  // namespace

Status check_promise(const std::string& name, std::int64_t width, std::int64_t height,
                     std::int64_t file_bytes, std::int64_t least_bytes) {
  if (width < 1 || height < 1 || width > kMaxPixels / height)
    return Status::error("%s: %lld x %lld pixels; 1 to %lld (2^28) are read", name.c_str(),
                         static_cast<long long>(width), static_cast<long long>(height),
                         static_cast<long long>(kMaxPixels));
  if (file_bytes < least_bytes)
    return Status::error("%s: promises %lld x %lld pixels, which take at least %lld bytes; the file has %lld",
                         name.c_str(), static_cast<long long>(width), static_cast<long long>(height),
                         static_cast<long long>(least_bytes), static_cast<long long>(file_bytes));
  return Status();
}

Status check_image(const char* what, const Image& image) {
  const auto refuse = [&](const char* need) {
    return Status::error("%s: %lld x %lld pixels, %d channels, %zu bytes: %s", what,
                         static_cast<long long>(image.width), static_cast<long long>(image.height),
                         image.channels, image.pixels.size(), need);
  };
  if (image.channels != 1 && image.channels != 3) return refuse("channels must be 1 or 3");
  if (image.width < 1 || image.height < 1 || image.width > kMaxPixels / image.height)
    return refuse("1 to 2^28 pixels can be written");
  if (image.pixels.size() != static_cast<std::size_t>(image.width * image.height * image.channels))
    return refuse("bytes must be width * height * channels");
  return Status();
}

bool append(Bytes& bytes, const void* data, std::size_t size) noexcept {
  try {
    const auto* from = static_cast<const std::uint8_t*>(data);
    bytes.insert(bytes.end(), from, from + size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Status load_image(const fs::path& path, Image& image) try {
  const std::string name = shown(path);
  Bytes file;
  if (Status s = read_file(path, name, file); !s) return s;
  Image loaded;
  if (Status s = is_png(file) ? decode_png(name, file, loaded) : decode_jpeg(name, file, loaded); !s)
    return s;
  image = std::move(loaded);
  return Status();
} catch (const std::bad_alloc&) {
  return Status::error("%s: not enough memory for this picture", shown(path).c_str());
}

Status check_picture_name(const fs::path& path) {
  const std::string ending = lower_ending(path);
  if (ending == ".png" || ending == ".jpg" || ending == ".jpeg") return Status();
  return Status::error("%s: the name ends in \"%s\"; .png, .jpg and .jpeg can be written",
                       shown(path).c_str(), path.extension().c_str());
}

Status check_animation_name(const fs::path& path, int frames) {
  if (lower_ending(path) == ".png") return Status();
  return Status::error("%s: a JPEG holds one frame, %d are to be written; name a .png, which holds many",
                       shown(path).c_str(), frames);
}

Status save_image(const fs::path& path, const Image& image) try {
  const std::string name = shown(path);
  Bytes bytes;
  Status s = check_picture_name(path);
  if (s) s = check_image(name.c_str(), image);
  if (s) s = lower_ending(path) == ".png" ? encode_png(image, bytes) : encode_jpeg(image, bytes);
  return s ? replace_file(path, bytes.data(), bytes.size()) : s;
} catch (const std::bad_alloc&) {
  return Status::error("%s: not enough memory to encode the picture", shown(path).c_str());
}

Image shrink(const Image& image, std::int64_t max_side) {
  max_side = std::max<std::int64_t>(max_side, 1);
  const std::int64_t longest = std::max(image.width, image.height);
  if (longest <= max_side) return image;
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, (side * max_side + longest / 2) / longest);
  };
  Image small{scaled(image.width), scaled(image.height), image.channels, {}};
  const std::int64_t channels = image.channels;
  small.pixels.resize(static_cast<std::size_t>(small.width * small.height * channels));
  // Whole numbers throughout: an old pixel is small.width x small.height units large, a new one image.width x
  // image.height (2^28 at most, times 255: fits). A row's units across are summed first, then its share down.
  std::vector<std::uint64_t> across(static_cast<std::size_t>(small.width * channels));
  std::vector<std::uint64_t> sums(across.size());
  const std::uint64_t area = static_cast<std::uint64_t>(image.width * image.height);
  std::uint8_t* to = small.pixels.data();
  std::int64_t y = 0;
  const auto sum_row = [&] {
    const std::uint8_t* row = image.pixels.data() + y * image.width * channels;
    for (std::int64_t i = 0; i < small.width; ++i) {
      const std::int64_t first = i * image.width;
      const std::int64_t last = first + image.width;
      for (std::int64_t c = 0; c < channels; ++c) across[i * channels + c] = 0;
      for (std::int64_t x = first / small.width; x * small.width < last; ++x) {
        const std::int64_t share = std::min(last, (x + 1) * small.width) - std::max(first, x * small.width);
        for (std::int64_t c = 0; c < channels; ++c)
          across[i * channels + c] += static_cast<std::uint64_t>(share) * row[x * channels + c];
      }
    }
  };
  for (std::int64_t j = 0; j < small.height; ++j) {
    const std::int64_t first = j * image.height;
    const std::int64_t last = first + image.height;
    std::fill(sums.begin(), sums.end(), 0);
    for (y = first / small.height; y * small.height < last; ++y) {
      const std::int64_t share = std::min(last, (y + 1) * small.height) - std::max(first, y * small.height);
      sum_row();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<std::uint64_t>(share) * across[i];
    }
    for (const std::uint64_t sum : sums) *to++ = static_cast<std::uint8_t>((sum + area / 2) / area);
  }
  return small;
}

}  // namespace rooftile::cli
