#include "cli/image_commands.h"

#include <string>
#include <utility>
#include <vector>

namespace rooftile::cli {

namespace {

void add_gray(CLI::App& image_app, GrayArguments& gray, std::function<int()>& command) {
  CLI::App* gray_app = image_app.add_subcommand("gray", "red, green, blue to gray");
  gray_app->add_option("IN", gray.in, "PNG or JPEG")->required();
  gray_app->add_option("OUT", gray.out, "its name says the format: .png, .jpg, .jpeg")->required();
  gray_app->add_flag("--luminosity", gray.luminosity,
                     "weights 0.21, 0.72, 0.07 instead of 0.299, 0.587, 0.114");
  gray_app->footer("Example:\n  rooftile image gray photo.jpg gray.png");
  gray_app->final_callback([&] { command = [&gray] { return image_gray(gray); }; });
}

void add_blur(CLI::App& image_app, BlurArguments& blur, std::function<int()>& command) {
  CLI::App* blur_app = image_app.add_subcommand("blur", "the mean of each pixel's surroundings");
  blur_app->add_option("IN", blur.in, "PNG or JPEG")->required();
  blur_app->add_option("OUT", blur.out, "its name says the format: .png, .jpg, .jpeg")->required();
  CLI::Option* const radius =
      blur_app->add_option("--radius", blur.radius, "a box: windows of 2 * radius + 1 pixels a side")
          ->type_name("N")
          ->check(CLI::Range(0, 2047));
  blur_app->add_option("--sigma", blur.sigma, "a Gaussian of this standard deviation, in pixels")
      ->type_name("PIXELS")
      ->check(CLI::Range(0.25, 128.))
      ->excludes(radius);
  blur_app
      ->add_option("--border", blur.border,
                   "what stands past the edge: replicate, reflect_101 (OpenCV's default) or zero")
      ->transform(CLI::CheckedTransformer(
          std::vector<std::pair<std::string, int>>{{"replicate", 0}, {"reflect_101", 1}, {"zero", 2}}));
  blur_app->footer("Example:\n  rooftile image blur photo.jpg soft.png --sigma 5");
  blur_app->final_callback([&] { command = [&blur] { return image_blur(blur); }; });
}

void add_pattern(CLI::App& image_app, PatternArguments& pattern, std::function<int()>& command) {
  CLI::App* app =
      image_app.add_subcommand("pattern", "frames of an animation, from coordinates and time alone");
  app->add_option("--output,OUT", pattern.out,
                  "its name says the format: .png, .jpg, .jpeg; an animation: .png")
      ->type_name("FILE")
      ->required();
  app->add_option("--size", pattern.size, "pixels across and down (640x480)")->type_name("WIDTHxHEIGHT");
  app->add_option("--frames", pattern.frames, "more than 1: an animated PNG, which browsers play")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  app->add_option("--fps", pattern.fps, "frames per second (30): the pattern's time passes as the clock's")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  app->add_option("--time", pattern.time, "the first frame's, in seconds (0)")->type_name("SECONDS");
  app->footer(
      "Examples:\n"
      "  rooftile image pattern pattern.png\n"
      "  rooftile image pattern --size 640x360 --frames 60 --fps 30 --output moving.png");
  app->final_callback([&] { command = [&pattern] { return image_pattern(pattern); }; });
}

}  // namespace

void add_image(CLI::App& app, ImageArguments& image, std::function<int()>& command) {
  CLI::App* image_app = app.add_subcommand("image", "the image kernels on a picture of yours");
  image_app->require_subcommand(1);
  add_gray(*image_app, image.gray, command);
  add_blur(*image_app, image.blur, command);
  add_pattern(*image_app, image.pattern, command);
}

}  // namespace rooftile::cli
