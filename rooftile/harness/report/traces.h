#pragma once

#include <string>

#include "rooftile/harness/report/sections.h"

/// What GPU kernels ask of memory, line by line, beside their ladders. Part of report.cpp.
namespace rooftile::harness::report {

inline std::string trace_lines(const Trace& trace) {
  Table table(
      fmt::format("{}: {} launch{}", trace.title(), count(trace.launches), trace.launches == 1.0 ? "" : "es"),
      {{"Line", false},
       {"Access", false},
       {"Requests", true, "Instructions of warps"},
       {"Sectors each", true, "Of 32 bytes, in global memory"},
       {"Used", true, "Share of the moved bytes that a thread asked for"},
       {"Wavefronts each", true, "Passes over the banks of shared memory"},
       {"Conflicts", true, "Wavefronts beyond the fewest that would do"},
       {"Source", false}});
  for (const TraceLine& l : trace.lines) {
    const bool shared = l.wavefronts.value_or(0) > 0, global = l.sectors.value_or(0) > 0;
    table.row({"<code>" + escape(l.place) + "</code>", escape(l.access), count(l.requests),
               global ? digits(ratio(l.sectors, l.requests)) : "",
               global ? percent(ratio(l.used_bytes, *l.sectors * 32)) : "",
               shared ? digits(ratio(l.wavefronts, l.requests)) : "", shared ? count(l.conflicts) : "",
               escape(l.source)});
  }
  return table.html();
}

inline std::string traces(const Record& record) {
  if (record.traces.empty()) return "";
  Table totals("What the kernels ask of a GPU’s memory",
               {{"Kernel", false},
                {"Variant", false},
                {"Asked for", true, "32 bytes for each sector"},
                {"Different", true, "Read and written, each byte once"},
                {"Stated", true, "What the kernel’s cases say it must move"},
                {"Asked for / stated", true}});
  std::string lines;
  for (const Trace& t : record.traces) {
    totals.row({escape(t.problem()), escape(t.variant), bytes(t.moved_bytes), bytes(t.different_bytes),
                bytes(t.stated_bytes), times(t.moved_of_stated())});
    lines += details(escape(t.title()).c_str(), trace_lines(t));
  }
  return "<h3>Memory traffic of GPU kernels</h3>\n" +
         paragraph("how",
                   "Counted on the emulated device, without caches. What is asked for beyond what is stated "
                   "comes from "
                   "a cache at best; from memory at worst.") +
         totals.html() + lines;
}

}  // namespace rooftile::harness::report
