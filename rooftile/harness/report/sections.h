#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rooftile/harness/report/views.h"

/// The page's sections, as HTML with every figure in a table: the page is whole without JavaScript. Part of
/// report.cpp.
namespace rooftile::harness::report {

inline std::string paragraph(std::string_view css_class, std::string_view html) {
  return fmt::format("<p class=\"{}\">{}</p>\n", css_class, html);
}

/// What stands where a part is missing: one sentence that says what would fill it.
inline std::string empty(std::string_view html) { return paragraph("empty", html); }

inline std::string canvas(const char* id, const char* label) {
  return fmt::format(
      "<figure class=\"chart\"><div class=\"plot\"><canvas id=\"{}\" role=\"img\" "
      "aria-label=\"{}\"></canvas></div>"
      "<p class=\"failed\" hidden>This chart could not be drawn; the table below holds its "
      "figures.</p></figure>\n",
      id, label);
}

inline std::string details(const char* summary, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", summary, html);
}

inline std::string limit_name(const std::string& limit) {
  if (limit.empty()) return "hardware’s limit";
  return limit == "fma" ? "arithmetic limit (fma)" : limit + " limit";
}

inline std::string strong(const std::string& html) { return "<strong>" + html + "</strong>"; }

/// A kernel that gives wrong answers has no speed, so this stands above all figures. Empty where all passed.
inline std::string failed_checks(const Record& record) {
  double cases = 0, failed = 0, checks = 0;
  for (const Check& c : record.checks) {
    cases += c.cases, checks += c.ok() ? 0 : 1;
    failed += std::max(c.cases - c.passed, static_cast<double>(c.failures.size()));
  }
  if (checks == 0) return "";
  return fmt::format(
      "<div class=\"failures\"><p>{} A kernel that gives wrong answers has no speed: see <a "
      "href=\"#errors\">errors</a> first.</p></div>\n",
      strong(fmt::format("FAILED: {} of {}, in {} of {}.", count(failed), plural(cases, "case", "cases"),
                         count(checks),
                         plural(static_cast<double>(record.checks.size()), "check", "checks"))));
}

inline std::string finding_checks(const Record& record) {
  double cases = 0, failed_checks = 0, wrong_results = 0, rejected = 0;
  std::set<std::string> kernels, isas;
  const Check* worst = nullptr;
  for (const Check& c : record.checks) {
    cases += c.cases, failed_checks += c.ok() ? 0 : 1;
    wrong_results += c.wrong_results, rejected += c.rejected;
    kernels.insert(c.name());
    if (!c.isa.empty()) isas.insert(c.isa);
    if (c.worst && (!worst || *c.worst > *worst->worst)) worst = &c;
  }
  if (record.checks.empty())
    return strong("Nothing was checked") +
           " in this run, so the times below say nothing about right or wrong.";
  if (failed_checks > 0) return "";  // stands above the chart
  if (cases == 0) return strong("No kernel takes any of the cases checked") + ".";
  std::string out =
      strong(cases == 1 ? "The one case passed" : fmt::format("All {} cases passed", count(cases))) +
      fmt::format(": {}", plural(static_cast<double>(kernels.size()), "kernel", "kernels"));
  if (!isas.empty()) out += fmt::format(" on {}", escape(fmt::format("{}", fmt::join(isas, ", "))));
  out += " against an exact reference.";
  if (worst)
    out += fmt::format(" The largest error used {} of what the arithmetic allows ({} {}).",
                       percent(worst->worst), escape(worst->name()), escape(worst->dtype));
  if (wrong_results > 0)
    out += fmt::format(" The checks rejected {} of {} wrong results that were shown to them.",
                       count(rejected), count(wrong_results));
  return out;
}

inline std::string finding_baselines(const Record& record) {
  struct Ratio {
    double value;
    const Result* result;
    const Baseline* baseline;
  };
  std::vector<Ratio> ratios;
  for (const Result& r : record.results) {
    const Baseline* fastest = nullptr;
    for (const Baseline& p : r.baselines)
      if (p.median_us && (!fastest || *p.median_us < *fastest->median_us)) fastest = &p;
    if (fastest && r.median_us) ratios.push_back({*fastest->median_us / *r.median_us, &r, fastest});
  }
  if (ratios.empty()) return "";
  std::sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) { return a.value > b.value; });
  const auto ahead = std::count_if(ratios.begin(), ratios.end(), [](const Ratio& r) { return r.value > 1; });
  const auto say = [](const Ratio& r) {
    return fmt::format("{} the speed of {} ({}, {})", times(r.value), escape(r.baseline->name),
                       escape(r.result->problem()), escape(r.result->where()));
  };
  std::string out =
      strong(fmt::format("Faster than the best baseline in {} of {}", ahead,
                         plural(static_cast<double>(ratios.size()), "measurement", "measurements"))) +
      ": ";
  if (ratios.size() == 1) return out + say(ratios[0]) + ".";
  return out + "at best " + say(ratios.front()) + ", at worst " + say(ratios.back()) + ".";
}

