#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rooftile/core/status.h"

/// The record's schema 1: which field has which type. Part of report.cpp.
namespace rooftile::harness::report {

using Json = nlohmann::json;

inline constexpr int kSchema = 1;

enum class Kind { kText, kNumber, kTruth, kSizes, kTexts, kLabel };

struct Field {
  const char* name;
  Kind kind;
};

inline constexpr Field kRecordFields[] = {{"rooftile", Kind::kText},
                                          {"commit", Kind::kText},
                                          {"date", Kind::kText},
                                          {"command", Kind::kText},
                                          {"notes", Kind::kTexts}};
inline constexpr Field kMachineFields[] = {{"cpu", Kind::kText},
                                           {"vendor", Kind::kText},
                                           {"isa", Kind::kText},
                                           {"isa_reason", Kind::kText},
                                           {"cores", Kind::kNumber},
                                           {"threads", Kind::kNumber},
                                           {"os", Kind::kText},
                                           {"compiler", Kind::kText},
                                           {"memory_bytes", Kind::kNumber},
                                           {"contradictions", Kind::kTexts}};
inline constexpr Field kCacheFields[] = {{"level", Kind::kNumber},
                                         {"kind", Kind::kText},
                                         {"bytes", Kind::kNumber},
                                         {"shared_by", Kind::kNumber},
                                         {"line_bytes", Kind::kNumber}};
inline constexpr Field kLevelFields[] = {{"name", Kind::kText},        {"footprint_bytes", Kind::kNumber},
                                         {"threads", Kind::kNumber},   {"read_gbs", Kind::kNumber},
                                         {"write_gbs", Kind::kNumber}, {"copy_gbs", Kind::kNumber}};
inline constexpr Field kPeakFields[] = {{"name", Kind::kText},
                                        {"dtype", Kind::kText},
                                        {"isa", Kind::kText},
                                        {"threads", Kind::kNumber},
                                        {"gflops", Kind::kNumber}};
inline constexpr Field kResultFields[] = {{"op", Kind::kText},           {"direction", Kind::kText},
                                          {"variant", Kind::kText},      {"backend", Kind::kText},
                                          {"isa", Kind::kText},          {"dtype", Kind::kText},
                                          {"layout", Kind::kText},       {"cache", Kind::kText},
                                          {"limit", Kind::kText},        {"group", Kind::kText},
                                          {"series", Kind::kText},       {"title", Kind::kText},
                                          {"shape", Kind::kSizes},       {"threads", Kind::kNumber},
                                          {"n", Kind::kNumber},          {"median_us", Kind::kNumber},
                                          {"p5_us", Kind::kNumber},      {"p95_us", Kind::kNumber},
                                          {"floor_us", Kind::kNumber},   {"bytes", Kind::kNumber},
                                          {"flops", Kind::kNumber},      {"workspace_bytes", Kind::kNumber},
                                          {"copy_us", Kind::kNumber},    {"peak_bytes", Kind::kNumber},
                                          {"limit_us", Kind::kNumber},   {"of_limit", Kind::kNumber},
                                          {"clock_mhz", Kind::kNumber},  {"power_w", Kind::kNumber},
                                          {"rung", Kind::kNumber},       {"throttled", Kind::kTruth},
                                          {"copy_p5_us", Kind::kNumber}, {"copy_p95_us", Kind::kNumber},
                                          {"doubts", Kind::kTexts}};
inline constexpr Field kBaselineFields[] = {
    {"name", Kind::kText}, {"version", Kind::kText}, {"median_us", Kind::kNumber}};
inline constexpr Field kCheckFields[] = {
    {"op", Kind::kText},        {"direction", Kind::kText},   {"variant", Kind::kText},
    {"isa", Kind::kText},       {"dtype", Kind::kText},       {"worst_of_tolerance", Kind::kNumber},
    {"cases", Kind::kNumber},   {"passed", Kind::kNumber},    {"rms_of_tolerance", Kind::kNumber},
    {"failures", Kind::kTexts}, {"impostors", Kind::kNumber}, {"impostors_rejected", Kind::kNumber}};
inline constexpr Field kBinFields[] = {{"ulp", Kind::kLabel}, {"count", Kind::kNumber}};
inline constexpr Field kTraceFields[] = {{"op", Kind::kText},
                                         {"direction", Kind::kText},
                                         {"variant", Kind::kText},
                                         {"isa", Kind::kText},
                                         {"dtype", Kind::kText},
                                         {"shape", Kind::kSizes},
                                         {"bytes", Kind::kNumber},
                                         {"launches", Kind::kNumber},
                                         {"sectors", Kind::kNumber},
                                         {"read_bytes", Kind::kNumber},
                                         {"written_bytes", Kind::kNumber},
                                         {"moved_bytes", Kind::kNumber},
                                         {"different_bytes", Kind::kNumber}};
inline constexpr Field kTraceLineFields[] = {
    {"file", Kind::kText},         {"line", Kind::kNumber},       {"text", Kind::kText},
    {"access", Kind::kText},       {"requests", Kind::kNumber},   {"sectors", Kind::kNumber},
    {"used_bytes", Kind::kNumber}, {"wavefronts", Kind::kNumber}, {"conflicts", Kind::kNumber}};
inline constexpr Field kPictureFields[] = {{"title", Kind::kText},   {"caption", Kind::kText},
                                           {"mime", Kind::kText},    {"base64", Kind::kText},
                                           {"width", Kind::kNumber}, {"height", Kind::kNumber}};

/// The value as ASCII JSON, cut where it is long.
inline std::string glimpse(const Json& value) {
  const std::string whole = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return whole.size() <= 40 ? whole : whole.substr(0, 37) + "...";
}

/// The value's type and a glimpse of it: `a string ("fast")`.
inline std::string seen(const Json& value) {
  const std::string type = value.type_name();
  return (type == "array" || type == "object" ? "an " : "a ") + type + " (" + glimpse(value) + ")";
}

/// An empty text when `value` is of the kind, else what was expected. null means "unknown" everywhere.
inline const char* mismatch(const Json& value, Kind kind) {
  if (value.is_null()) return "";
  switch (kind) {
    case Kind::kText:
      return value.is_string() ? "" : "a string";
    case Kind::kNumber:
      return value.is_number() ? "" : "a number";
    case Kind::kTruth:
      return value.is_boolean() ? "" : "true or false";
    case Kind::kLabel:
      return value.is_string() || value.is_number() ? "" : "a string or a number";
    case Kind::kSizes:
      if (!value.is_array()) return "an array of sizes";
      for (const Json& size : value)
        if (!size.is_number_integer() || size < 0) return "an array of sizes (whole numbers from 0)";
      return "";
    case Kind::kTexts:
      if (!value.is_array()) return "an array of strings";
      for (const Json& text : value)
        if (!text.is_string()) return "an array of strings";
      return "";
  }
  return "";
}

template <std::size_t N>
Status check_fields(const Json& object, const std::string& place, const Field (&fields)[N]) {
  if (!object.is_object())
    return Status::error("record: %s is %s, expected an object", place.c_str(), seen(object).c_str());
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    if (found == object.end()) continue;
    if (const char* expected = mismatch(*found, field.kind); *expected)
      return Status::error("record: %s%s%s is %s, expected %s", place.c_str(), place.empty() ? "" : ".",
                           field.name, seen(*found).c_str(), expected);
  }
  return {};
}

