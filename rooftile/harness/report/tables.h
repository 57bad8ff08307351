#pragma once

#include "rooftile/harness/report/sections.h"

/// The sections that are tables alone – baselines, errors, all results – and the gallery. Part of report.cpp.
namespace rooftile::harness::report {

/// A GPU that ran slower than it can, by power or heat: such a time says less.
inline std::string throttled_tag(const Result& r) {
  return r.throttled.value_or(false) ? " <span class=\"tag\">throttled</span>" : "";
}

inline std::string baselines(const Record& record) {
  std::vector<std::string> names;
  std::map<std::string, std::string> versions;
  for (const Result& r : record.results)
    for (const Baseline& p : r.baselines) {
      if (!versions.count(p.name)) names.push_back(p.name);
      versions[p.name] = p.version;
    }
  if (names.empty())
    return empty(
        "No baselines found: <code>scripts/install_baselines.sh</code> installs them (oneDNN and OpenCV; "
        "<code>--torch</code>: PyTorch as well), and the kernels are timed beside them.");
  // Column holds pointers, so the headings must outlive the table.
  std::vector<std::string> headings;
  for (const std::string& name : names)
    headings.push_back(escape(name + (versions[name].empty() ? "" : " " + versions[name])));
  std::vector<Column> columns = {{"Kernel", false}, {"Run on", false}, {"rooftile", true}};
  for (const std::string& heading : headings) {
    columns.push_back({heading.c_str(), true});
    columns.push_back({"ratio", true, "How many times the baseline’s speed rooftile reaches"});
  }
  Table table("Time beside the baselines’; ratio: how many times a baseline’s speed rooftile reaches",
              columns);
  for (const Result& r : record.results) {
    if (r.baselines.empty()) continue;
    std::vector<std::string> cells = {escape(r.problem()), escape(r.where()),
                                      strong(time_us(r.median_us)) + throttled_tag(r)};
    for (const std::string& name : names) {
      const auto baseline = std::find_if(r.baselines.begin(), r.baselines.end(),
                                         [&](const Baseline& p) { return p.name == name; });
      const Number gain = baseline == r.baselines.end() ? Number() : ratio(baseline->median_us, r.median_us);
      const Number of_copy = baseline == r.baselines.end() ? Number() : baseline->of_copy;
      cells.push_back(baseline == r.baselines.end()
                          ? kUnknown
                          : time_us(baseline->median_us) + (of_copy ? " (" + percent(of_copy) + ")" : ""));
      cells.push_back(times(gain) + (gain && *gain < 1 ? " <span class=\"tag\">slower</span>" : ""));
    }
    table.row(cells);
  }
  return paragraph(
             "how",
             "What one would use instead, on the same data, in the same run. 2× means that rooftile "
             "takes half "
             "the time; rows where it takes longer say <span class=\"tag\">slower</span>. A share after a "
             "baseline’s time is that of a copy, which took turns with it on the GPU.") +
         table.html();
}

/// "99.8% of 1 234 results are at most one step from the exact one." Empty where nothing was counted.
inline std::string ulp_claim(const Record& record) {
  double all = 0, near = 0;
  for (const Check& c : record.checks)
    for (const Bin& bin : c.bins) {
      all += bin.count;
      if (bin.ulp == "0" || bin.ulp == "≤1") near += bin.count;
    }
  if (all <= 0 || !std::isfinite(all)) return "";
  return strong(fmt::format("{} of {} results are at most one step from the exact one.", percent(near / all),
                            count(all))) +
         " ";
}

inline std::string errors(const Record& record) {
  if (record.checks.empty())
    return empty(
        "Nothing was checked; <code>rooftile check</code> and <code>rooftile report</code> compare every "
        "kernel with an exact reference.");
  double scale = 1;
  std::vector<std::string> labels;
  std::string failures;
  for (const Check& c : record.checks) {
    scale = std::max(scale, c.worst.value_or(0) * 1.02);
    for (const Bin& bin : c.bins)
      if (std::find(labels.begin(), labels.end(), bin.ulp) == labels.end()) labels.push_back(bin.ulp);
    for (const std::string& failure : c.failures)
      failures += fmt::format("<li><strong>{}</strong>: {}</li>\n",
                              escape(fmt::format("{} {} {} {}", c.name(), c.variant, c.isa, c.dtype)),
                              escape(failure));
  }
  // One absurd error must not flatten all other bars to nothing.
  scale = std::min(scale, 4.0);
  std::vector<Column> of_checks = {
      {"Kernel", false},
      {"Variant", false},
      {"Instructions", false},
      {"Type", false},
      {"Cases passed", true},
      {"Largest error, of tolerance", false},
      {"RMS", true, "Root mean square of the errors, as a share of its own tolerance"}};
  if (std::any_of(record.checks.begin(), record.checks.end(),
                  [](const Check& c) { return c.wrong_results > 0; }))
    of_checks.push_back(
        {"Wrong results rejected", true, "Wrong results that the check was shown, and must not accept"});
  Table table("Largest error of each kernel, as a share of its tolerance", of_checks);
  std::vector<std::string> headings;
  std::vector<Column> columns = {
      {"Kernel", false}, {"Variant", false}, {"Instructions", false}, {"Type", false}};
  for (const std::string& label : labels) headings.push_back(escape(label) + "\u00a0ULP");
  for (const std::string& heading : headings) columns.push_back({heading.c_str(), true});
  Table histogram("Output values by their distance from the exact result", columns);
  for (const Check& c : record.checks) {
    const std::string passed =
        c.ok() && c.cases == 0 ? "not applicable"
                               : fmt::format("{}{} of {}", c.ok() ? "" : "<span class=\"tag\">failed</span> ",
                                             count(c.passed), count(c.cases));
    const std::string wrong_results =
        c.wrong_results > 0 ? fmt::format("{} of {}", count(c.rejected), count(c.wrong_results)) : kUnknown;
    table.row({escape(c.name()), escape(c.variant), escape(c.isa), escape(c.dtype), passed,
               bar(c.worst, scale, c.worst.value_or(0) > 1 ? "over" : "") + " " + percent(c.worst),
               percent(c.rms), wrong_results},
              c.ok() ? "" : "bad");
    if (c.bins.empty()) continue;
    std::vector<std::string> cells = {escape(c.name()), escape(c.variant), escape(c.isa), escape(c.dtype)};
    for (const std::string& label : labels) {
      const auto bin =
          std::find_if(c.bins.begin(), c.bins.end(), [&](const Bin& b) { return b.ulp == label; });
      cells.push_back(bin == c.bins.end() ? kUnknown : count(bin->count));
    }
    histogram.row(cells);
  }
  std::string out;
  if (!failures.empty())
    out += "<div class=\"failures\"><p><strong>What failed</strong></p><ul>\n" + failures + "</ul></div>\n";
  out += paragraph(
      "how",
      "Every result is compared with one calculated exactly. Rounding allows an error, and the tolerance "
      "says how large: it follows from the arithmetic, not from experience. The bar shows how much of it "
      "the worst value used; past the mark it would have failed.");
  out += table.html();
  if (!histogram.rows())
    return out + empty("No errors were counted in ULP; <code>rooftile check</code> counts them.");
  out += paragraph(
      "how",
      ulp_claim(record) +
          "One ULP is the step from a number to the next one that the type can hold: a bar is the share of "
          "results so many steps from the exact one, so the further left the bars stand, the better. "
          "Near 0 steps are tiny, and a right result can be many of them away; the logarithmic scale keeps "
          "such rare ones visible. At most three types are drawn; the table has all.");
  out += canvas(
      "ulp", "Share of output values by error in ULP, for each data type; the table below holds the counts");
  return out + details("The counts behind this chart", histogram.html());
}

/// Only these are pictures and nothing else; svg could hold scripts.
inline bool is_picture(const std::string& mime) {
  return mime == "image/png" || mime == "image/jpeg" || mime == "image/webp" || mime == "image/gif";
}

inline bool is_base64(const std::string& data) {
  return !data.empty() && std::all_of(data.begin(), data.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  });
}

