#pragma once

#include <string>

#include "rooftile/harness/report/text.h"

/// How to go on from the page: what each command does, ready to paste. Part of report.cpp.
namespace rooftile::harness::report {

inline std::string commands() {
  struct Example {
    const char* command;
    const char* what;
  };
  static constexpr Example kExamples[] = {
      {"rooftile report", "this page again, from what is measured then"},
      {"rooftile report --photo holiday.jpg", "your picture in its gallery"},
      {"rooftile check softmax", "compare every variant of a kernel with the exact result"},
      {"rooftile bench softmax", "time it beside a copy and the baselines"},
      {"rooftile bench --full --json full.json",
       "all variants, types and sizes; then: rooftile report --from full.json"},
      {"rooftile why softmax 64x1024 f32", "which variant a call gets, and why no other"},
      {"rooftile list", "the ops, their types and variants"},
      {"rooftile devices", "this machine: caches, rates and peaks"},
      {"rooftile trace softmax", "what a GPU kernel asks of memory, line by line, without a GPU"},
      {"rooftile profile softmax", "what Nsight Compute measures of it on a GPU"},
      {"rooftile asm softmax", "the machine code of a kernel, beside its source"},
      {"rooftile image gray photo.jpg gray.png", "the image kernels on a picture of yours"},
  };
  Table table("What to run next", {{"Command", false}, {"What it does", false}});
  for (const Example& e : kExamples) table.row({"<code>" + escape(e.command) + "</code>", escape(e.what)});
  return "<p class=\"how\">The command is <code>build/release/bin/rooftile</code> in the repository; each "
         "has a "
         "<code>--help</code> with more examples.</p>\n" +
         table.html();
}

}  // namespace rooftile::harness::report