/// Rungs of the same problem stand in one ladder, whatever their number of threads: that may be a rung's
/// idea. In the record's order.
inline std::vector<std::pair<std::string, std::vector<const Result*>>> ladders(const Record& record) {
  std::vector<std::pair<std::string, std::vector<const Result*>>> out;
  for (const Result& r : record.results) {
    if (!r.rung || !r.median_us) continue;
    const std::string name = r.problem() + ", " + where_data_lay(record, r);
    auto same = std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.first == name; });
    if (same == out.end()) same = out.insert(out.end(), {name, {}});
    same->second.push_back(&r);
  }
  for (auto& [name, rungs] : out)
    std::stable_sort(rungs.begin(), rungs.end(), [](const Result* a, const Result* b) {
      return std::pair(*a->rung, a->threads.value_or(0)) < std::pair(*b->rung, b->threads.value_or(0));
    });
  return out;
}

inline std::string finding_ladders(const Record& record) {
  double best = 0;
  std::string out;
  for (const auto& [name, rungs] : ladders(record)) {
    const Result& first = *rungs.front();
    const Result* fastest =
        nullptr;  // with as many threads as the first: more threads are no merit of a rung
    for (const Result* r : rungs)
      if (r->threads == first.threads && (!fastest || *r->median_us < *fastest->median_us)) fastest = r;
    const double gain = *first.median_us / *fastest->median_us;
    if (rungs.size() < 2 || gain <= best) continue;
    best = gain;
    out = fmt::format("{} from the first rung of its ladder to the fastest{}: {} goes from {} to {}.",
                      strong(times(gain) + " faster"),
                      first.threads ? ", both on " + plural(*first.threads, "thread", "threads") : "",
                      escape(name), time_us(first.median_us), time_us(fastest->median_us));
  }
  return out;
}

/// Roofs that contradict each other make every share of the limit doubtful.
inline std::string finding_contradictions(const Record& record) {
  if (record.contradictions.empty()) return "";
  return fmt::format("{} {}. {}", strong(kContradictions),
                     escape(fmt::format("{}", fmt::join(record.contradictions, "; "))),
                     kContradictionsAdvice);
}

/// How many of the record's times are doubtful.
inline std::size_t doubtful(const Record& record) {
  return static_cast<std::size_t>(std::count_if(record.results.begin(), record.results.end(),
                                                [](const Result& r) { return r.doubts.any(); }));
}

/// "12 of 155 measurements varied".
inline std::string varied(const Record& record) {
  return fmt::format("{} of {} varied", count(static_cast<double>(doubtful(record))),
                     plural(static_cast<double>(record.results.size()), "measurement", "measurements"));
}

inline std::string finding_doubts(const Record& record) {
  if (doubtful(record) == 0) return "";
  return fmt::format(
      "{} or stood beside a copy that did: <span class=\"tag\">~</span> marks them in the chart, <a "
      "href=\"#results\">all measurements</a> says why.",
      strong(varied(record)));
}

/// One measurement in four that varied, or roofs that contradict each other: other work ran meanwhile. It
/// stands above all figures. Empty on a quiet machine.
inline std::string busy_machine(const Record& record) {
  if (record.contradictions.empty() && 4 * doubtful(record) <= record.results.size()) return "";
  return fmt::format(
      "<div class=\"failures\"><p>{} The times below are doubtful: measure again when nothing else runs.</p>"
      "</div>\n",
      strong("This machine was busy: " + varied(record) + "."));
}