inline std::string gallery(const Json& pictures) {
  if (pictures.empty())
    return empty(
        "No picture was processed; <code>rooftile report --photo FILE</code> takes one of yours (PNG or "
        "JPEG).");
  std::string out = "<div class=\"gallery\">\n";
  for (const Json& picture : pictures) {
    const std::string title = escape(text(picture, "title")), mime = text(picture, "mime");
    const std::string data = text(picture, "base64");
    const Number width = positive(picture, "width"), height = positive(picture, "height");
    std::string image;
    if (is_picture(mime) && is_base64(data)) {
      const std::string size =
          width && height ? fmt::format(" width=\"{:.0f}\" height=\"{:.0f}\"", *width, *height) : "";
      image = fmt::format("<img src=\"data:{};base64,{}\" alt=\"{}\"{}>", mime, data, title, size);
    } else {
      image = empty("This picture cannot be shown: it is not a PNG, JPEG, WebP or GIF in base64.");
    }
    const std::string pixels = width && height ? fmt::format(" {:.0f}×{:.0f} pixels.", *width, *height) : "";
    out += fmt::format("<figure>{}<figcaption><strong>{}</strong> {}{}</figcaption></figure>\n", image, title,
                       escape(text(picture, "caption")), pixels);
  }
  return out + "</div>\n";
}