/// Each element of the list `name` in `object`; `inner` checks what lies deeper.
template <std::size_t N, class Inner>
Status check_list(const Json& object, const std::string& place, const char* name, const Field (&fields)[N],
                  Inner inner) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return {};
  const std::string list_place = place + (place.empty() ? "" : ".") + name;
  if (!found->is_array())
    return Status::error("record: %s is %s, expected an array", list_place.c_str(), seen(*found).c_str());
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string element = list_place + "[" + std::to_string(i) + "]";
    if (Status s = check_fields((*found)[i], element, fields); !s) return s;
    if (Status s = inner((*found)[i], element); !s) return s;
  }
  return {};
}

inline Status validate(const Json& record) {
  if (!record.is_object())
    return Status::error("this is no rooftile record: it is %s, expected an object", seen(record).c_str());
  const auto schema = record.find("schema");
  if (schema == record.end())
    return Status::error("this is no rooftile record: it has no \"schema\" (records come from --json FILE)");
  if (!schema->is_number_integer() || *schema != kSchema) {
    const auto writer = record.find("rooftile");
    std::string version;
    if (writer != record.end() && writer->is_string()) version = ", written by rooftile " + glimpse(*writer);
    return Status::error("record: schema is %s%s; this version reads schema %d", seen(*schema).c_str(),
                         version.c_str(), kSchema);
  }
  const auto flat = [](const Json&, const std::string&) { return Status(); };
  if (Status s = check_fields(record, "", kRecordFields); !s) return s;
  if (const auto machine = record.find("machine"); machine != record.end() && !machine->is_null()) {
    if (Status s = check_fields(*machine, "machine", kMachineFields); !s) return s;
    if (Status s = check_list(*machine, "machine", "caches", kCacheFields, flat); !s) return s;
    if (Status s = check_list(*machine, "machine", "levels", kLevelFields, flat); !s) return s;
    if (Status s = check_list(*machine, "machine", "peaks", kPeakFields, flat); !s) return s;
  }
  const auto baselines = [&](const Json& result, const std::string& place) {
    return check_list(result, place, "peers", kBaselineFields, flat);
  };
  if (Status s = check_list(record, "", "results", kResultFields, baselines); !s) return s;
  const auto bins = [&](const Json& check, const std::string& place) {
    return check_list(check, place, "ulp_histogram", kBinFields, flat);
  };
  if (Status s = check_list(record, "", "checks", kCheckFields, bins); !s) return s;
  const auto lines = [&](const Json& trace, const std::string& place) {
    return check_list(trace, place, "lines", kTraceLineFields, flat);
  };
  if (Status s = check_list(record, "", "traces", kTraceFields, lines); !s) return s;
  return check_list(record, "", "gallery", kPictureFields, flat);
}

}  // namespace rooftile::harness::report
