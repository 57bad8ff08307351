#pragma once

#include <string>
#include <vector>

#include "rooftile/harness/report/sections.h"
#include "rooftile/harness/report/views.h"

/// What the page shows first: one chart, and the sentence that it says. Part of report.cpp.
namespace rooftile::harness::report {

/// "In memory, 2 threads: half of the 24 kernels reach 83% of the hardware's limit or more; …".
inline std::string claim(const View& view, const std::vector<const Result*>& by_share) {
  const Result &best = *by_share.front(), &last = *by_share.back();
  std::string conditions = view.label();
  if (!conditions.empty() && conditions[0] == 'i') conditions[0] = 'I';
  if (!conditions.empty() && conditions[0] == 'f') conditions[0] = 'F';
  if (by_share.size() == 1)
    return fmt::format("{}: {} reaches {} of the hardware’s limit.", conditions, escape(best.name()),
                       percent(best.of_limit));
  return fmt::format(
      "{}: half of the {} kernels reach {} of the hardware’s limit or more; {} reaches {}, {} least with {}.",
      conditions, by_share.size(), percent(by_share[(by_share.size() - 1) / 2]->of_limit),
      escape(best.name()), percent(best.of_limit), escape(last.name()), percent(last.of_limit));
}

/// Bars of the share of the limit, the best first; drawn without a script.
inline std::string first_chart(const Record& record) {
  for (const View& view : views(record)) {
    std::vector<const Result*> rows;
    bool baselines = false;
    for (const Result* r : view.results)
      if (r->of_limit) rows.push_back(r);
    if (rows.empty()) continue;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Result* a, const Result* b) { return *a->of_limit > *b->of_limit; });
    // One absurd share must not flatten all other bars to nothing.
    const double scale = std::clamp(*rows.front()->of_limit * 1.02, 1.0, 1.5);
    std::string bars;
    for (const Result* r : rows) {
      Number fastest;
      for (const Baseline& p : r->baselines)
        if (p.median_us && (!fastest || *p.median_us < *fastest)) fastest = p.median_us;
      const Number share = fastest && r->limit_us ? ratio(r->limit_us, fastest) : Number();
      std::string tick;
      if (share) {
        baselines = true;
        tick = fmt::format("<span class=\"baseline\" style=\"left:{:.1f}%\"></span>",
                           std::fmin(*share / scale, 1) * 100);
      }
      bars += fmt::format(
          "<li><span class=\"kernel\">{}</span>{}<span class=\"share\">{}</span><span "
          "class=\"figures\">{}</span></li>\n",
          lesson_link(record, r->op, escape(r->name())), bar(r->of_limit, scale, "", tick),
          percent(r->of_limit) + varied_tag(*r), time_us(r->median_us));
    }
    std::string legend =
        "A bar is the kernel’s share of its limit, the line at 100%: a copy of the same bytes that took "
        "turns "
        "with it (a read where it writes next to nothing), or its arithmetic at the processor’s peak, "
        "whichever takes longer.";
    if (baselines) legend += " The ring is the fastest baseline: what you would use instead.";
    return fmt::format(
        "<p class=\"claim\">{}</p>\n<figure class=\"first\"><ol class=\"shares\">\n{}</ol>\n"
        "<figcaption>{}</figcaption></figure>\n",
        claim(view, rows), bars, legend);
  }
  return "";
}

}  // namespace rooftile::harness::report