/// The marks of a doubtful time, as in the command's table.
inline std::string doubts_tag(const Result& r) {
  if (!r.doubts.any()) return "";
  return fmt::format(" <span class=\"tag\">{}{}</span>", r.doubts.spread ? "~" : "",
                     r.doubts.copy ? "c" : "");
}

inline std::string doubts_legend(const Record& record) {
  std::string out;
  const auto said = [&](bool Doubts::*doubt) {
    return std::any_of(record.results.begin(), record.results.end(),
                       [&](const Result& r) { return r.doubts.*doubt; });
  };
  if (said(&Doubts::spread)) out += fmt::format(" <span class=\"tag\">~</span>: {}.", kSpreadDoubt);
  if (said(&Doubts::copy)) out += fmt::format(" <span class=\"tag\">c</span>: {}.", kCopyDoubt);
  return out;
}

inline std::string all_results(const Record& record) {
  Table table("All measurements", {{"Kernel", false},
                                   {"Variant", false},
                                   {"Type", false},
                                   {"Shape", false},
                                   {"Threads", true},
                                   {"Cache", false, "Whether the data lay in the cache before"},
                                   {"Median", true},
                                   {"5% to 95%", true, "Times that 5% and 95% of the runs stay below"},
                                   {"Of limit", true, "The limit’s time as a share of the median"},
                                   {"GB/s", true},
                                   {"GFLOP/s", true},
                                   {"Limit", false, "The bottleneck: a level’s speed or the arithmetic peak"},
                                   {"Limit’s time", true},
                                   {"Copy", true, "A copy of the same bytes, in the same run"},
                                   {"Bytes moved", true},
                                   {"Flops", true},
                                   {"Floor", true, "What the timing itself takes"},
                                   {"Runs", true},
                                   {"Workspace", true},
                                   {"Peak memory", true},
                                   {"Instructions", false},
                                   {"Backend", false},
                                   {"Layout", false},
                                   {"Clock", true},
                                   {"Power", true},
                                   {"Throttled", false},
                                   {"Group", false}});
  for (const Result& r : record.results) {
    const std::string range = r.p5_us || r.p95_us ? time_us(r.p5_us) + " – " + time_us(r.p95_us) : kUnknown;
    table.row({lesson_link(record, r.op, escape(r.name())),
               escape(r.variant),
               escape(r.dtype),
               escape(r.shape),
               count(r.threads),
               escape(r.cache),
               time_us(r.median_us) + throttled_tag(r) + doubts_tag(r),
               range,
               percent(r.of_limit),
               digits(r.rate_gbs()),
               digits(r.gflops()),
               escape(r.limit),
               time_us(r.limit_us),
               time_us(r.copy_us),
               bytes(r.bytes),
               count(r.flops),
               time_us(r.floor_us),
               count(r.n),
               bytes(r.workspace_bytes),
               bytes(r.peak_bytes),
               escape(r.isa),
               escape(r.backend),
               escape(r.layout),
               r.clock_mhz ? count(r.clock_mhz) + " MHz" : kUnknown,
               r.power_w ? digits(r.power_w) + " W" : kUnknown,
               r.throttled ? (*r.throttled ? "yes" : "no") : kUnknown,
               escape(r.rung ? r.group + ", rung " + count(r.rung) : r.group)});
  }
  if (!table.rows())
    return empty(
        "Nothing was measured; <code>rooftile report</code> measures the best variant of every kernel, "
        "<code>rooftile bench --full</code> everything.");
  return paragraph(
             "how",
             "A time is the median of its runs; – means unknown on this machine. Resting the pointer on a "
             "heading says what it means." +
                 doubts_legend(record)) +
         table.html();
}

}  // namespace rooftile::harness::report