/// Marks a time that varied where it stands as a bar.
inline std::string varied_tag(const Result& r) {
  return r.doubts.any() ? " <span class=\"tag\">~</span>" : "";
}

inline std::string headline(const Record& record) {
  std::string out = "<ul class=\"findings\">\n";
  for (const std::string& finding :
       {finding_checks(record), finding_baselines(record), finding_ladders(record),
        finding_contradictions(record), finding_doubts(record)})
    if (!finding.empty()) out += "<li>" + finding + "</li>\n";
  const auto throttled = std::count_if(record.results.begin(), record.results.end(),
                                       [](const Result& r) { return r.throttled.value_or(false); });
  if (throttled > 0)
    out += fmt::format(
        "<li>{}: the processor slowed itself down while they ran, so their times are too long.</li>\n",
        strong(plural(static_cast<double>(throttled), "measurement was throttled",
                      "measurements were throttled")));
  return out + "</ul>\n";
}

/// What only a GPU's record has: its copies of several sizes, and what calls cost the host. Empty without.
inline std::string device_tables(const Record& record) {
  std::string out;
  Table copies(
      "Copies on the GPU, at the start of each run",
      {{"Run", false}, {"Bytes moved", true, "Read and written together"}, {"Time", true}, {"GB/s", true}});
  for (const DeviceCopy& c : record.copies) {
    const Number rate = c.bytes && c.median_us ? finite(*c.bytes / *c.median_us / 1e3) : Number();
    copies.row({escape(c.run), bytes(c.bytes), time_us(c.median_us), digits(rate)});
  }
  if (copies.rows()) out += copies.html();
  Table calls("Host time of a call that has next to nothing to do",
              {{"Call", false},
               {"Time", true},
               {"Bare launch", true, "Of a kernel that does nothing, in the same run"},
               {"Over it", true}});
  const auto us = [](Number ns) { return ns ? Number(*ns / 1000) : Number(); };
  for (const HostCost& c : record.host_costs) {
    const Number over = c.whole_ns && c.bare_ns ? Number(*c.whole_ns - *c.bare_ns) : Number();
    calls.row({escape(c.name), time_us(us(c.whole_ns)), time_us(us(c.bare_ns)), time_us(us(over))});
  }
  if (calls.rows()) out += calls.html();
  return out;
}

inline std::string machine(const Record& record) {
  const Json& m = record.machine;
  std::string facts;
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != kUnknown)
      facts += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
  };
  const std::string vendor = text(m, "vendor");
  fact("GPU", escape(text(m, "device")));
  fact("Processor", escape(text(m, "cpu") + (vendor.empty() ? "" : " (" + vendor + ")")));
  fact("Instructions", escape(text(m, "isa")));
  const Number cores = number(m, "cores"), threads = number(m, "threads");
  if (cores || threads)
    fact("Cores", (cores ? plural(*cores, "core", "cores") : "") + (cores && threads ? ", " : "") +
                      (threads ? plural(*threads, "thread", "threads") + " used" : ""));
  fact("Memory", bytes(number(m, "memory_bytes")));
  fact("System", escape(text(m, "os")));
  fact("Compiler", escape(text(m, "compiler")));
  std::string out = facts.empty() ? empty(
                                        "The record does not say which machine it is from; <code>rooftile "
                                        "report</code> writes that into each record.")
                                  : "<dl class=\"facts\">\n" + facts + "</dl>\n";
  const std::string device = device_tables(record);
  if (!device.empty() && record.levels.empty())
    return out +
           paragraph("how",
                     "A kernel that moves data cannot be faster than a copy of as many bytes, which takes "
                     "turns with it.") +
           device;
  out += device;
  out += paragraph(
      "how",
      "Two things limit every kernel: how fast data comes from the cache or memory that holds it, and how "
      "fast the processor multiplies and adds. Both were measured here, in the same run as the kernels; "
      "the copies and the multiply-adds are the <em>roofs</em> of the charts.");
  Table levels("Measured speed of each level, in GB/s",
               {{"Level", false},
                {"Footprint", true, "Bytes that the measurement worked on"},
                {"Threads", true},
                {"Read", true},
                {"Write", true},
                {"Copy", true, "Bytes read and bytes written together"}});
  for (const Level& l : record.levels)
    levels.row({escape(l.name), bytes(l.footprint_bytes), count(l.threads), digits(l.read_gbs),
                digits(l.write_gbs), digits(l.copy_gbs)});
  out += levels.rows() ? levels.html()
                       : empty("No level’s speed was measured; <code>rooftile devices</code> measures them.");
  if (const std::string doubt = finding_contradictions(record); !doubt.empty())
    out += "<div class=\"failures\"><p>" + doubt + "</p></div>\n";
  Table peaks(
      "Measured arithmetic peaks",
      {{"Peak", false}, {"Type", false}, {"Instructions", false}, {"Threads", true}, {"GFLOP/s", true}});
  for (const Peak& p : record.peaks)
    peaks.row({escape(p.name), escape(p.dtype), escape(p.isa), count(p.threads), digits(p.gflops)});
  out += peaks.rows()
             ? peaks.html()
             : empty("No arithmetic peak was measured; <code>rooftile devices</code> measures them.");
  Table caches("Caches, as the system reports them",
               {{"Cache", false},
                {"Size", true},
                {"Shared by", true, "Threads that share one such cache"},
                {"Line", true}});
  for (const Cache& c : record.caches)
    caches.row({escape(c.name), bytes(c.bytes), count(c.shared_by), bytes(c.line_bytes)});
  if (caches.rows()) out += caches.html();
  return out;
}

