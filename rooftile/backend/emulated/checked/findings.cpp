// Findings: kept as addresses while kernels run, told as lines when someone asks.
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "rooftile/backend/emulated/checked/checker.h"
#include "rooftile/backend/emulated/checked/symbols.h"

namespace rooftile::emulated {
namespace {
constexpr std::size_t kMaxFindings = 1000;

std::string short_place(const Place& place) {
  const char* slash = std::strrchr(place.file, '/');
  return (slash ? slash + 1 : place.file) + (':' + std::to_string(place.line));
}
std::string places_of(const Finding& f) {
  const std::string first = short_place(f.first), second = short_place(f.second);
  return first == second ? first : first + ", then " + second;
}
}  // namespace

void Checker::tell(FindingKind kind, const void* first_pc, const void* second_pc, int first_thread,
                   const Thread* t, std::string text) {
  const std::lock_guard lock(mutex_);
  add({kind,
       kernel_,
       std::move(text),
       first_pc,
       second_pc,
       {},
       {},
       first_thread,
       t ? int(t->number) : -1,
       t ? t->block->index : uint3{}});
}

void Checker::add(Raw raw) {
  if (findings_.size() >= kMaxFindings) return;
  if (!told_
           .insert({static_cast<int>(raw.kind), raw.kernel, raw.first_pc, raw.second_pc, raw.first_site.line,
                    raw.second_site.line})
           .second)
    return;
  findings_.push_back(std::move(raw));
}

void Checker::divergence(Thread& first, Thread& second, const char* sentence) {
  const Busy busy(*this);
  const std::lock_guard lock(mutex_);
  add({FindingKind::kDivergentBarrier, kernel_, sentence, nullptr, second.ended ? second.last_pc : nullptr,
       first.where, second.ended ? Site{} : second.where, int(first.number), int(second.number),
       first.block->index});
}

void Checker::failure(Thread* t, int kind, Site first, Site second, int second_thread, const char* sentence) {
  const Busy busy(*this);
  const std::lock_guard lock(mutex_);
  add({static_cast<FindingKind>(kind), kernel_, sentence, first.file || !t ? nullptr : t->last_pc, nullptr,
       first, second, t ? int(t->number) : -1, second_thread, t ? t->block->index : uint3{}});
}

std::size_t Checker::take_findings(Finding* out, std::size_t capacity) {
  std::vector<Raw> taken;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t count = std::min(capacity, findings_.size());
    taken.assign(findings_.begin(), findings_.begin() + static_cast<std::ptrdiff_t>(count));
    findings_.erase(findings_.begin(), findings_.begin() + static_cast<std::ptrdiff_t>(count));
    if (findings_.empty()) told_.clear();
  }
  std::vector<const void*> pcs;
  for (const Raw& raw : taken) {
    pcs.push_back(raw.first_pc);
    pcs.push_back(raw.second_pc);
  }
  const auto places = find_places(pcs);
  const auto place_of = [&](const Site& site, const void* pc) {
    if (site.file) return make_place(site.file, static_cast<int>(site.line));
    const auto found = places.find(pc);
    return found != places.end() ? found->second : Place{};
  };
  std::size_t count = 0;
  for (const Raw& raw : taken) {
    Finding f{};
    f.kind = raw.kind;
    std::snprintf(f.kernel, sizeof f.kernel, "%s", raw.kernel.c_str());
    f.first = place_of(raw.first_site, raw.first_pc);
    f.second = place_of(raw.second_site, raw.second_pc);
    if (f.second.file[0] == '\0') f.second = f.first;
    f.first_thread = raw.first_thread;
    f.second_thread = raw.second_thread;
    f.block[0] = raw.block.x;
    f.block[1] = raw.block.y;
    f.block[2] = raw.block.z;
    std::snprintf(f.sentence, sizeof f.sentence, "%s: %.900s (%.200s; block %u, %u, %u)", f.kernel,
                  raw.text.c_str(), places_of(f).c_str(), f.block[0], f.block[1], f.block[2]);
    // Copies of a line (unrolled, inlined) have other addresses and the same place.
    const bool again = std::any_of(out, out + count, [&](const Finding& g) {
      return g.kind == f.kind && std::strcmp(g.kernel, f.kernel) == 0 && g.first.line == f.first.line &&
             g.second.line == f.second.line && std::strcmp(g.first.file, f.first.file) == 0 &&
             std::strcmp(g.second.file, f.second.file) == 0;
    });
    if (!again) out[count++] = f;
  }
  return count;
}

void Checker::register_global(const void* pointer, std::size_t bytes, const char* name) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  globals_.push_back({begin, begin + bytes, name ? name : "memory"});
}
void Checker::forget_globals() {
  const std::lock_guard lock(mutex_);
  globals_.clear();
}

/// Constants and global variables are the program's, and need no registration.
bool Checker::in_module(std::uintptr_t at) {
  if (modules_.empty())
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_LOAD) {
              const std::uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
              static_cast<decltype(modules_)*>(out)->emplace_back(begin, begin + info->dlpi_phdr[i].p_memsz);
            }
          return 0;
        },
        &modules_);
  return std::any_of(modules_.begin(), modules_.end(),
                     [&](const auto& m) { return at >= m.first && at < m.second; });
}

namespace steering {
void set_seed(std::uint64_t);
void set_architecture(int);
}  // namespace steering

const Controls& controls() noexcept {
  static constexpr Controls checked{
      &steering::set_seed,
      &steering::set_architecture,
      [](Finding* out, std::size_t capacity) { return checker.take_findings(out, capacity); },
      [] { checker.tracer().start(); },
      [](TraceLine* out, std::size_t capacity, TraceTotals* totals) {
        const std::vector<TraceLine> lines = checker.tracer().stop(totals);
        std::copy_n(lines.begin(), std::min(lines.size(), capacity), out);
        return lines.size();
      },
      true,
      [](const void* pointer, std::size_t bytes, const char* name) {
        checker.register_global(pointer, bytes, name);
      },
      [] { checker.forget_globals(); }};
  return checked;
}

void start_trace() { checker.tracer().start(); }
std::vector<TraceLine> stop_trace(TraceTotals* totals) { return checker.tracer().stop(totals); }

}  // namespace rooftile::emulated
