// gemm_pack and gemm_packed. CPUs alone have them: a GPU reads b through its copy engine or shared memory,
// whose order is its own.
#include <cstring>

#include "rooftile/core/check.h"
#include "rooftile/ops/gemm/gemm.h"
#include "rooftile/ops/gemm/gemm.kinds.h"
#include "rooftile/ops/gemm/gemm.packed.h"
#include "rooftile/ops/gemm/gemm.rows.h"
#include "rooftile/ops/transpose/transpose.h"

namespace rooftile {
namespace {

static_assert(kGemmPackedHeader == PackedHeader::kSize);

constexpr Signature::Types kT = Signature::Types{'T', {}}
                                    .with_on_cpus(DType::f64)
                                    .with_on_cpus(DType::f32)
                                    .with_on_cpus(DType::tf32)
                                    .with_on_cpus(DType::f16)
                                    .with_on_cpus(DType::bf16)
                                    .with_on_cpus(DType::i8);
constexpr Signature kPack{
    "gemm_pack", {kT}, {input("b", 'T', "K N"), output("packed", 'T', "P")}, {}, "P = N*K + 64"};
constexpr Signature kPacked{
    "gemm_packed",
    {kT, {'O', {DType::f32, DType::i32}, 'T'}, {'B', {DType::f32}, 'O'}},
    {input("a", 'T', "... M K"), input("packed", 'T', "P"), optional(input("c", 'O', "... M N")),
     optional(input("bias", 'B', "N")), output("y", 'O', "... M N", "c")},
    {kAlpha, kBeta, kActivation, kGate},
    "P = N*K + 64"};

Status on_cpus(const Queue& queue, const char* function) {
  if (!queue.status() || queue.device() == Device::cpu) return queue.status();
  return Status::error("%s: is for CPUs alone; on a GPU gemm reads b as it is, without packing: call gemm",
                       function);
}

/// The number that an element is; -1: none of a header's.
int decoded(DType type, const void* element) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, element, static_cast<std::size_t>(bits(type) / 8));
  for (int number = 0; number < 64; ++number)
    if (packed_number(type, number) == bytes) return number;
  return -1;
}

struct Packing {
  ConstView b, packed;
};
Status any_matrix(const Packing&) { return {}; }
Status by_permute(const Queue& queue, const Packing& p) {
  const ConstView &b = p.b, &packed = p.packed;
  const std::int64_t k = b.shape[0], n = b.shape[1], stride = packed.stride[0];
  const std::size_t size = static_cast<std::size_t>(bits(b.dtype) / 8);
  const auto at = [&](const ConstView& v, std::int64_t element) {
    return static_cast<const char*>(v.data) + element * static_cast<std::int64_t>(size);
  };
  const PackedHeader header(b.dtype, k, n);
  for (int i = 0; i < PackedHeader::kSize; ++i) {
    const std::uint64_t bytes = packed_number(b.dtype, header.number[i]);
    std::memcpy(const_cast<char*>(at(packed, i * stride)), &bytes, size);
  }
  /// `strips` strips of `width` columns from column j on.
  const auto pack = [&](std::int64_t j, std::int64_t strips, std::int64_t width) {
    const Extent shape[] = {strips, k, width};
    const Extent from[] = {width * b.stride[1], b.stride[0], b.stride[1]},
                 to[] = {k * width * stride, width * stride, stride};
    const View y =
        detail::make_view<View>(at(packed, (PackedHeader::kSize + j * k) * stride), b.dtype, 3, shape, to);
    return permute(queue, detail::make_view<ConstView>(at(b, j * b.stride[1]), b.dtype, 3, shape, from), y);
  };
  const std::int64_t whole = n / kPackedColumns;
  ROOFTILE_TRY(pack(0, whole, kPackedColumns));
  return pack(whole * kPackedColumns, 1, n % kPackedColumns);
}
constexpr Variant kPackVariants[] = {{"strips", "strips of 32 columns, each by permute", Role::standard,
                                      accepts<any_matrix>, composes<by_permute>}};
Status launch_pack(const Queue& queue, const Op& op, const Call& call) {
  ROOFTILE_TRY(on_cpus(queue, op.function));
  const Packing p{call.view(0), call.view(1)};
  return dispatch(queue, op, &p, call.variant);
}

/// Whether packed is what gemm_pack wrote of a b of this product.
Status check_header(const PackedProduct& p) {
  PackedHeader header(p.type, p.k, p.n);
  bool same = true, packed = true;
  for (int i = 0; i < PackedHeader::kSize; ++i) {
    const int number = decoded(p.type, static_cast<const char*>(p.b) + i * p.b_column * (bits(p.type) / 8));
    same = same && number == header.number[i];
    packed = packed && number >= 0 && (i > PackedHeader::kVersion || number == header.number[i]);
    header.number[i] = static_cast<std::int8_t>(number);
  }
  if (same) return {};
  if (!packed)
    return Status::error(
        "gemm_packed: packed does not begin with gemm_pack's header; pass what gemm_pack wrote of b");
  const auto said = [](std::int64_t n) { return static_cast<long long>(n); };
  return Status::error(
      "gemm_packed: packed holds a b of %lldx%lld %s, this product's is %lldx%lld %s; pack that one",
      said(header.size(PackedHeader::kK)), said(header.size(PackedHeader::kN)),
      name(static_cast<DType>(header.number[PackedHeader::kType])), said(p.k), said(p.n), name(p.type));
}

enum Operand { kA, kPackedB, kC, kBias, kY };
Status any_product(const PackedProduct&) { return {}; }
constexpr Variant kPackedVariants[] = {{"tile",
                                        "gemm's tiles; strips of b multiplied where they lie, or widened",
                                        Role::standard, accepts<any_product>}};
Status launch_packed(const Queue& queue, const Op& op, const Call& call) {
  ROOFTILE_TRY(on_cpus(queue, op.function));
  const ConstView &packed = call.view(kPackedB), &c = call.view(kC);
  PackedProduct p{product_of_rows(call.view(kA), call.view(kBias), call.view(kY), call.output(kY), c),
                  check_header};
  p.b = packed.data;
  p.b_column = packed.stride[0];
  ROOFTILE_TRY(set_options(op.function, p, call, c.present()));
  return dispatch(queue, op, &p, call.variant);
}

}  // namespace

extern const Op gemm_pack_op{"gemm_pack", "forward", "gemm_pack", kPackVariants, kPack, launch_pack};
extern const Op gemm_packed_op{"gemm_packed",   "forward", "gemm_packed",
                               kPackedVariants, kPacked,   launch_packed};

Status gemm_pack(const Queue& queue, ConstView b, View packed, const GemmPackOptions& options) {
  return call(queue, gemm_pack_op, {&b, &packed}, {}, options.variant);
}
Status gemm_packed(const Queue& queue, const GemmPackedInputs& in, View y, const GemmOptions& options,
                   Workspace workspace) {
  return call(queue, gemm_packed_op, {&in.a, &in.packed, &in.c, &in.bias, &y},
              {options.alpha, options.beta, static_cast<double>(options.activation), double(options.gate)},
              options.variant, workspace);
}

}  // namespace rooftile