inline bool in_speed_chart(const Result& r) {
  return r.group == "sweep" && (r.series.empty() || r.series == "rooftile") &&
         (r.op == "copy" || r.op == "softmax") && r.bytes && *r.bytes > 0 && r.rate_gbs().value_or(0) > 0;
}

inline std::string roofline(const Record& record) {
  Table arithmetic("Every measurement with arithmetic",
                   {{"Kernel", false},
                    {"Variant", false},
                    {"Run on", false},
                    {"Flops per byte", true, "Operations for each byte moved"},
                    {"GFLOP/s", true},
                    {"Time", true},
                    {"Limit", false, "The bottleneck: a level’s speed or the arithmetic peak"},
                    {"Of limit", true}});
  Table bandwidth("Measurements that only move data", {{"Kernel", false},
                                                       {"Variant", false},
                                                       {"Run on", false},
                                                       {"Bytes moved", true},
                                                       {"Time", true},
                                                       {"GB/s", true},
                                                       {"Limit", false},
                                                       {"Of limit", true}});
  for (const Result& r : record.results) {
    const bool said = r.isa.empty() || r.where().starts_with(r.isa);
    const std::string where = escape(r.where() + (said ? "" : ", " + r.isa));
    if (r.has_flops())
      arithmetic.row({escape(r.problem()), escape(r.variant), where, digits(r.intensity()),
                      digits(r.gflops()), time_us(r.median_us), escape(r.limit), percent(r.of_limit)});
    else if (!in_speed_chart(r))  // those stand in the next section
      bandwidth.row({escape(r.problem()), escape(r.variant), where, bytes(r.bytes), time_us(r.median_us),
                     digits(r.rate_gbs()), escape(r.limit), percent(r.of_limit)});
  }
  const std::vector<View> conditions = views(record);
  const bool drawn = std::any_of(conditions.begin(), conditions.end(), [](const View& v) {
    return std::any_of(v.results.begin(), v.results.end(), [](const Result* r) { return in_roofline(*r); });
  });
  std::string out;
  if (drawn) {
    out += paragraph(
        "how",
        "Each mark is one kernel, at its largest size under the conditions chosen. Further right: more "
        "flops per byte moved. Further up: faster. Slanting lines show how fast data can come from each "
        "cache or from memory, horizontal ones how fast the processor can calculate. <em>The nearer a mark "
        "is to the line that limits it, the less is left to gain</em>; the table, and a tap on the mark, say "
        "which line that is.");
    out +=
        canvas("roofline",
               "Roofline: operations per byte against GFLOP per second; the table below holds the figures");
  }
  if (arithmetic.rows()) {
    out += details("The figures behind this chart", arithmetic.html());
  } else {
    out += empty(
        "No measured kernel calculates anything yet; <code>rooftile bench</code> or <code>rooftile "
        "report</code> measures them.");
  }
  if (bandwidth.rows()) {
    out += paragraph(
        "how",
        "Kernels that only move data have no place in that chart. For them one figure counts: the bytes "
        "read and written in a second.");
    out += bandwidth.html();
  }
  return out;
}

