#include "rooftile/harness/check/ledger.h"

#include <fmt/format.h>

#include <cmath>

namespace rooftile::harness {

Ledger::Sums& Ledger::sums(const std::string& isa, const std::string& variant) {
  const auto [it, fresh] = sums_.try_emplace({isa, variant});
  if (fresh) {
    order_.emplace_back(isa, variant);
    CheckResult& r = it->second.result;
    const Op* op = find_op(spec_.function);
    r.function = spec_.function;
    r.op = op ? op->name : spec_.function;
    r.direction = op ? op->direction : "forward";
    r.variant = variant;
    r.isa = isa;
    r.dtype = name(dtype_);
    r.ulp_histogram.assign(kUlpBins, 0);
  }
  return it->second;
}

CheckResult& Ledger::of(const std::string& isa, const std::string& variant) {
  return sums(isa, variant).result;
}

void Ledger::note(const std::string& isa, const std::string& variant, const std::string& failure) {
  Sums& s = sums(isa, variant);
  ++s.result.cases;
  if (failure.empty()) {
    ++s.result.passed;
    return;
  }
  if (++s.failed <= kMaxFailures)
    s.result.failures.push_back(fmt::format("{} {} {}: {}", spec_.function, variant, isa, failure));
}

void Ledger::add(const std::string& isa, const std::string& variant, const Comparison& c) {
  Sums& s = sums(isa, variant);
  if (std::isfinite(c.worst)) s.result.worst_of_tolerance = std::max(s.result.worst_of_tolerance, c.worst);
  if (c.gated) s.squares += c.squares, s.count += c.count;
  for (std::size_t bin = 0; bin < kUlpBins; ++bin) s.result.ulp_histogram[bin] += c.ulps[bin];
}

std::vector<CheckResult> Ledger::close() {
  std::vector<CheckResult> results;
  for (const auto& key : order_) {
    Sums& s = sums_[key];
    if (s.count) s.result.rms_of_tolerance = std::sqrt(s.squares / static_cast<double>(s.count));
    auto& bins = s.result.ulp_histogram;
    while (!bins.empty() && bins.back() == 0) bins.pop_back();
    if (s.failed > kMaxFailures)
      s.result.failures.push_back(fmt::format("… and {} more", s.failed - kMaxFailures));
    results.push_back(std::move(s.result));
  }
  return results;
}

}  // namespace rooftile::harness
