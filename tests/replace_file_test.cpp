// Where a file cannot be written: each is a sentence, and what was there before stays whole.
#include "cli/replace_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "tests/image_making.h"

namespace {

namespace fs = std::filesystem;
using rooftile::Status;
using rooftile::cli::Image;
using rooftile::cli::load_image;
using rooftile::cli::save_image;
using namespace rooftile::test;

TEST(ReplaceFile, RefusesWhatCannotBeSaved) {
  Folder folder;
  const auto message = [&](const char* name, const Image& image) {
    const Status status = save_image(folder / name, image);
    EXPECT_FALSE(status);
    return std::string(status.message());
  };
  EXPECT_NE(message("a.bmp", noise()).find("ends in \".bmp\""), std::string::npos);
  EXPECT_NE(message("a", noise()).find("ends in \"\""), std::string::npos);
  EXPECT_NE(message("a.png", Image{2, 2, 4, Bytes(16)}).find("channels must be 1 or 3"), std::string::npos);
  EXPECT_NE(message("a.png", Image{2, 2, 3, Bytes(11)}).find("2 x 2 pixels, 3 channels, 11 bytes"),
            std::string::npos);
  EXPECT_NE(message("a.jpg", Image{0, 2, 1, {}}).find("0 x 2"), std::string::npos);
  EXPECT_NE(message("a.jpg", Image{65501, 1, 1, Bytes(65501)}).find("at most 65500"), std::string::npos);
  EXPECT_TRUE(save_image(folder / "a.png", Image{65501, 1, 1, Bytes(65501)}));
  EXPECT_NE(message("none/a.png", noise()).find("No such file"), std::string::npos);
  EXPECT_NE(message("a.png/a.png", noise()).find("Not a directory"), std::string::npos);
  fs::create_directory(folder / "folder.png");
  EXPECT_NE(message("folder.png", noise()).find("a folder"), std::string::npos);
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(ReplaceFile, ReplacesWholeFilesAndKeepsLinksAndPermissions) {
  Folder folder;
  std::ofstream(folder / "real.png") << "old";
  fs::permissions(folder / "real.png", fs::perms(0640));
  fs::create_symlink("real.png", folder / "link.png");
  ASSERT_TRUE(save_image(folder / "link.png", noise()));
  EXPECT_TRUE(fs::is_symlink(folder / "link.png"));
  EXPECT_EQ(fs::status(folder / "real.png").permissions(), fs::perms(0640));
  Image back;
  ASSERT_TRUE(load_image(folder / "real.png", back));
  EXPECT_EQ(back.pixels, noise().pixels);
  const mode_t mask = umask(027);
  ASSERT_TRUE(save_image(folder / "new.png", noise()));
  umask(mask);
  EXPECT_EQ(fs::status(folder / "new.png").permissions(), fs::perms(0640));
  EXPECT_EQ(folder.names().size(), 3u);
}

TEST(ReplaceFile, FullDiskLeavesWhatWasThere) {
  Folder folder;
  if (geteuid() == 0) {  // a /dev/full of our own: no fault of what is tested may replace the machine's
    struct stat info {};
    ASSERT_EQ(stat("/dev/full", &info), 0);
    if (mknod((folder / "full.png").c_str(), S_IFCHR | 0600, info.st_rdev) != 0 ||
        !std::ofstream(folder / "full.png").is_open())
      GTEST_SKIP() << "no devices in " << folder / "";
  } else {
    if (access("/dev", W_OK) == 0)
      GTEST_SKIP() << "/dev can be written to: a fault here could replace /dev/full";
    fs::create_symlink("/dev/full", folder / "full.png");
  }
  const Status full = save_image(folder / "full.png", noise());
  EXPECT_NE(std::string(full.message()).find("No space left"), std::string::npos) << full.message();
  EXPECT_TRUE(fs::is_character_file(folder / "full.png"));

  std::ofstream(folder / "old.jpg") << "old";
  auto* const handler = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{}, small{};
  getrlimit(RLIMIT_FSIZE, &limit);
  small = limit;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const Status fresh = save_image(folder / "new.png", noise());
  const Status over = save_image(folder / "old.jpg", noise());
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_NE(std::string(fresh.message()).find("File too large"), std::string::npos) << fresh.message();
  EXPECT_NE(std::string(over.message()).find("File too large"), std::string::npos) << over.message();
  EXPECT_FALSE(fs::exists(folder / "new.png"));
  std::string old;
  std::ifstream(folder / "old.jpg") >> old;
  EXPECT_EQ(old, "old");
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(ReplaceFile, FolderOrFileWithoutPermission) {
  Folder folder;
  fs::create_directory(folder / "locked");
  fs::permissions(folder / "locked", fs::perms(0555));
  fs::create_directory(folder / "open");
  fs::permissions(folder / "open", fs::perms(0777));
  std::ofstream(folder / "open/locked.png") << "old";
  fs::permissions(folder / "open/locked.png", fs::perms(0444));
  // No permission stops root: ask as nobody (the real user, too, by whom access() goes).
  const bool root = geteuid() == 0;
  if (root && setresuid(65534, 65534, 0) != 0) GTEST_SKIP() << "cannot become another user";
  const Status in_folder = save_image(folder / "locked/a.png", noise());
  const Status over_file = save_image(folder / "open/locked.png", noise());
  if (root && setresuid(0, 0, 0) != 0) std::abort();
  EXPECT_NE(std::string(in_folder.message()).find("Permission denied"), std::string::npos);
  EXPECT_NE(std::string(over_file.message()).find("Permission denied"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder / "locked"));
}

/// Runs `body` in a child and gives its wait status.
int in_child(const std::function<int()>& body, const std::function<void(pid_t)>& meanwhile) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(ReplaceFile, InterruptLeavesNoHalfWrittenFile) {
  std::mt19937 random(3);
  for (int i = 0; i < 15; ++i) {
    Folder folder;
    const int status = in_child(
        [&] {
          signal(SIGINT, SIG_DFL);
          while (save_image(folder / "a.png", noise())) {
          }
          return 1;
        },
        [&](pid_t child) {
          std::this_thread::sleep_for(std::chrono::microseconds(5000 + random() % 20000));
          kill(child, SIGINT);
        });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    for (const std::string& name : folder.names()) {
      ASSERT_EQ(name, "a.png");
      Image image;
      ASSERT_TRUE(load_image(folder / name, image));
      ASSERT_EQ(image.pixels, noise().pixels);
    }
  }
}

TEST(ReplaceFile, WritesWhereNamelessFilesAreNotToBeHad) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, for a root folder without /proc";
  Folder folder;
  const int status = in_child(
      [&] {
        if (chroot((folder / "").c_str()) != 0 || chdir("/") != 0) return 2;
        if (!save_image("a.png", noise())) return 3;
        signal(SIGXFSZ, SIG_IGN);
        const rlimit small{1000, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &small);
        return save_image("b.png", noise()) ? 4 : 0;
      },
      [](pid_t) {});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(folder.names(), std::vector<std::string>{"a.png"});
  EXPECT_EQ(fs::status(folder / "a.png").permissions() & fs::perms(0700), fs::perms(0600));
  Image image;
  ASSERT_TRUE(load_image(folder / "a.png", image));
  EXPECT_EQ(image.pixels, noise().pixels);
}

}  // namespace
