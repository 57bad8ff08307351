#include "cli/image_commands.h"

#include <string>
#include <utility>
#include <vector>

namespace rooftile::cli {

void add_image(CLI::App& app, GrayArguments& gray, BlurArguments& blur, std::function<int()>& command) {
  CLI::App* image_app = app.add_subcommand("image", "the image kernels on a picture of yours");
  image_app->require_subcommand(1);
  CLI::App* gray_app = image_app->add_subcommand("gray", "red, green, blue to gray");
  gray_app->add_option("IN", gray.in, "PNG or JPEG")->required();
  gray_app->add_option("OUT", gray.out, "its name says the format: .png, .jpg, .jpeg")->required();
  gray_app->add_flag("--luminosity", gray.luminosity,
                     "weights 0.21, 0.72, 0.07 instead of 0.299, 0.587, 0.114");
  gray_app->footer("Example:\n  rooftile image gray photo.jpg gray.png");
  gray_app->final_callback([&] { command = [&gray] { return image_gray(gray); }; });

  CLI::App* blur_app = image_app->add_subcommand("blur", "the mean of each pixel's surroundings");
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

}  // namespace rooftile::cli
