#pragma once
// Options that several commands have.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/one_case.h"

namespace rooftile::cli {

/// A list: several values by commas or by repeating the option; the next word is not part of it.
inline CLI::Option* add_list(CLI::App* app, const std::string& names, std::vector<std::string>& to,
                             const std::string& what) {
  return app->add_option(names, to, what)->delimiter(',')->allow_extra_args(false);
}

inline void add_json(CLI::App* app, std::string& to) {
  app->add_option("--json", to,
                  "also write this as JSON; - is standard output, and then nothing else goes there")
      ->type_name("FILE")
      ->expected(1);
}

inline void add_csv(CLI::App* app, std::string& to) {
  app->add_option("--csv", to, "the same as comma-separated lines")->type_name("FILE")->expected(1);
}

inline void add_selection(CLI::App* app, Selection& to) {
  app->add_option("OP", to.ops, "ops or functions (softmax, softmax_backward); none: all");
  add_list(app, "--variant", to.variants, "these variants alone")->type_name("VARIANT");
  add_list(app, "--isa", to.isas, "these instruction sets alone: baseline, avx2, avx512")->type_name("ISA");
  app->add_option("--device", to.device, "cpu, cuda (an NVIDIA GPU), emulated or emulated-checked")
      ->type_name("DEVICE");
  add_list(app, "--dtype", to.dtypes, "these element types alone: f32, f16, …")->type_name("DTYPE");
  auto* forward = app->add_flag_callback(
      "--forward", [&to] { to.direction = "forward"; }, "forward functions alone");
  app->add_flag_callback(
         "--backward", [&to] { to.direction = "backward"; }, "backward functions alone")
      ->excludes(forward);
}

/// The words of commands that are about one call.
inline void add_case(CLI::App* app, CaseArguments& to, const std::string& shape) {
  app->add_option("OP", to.op, "an op or a function (softmax, softmax_backward)")->required();
  app->add_option("--shape", to.shape, "in the op's own terms, see `rooftile list`; " + shape)
      ->type_name("64x1024");
  app->add_option("--dtype", to.dtype, "f32, f16, bf16, …")->type_name("DTYPE");
  app->add_option("--set", to.parameters, "a parameter of the call")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app->add_flag("--backward", to.backward, "the op's backward function");
}

}  // namespace rooftile::cli