inline std::string speed(const Record& record) {
  Table table("Speed against size", {{"Kernel", false},
                                     {"Shape", false},
                                     {"Run on", false},
                                     {"Bytes moved", true},
                                     {"Time", true},
                                     {"GB/s", true},
                                     {"Of limit", true}});
  std::vector<const Result*> rows;
  for (const Result& r : record.results)
    if (in_speed_chart(r)) rows.push_back(&r);
  if (rows.empty())
    return empty(
        "This record holds no sweep over sizes; <code>rooftile report</code> measures one for copy and "
        "softmax, from 4 KiB to 1 GiB.");
  for (const Result* r : rows)
    table.row({escape(r->name() + " " + r->dtype), escape(r->shape), escape(r->where()), bytes(r->bytes),
               time_us(r->median_us), digits(r->rate_gbs()), percent(r->of_limit)});
  return paragraph(
             "how",
             "Further right: more data moved by one call. While it fits a cache it comes fast; past each "
             "vertical "
             "line (a cache’s size) it no longer fits, and the speed falls towards that of the next cache or "
             "of "
             "memory, which the horizontal lines show (a copy, measured). Very small calls are slow because "
             "starting one takes time, too.") +
         canvas("speed",
                "Speed against size: bytes moved against GB per second; the table below holds the figures") +
         details("The figures behind this chart", table.html());
}

inline std::string ladder(const Record& record) {
  const auto all = ladders(record);
  if (all.empty())
    return empty(
        "No ladder was measured; <code>rooftile report</code> measures two, <code>rooftile bench "
        "--full</code> all of them.");
  std::string out = paragraph(
      "how",
      "A ladder leads from the plainest version of a kernel to the library’s, one idea per rung. The bar is "
      "the share of the limit that the rung reaches, a copy of the same bytes or the arithmetic at its peak; "
      "the mark at its end is the limit itself. A step says how much faster it is than the step before; only "
      "the last uses all threads.");
  for (const auto& [name, rungs] : all) {
    double scale = 1;
    for (const Result* r : rungs) scale = std::max(scale, r->of_limit.value_or(0) * 1.02);
    out += fmt::format("<h3>{}</h3>\n<ol class=\"ladder\">\n",
                       lesson_link(record, rungs.front()->op, escape(name)));
    const Result* before = nullptr;
    for (const Result* r : rungs) {
      const std::string idea = r->title.empty() ? escape(r->variant) : escape(r->title);
      std::string figures =
          fmt::format("{}, {}", time_us(r->median_us),
                      escape(r->threads ? plural(*r->threads, "thread", "threads") : kUnknown));
      if (before) {
        const double gain = *before->median_us / *r->median_us;
        figures += std::fabs(gain - 1) < 0.05 ? ", as fast as the step before"
                   : gain > 1                 ? fmt::format(", {} faster", times(gain))
                                              : fmt::format(", {} slower", times(1 / gain));
      }
      for (const Trace& t : record.traces)
        if (r->backend != "cpu" && t.name() == r->name() && t.variant == r->variant && t.moved_of_stated()) {
          figures += fmt::format(", asks memory for {} the bytes stated", times(t.moved_of_stated()));
          break;
        }
      out += fmt::format(
          "<li><span class=\"number\">{}</span><span class=\"idea\">{} <span "
          "class=\"variant\">{}</span></span>"
          "{}<span class=\"share\">{}</span><span class=\"figures\">{}</span></li>\n",
          count(r->rung), idea, r->title.empty() ? "" : escape(r->variant),
          r->of_limit ? bar(r->of_limit, scale) : "<span class=\"bar unknown\"></span>",
          percent(r->of_limit) + varied_tag(*r), figures);
      before = r;
    }
    out += "</ol>\n";
  }
  return out;
}

}  // namespace rooftile::harness::report
