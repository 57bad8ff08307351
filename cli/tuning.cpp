#include "cli/tuning.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "cli/output.h"
#include "rooftile/core/row_problem.h"
#include "rooftile/tile/cuda/tuning.h"

namespace rooftile::cli {
namespace {
using nlohmann::json;

enum class Kind { rows, elements, other };

/// Functions whose "tile" is launched by an <op>.cu, with numbers of its own; cmake/ops.cmake reads them
/// there.
constexpr std::string_view kOwnNumbers[] = {
    "",
#include "own_numbers.inc"
};
bool has_own_numbers(const Op& op) {
  return std::find(std::begin(kOwnNumbers), std::end(kOwnNumbers), op.function) != std::end(kOwnNumbers);
}

/// What a function is, by the shapes in its signature.
Kind kind_of(const Signature& s) {
  bool rows = false, others = s.has_lists();
  for (int o = 0; o < s.operand_count(); ++o) {
    const Signature::Shape& shape = s.operands[o].shape;
    const bool columns = shape.count == 1 && shape.letters[0] == 'C';
    rows = rows || (shape.outer && columns);
    others = others || shape.count > 1 || (shape.count == 1 && !columns) || (!shape.outer && !columns);
  }
  return others ? Kind::other : rows ? Kind::rows : Kind::elements;
}

/// Row operands without a residual, the optional one; vectors; column sums.
tile::RowFacts facts_of(const Signature& s, int bytes) {
  const RowCounts n = detail::row_counts(s);
  int residuals = 0;
  for (int o = 0; o < s.operand_count(); ++o)
    residuals += s.operands[o].role == Signature::Role::input && s.operands[o].optional &&
                 detail::row_operand(s.operands[o]) == detail::RowOperand::rows;
  return {n.inputs - residuals, n.vectors, bytes, n.gradients > 0};
}

/// Tensors that the launch sees: what is read and written counts twice.
int lanes_operands(const Signature& s) {
  int n = s.operand_count();
  for (int o = 0; o < s.operand_count(); ++o) n += s.operands[o].role == Signature::Role::in_out;
  return n;
}

const char* name_of(tile::Scope scope) {
  constexpr const char* kNames[] = {"warp", "warps of a block", "block", "cluster", "no team"};
  return kNames[static_cast<int>(scope)];
}

json json_of(const tile::RowFacts& f, const tile::RowTuning& t) {
  return {{"inputs", f.inputs},
          {"vectors", f.vectors},
          {"bytes", f.bytes},
          {"column_sums", f.column_sums},
          {"elements", t.elements},
          {"max_threads", t.max_threads},
          {"clusters", {t.clusters.alone, t.clusters.pair, t.clusters.threads, t.clusters.chunks}},
          {"streams", t.streaming.stages > 0 ? json(name_of(t.streaming.from)) : json()},
          {"streamed_operands", t.streaming.stages},
          {"min_threads", t.min_threads},
          {"min_blocks", t.min_blocks},
          {"vectors_in_shared_memory", t.stages}};
}

std::string joined(const int* first, const int* end) {
  std::string text;
  for (; first != end; ++first) text += (text.empty() ? "" : " ") + std::to_string(*first);
  return text;
}

}  // namespace

Table tuning_table(const std::vector<const Op*>& ops, json& rows) {
  Table table({"function", ">bytes", "kind", ">inputs", ">vectors", "sums", ">elements", ">threads",
               "clusters", "streams", "min threads", "min blocks"});
  for (const Op* op : ops) {
    const Kind kind = kind_of(op->signature);
    std::set<int> sizes;
    for (int t = 0; t < kDTypes; ++t)
      if (op->signature.types[0].mask >> t & 1) sizes.insert(std::max(1, bits(static_cast<DType>(t)) / 8));
    for (const int bytes : sizes) {
      json row{{"function", op->function}, {"bytes", bytes}};
      if (kind == Kind::other || has_own_numbers(*op)) {
        row["kind"] = "own";
        table.add({op->function, std::to_string(bytes), "own kernels", "", "", "", "", "", "", "", "", ""});
      } else if (kind == Kind::elements) {
        const tile::LanesTuning t = tile::lanes_tuning(lanes_operands(op->signature));
        row.update({{"kind", "elements"}, {"vectors_in_flight", t.vectors}, {"threads", t.threads}});
        table.add({op->function, std::to_string(bytes), "elements", "", "", "",
                   bytes > 0 ? std::to_string(16 / bytes * t.vectors) : "", std::to_string(t.threads), "", "",
                   "", ""});
      } else {
        const tile::RowFacts f = facts_of(op->signature, bytes);
        const tile::RowTuning t = tile::row_tuning(f);
        row.update({{"kind", "rows"}});
        row.update(json_of(f, t));
        const int clusters[] = {t.clusters.alone, t.clusters.pair, t.clusters.threads, t.clusters.chunks};
        table.add({op->function, std::to_string(bytes), "rows", std::to_string(f.inputs),
                   std::to_string(f.vectors), f.column_sums ? "yes" : "", std::to_string(t.elements),
                   std::to_string(t.max_threads), joined(clusters, clusters + 4),
                   t.streaming.stages > 0 ? std::string("from ") + name_of(t.streaming.from) : "",
                   joined(t.min_threads, t.min_threads + 3), joined(t.min_blocks, t.min_blocks + 5)});
      }
      rows.push_back(row);
    }
  }
  return table;
}

std::vector<std::string> tuning_of(const Op& op, const harness::Case& c, json& row) {
  const int bytes = bits(c.dtype) / 8;
  const Kind kind = kind_of(op.signature);
  row = {{"function", op.function}, {"bytes", bytes}};
  if (const harness::Spec* spec = harness::find_spec(op.function); spec && spec->gpu_plan) {
    const std::vector<std::string> lines = spec->gpu_plan(c);
    row.update({{"kind", "own"}, {"plan", lines}});
    return lines;
  }
  if (kind == Kind::other || has_own_numbers(op))
    return {fmt::format("{} has kernels with numbers of their own; no row of the tuning table applies",
                        op.function)};
  if (kind == Kind::elements) {
    const int operands = lanes_operands(op.signature);
    const tile::LanesTuning t = tile::lanes_tuning(operands);
    row.update({{"kind", "elements"}, {"vectors_in_flight", t.vectors}, {"threads", t.threads}});
    return {
        fmt::format("tuning row: elementwise, {} operands of {} bytes per element", operands, bytes),
        fmt::format(
            "{} 16-byte vectors of each operand in flight per thread, {} threads per block; a tensor that "
            "is one row of whole vectors: one per thread",
            t.vectors, t.threads)};
  }
  const tile::RowFacts f = facts_of(op.signature, bytes);
  const tile::RowTuning t = tile::row_tuning(f);
  row.update({{"kind", "rows"}});
  row.update(json_of(f, t));
  std::vector<std::string> lines = {
      fmt::format("tuning row: {} row operand{} read, {} vector{} over the columns, {} bytes per element, {}",
                  f.inputs, f.inputs == 1 ? "" : "s", f.vectors, f.vectors == 1 ? "" : "s", bytes,
                  f.column_sums ? "with column sums" : "no column sums"),
      fmt::format("at most {} elements per thread, and {} threads in a block that holds a row{}", t.elements,
                  t.max_threads,
                  t.streaming.stages > 0
                      ? fmt::format("; aligned rows stream through shared memory from teams of a {} on",
                                    name_of(t.streaming.from))
                      : "")};
  const int lanes = 16 / bytes;
  const std::int64_t columns = c.shape.empty() ? 1 : c.shape.back();
  json shapes = json::array();
  for (const bool clusters : {true, false}) {
    const tile::RowShape shape =
        tile::row_shape(columns, lanes, t.elements / lanes, t.max_threads, t.threads_of(columns), true,
                        clusters ? &t.clusters : nullptr);
    const char* where = clusters ? "compute capability 9.0" : "other GPUs from 8.0";
    shapes.push_back({{"where", where},
                      {"threads", shape.threads},
                      {"rows_of_a_block", shape.teams},
                      {"blocks_of_a_row", shape.cluster}});
    lines.push_back(fmt::format(
        "{}: {}", where,
        shape.cluster == 0
            ? fmt::format("a row of {} is too long to hold; {} threads read it again", columns, shape.threads)
        : shape.cluster > 1
            ? fmt::format("a row of {} takes a cluster of {} blocks with {} threads", columns, shape.cluster,
                          shape.threads)
            : fmt::format("a row of {} takes {} thread{}, {} row{} per block", columns, shape.threads,
                          shape.threads == 1 ? "" : "s", shape.teams, shape.teams == 1 ? "" : "s")));
  }
  row["this_row"] = shapes;
  return lines;
}

}  // namespace rooftile::cli
