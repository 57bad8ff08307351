#include "rooftile/ops/conv2d/conv2d.h"

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/conv2d/conv2d.operand.h"
#include "rooftile/ops/conv2d/conv2d.problem.h"
#include "rooftile/ops/gemm/gemm.h"

namespace rooftile {
namespace {

constexpr std::int64_t kMaxStep = 1024;

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kB{'B', {DType::f32}, 'T'};                      // the bias's
constexpr Signature::Types kG{'G', {DType::f32}, 'T'};                      // the weights' gradient's
constexpr Signature::Option kStrideH = whole("stride_h", 1, 1, kMaxStep),
                            kStrideW = whole("stride_w", 1, 1, kMaxStep),
                            kPaddingH = whole("padding_h", 0, 0, kMaxStep),
                            kPaddingW = whole("padding_w", 0, 0, kMaxStep),
                            kDilationH = whole("dilation_h", 1, 1, kMaxStep),
                            kDilationW = whole("dilation_w", 1, 1, kMaxStep),
                            kGroups = whole("groups", 1, 1, 0x7fffffff);
constexpr const char* kSizes =
    "C % groups = 0; K % groups = 0; D = C/groups; R >= 1; S >= 1; "
    "H + 2*padding_h >= dilation_h*(R - 1) + 1; W + 2*padding_w >= dilation_w*(S - 1) + 1; "
    "P = (H + 2*padding_h - dilation_h*(R - 1) - 1)/stride_h + 1; "
    "Q = (W + 2*padding_w - dilation_w*(S - 1) - 1)/stride_w + 1";

constexpr Signature kForward{"conv2d",
                             {kT, kB},
                             {input("x", 'T', "N C H W"), input("w", 'T', "K D R S"),
                              optional(input("bias", 'B', "K")), output("y", 'T', "N K P Q")},
                             {kStrideH, kStrideW, kPaddingH, kPaddingW, kDilationH, kDilationW, kGroups,
                              choice("activation", "none relu gelu gelu_tanh silu sigmoid tanh")},
                             kSizes};
constexpr Signature kBackward{
    "conv2d_backward",
    {kT, kG, kB},
    {input("x", 'T', "N C H W"), input("w", 'T', "K D R S"), input("dy", 'T', "N K P Q"),
     output("dx", 'T', "N C H W"), optional(output("dw", 'G', "K D R S")),
     optional(output("dbias", 'B', "K"))},
    {kStrideH, kStrideW, kPaddingH, kPaddingW, kDilationH, kDilationW, kGroups, choice("activation", "none")},
    kSizes};

Status any(const ConvProblem&) { return {}; }

/// Coordinates and a tile's indices are of 32 bits on a GPU.
Status gpu_sizes(const ConvProblem& p) {
  constexpr std::int64_t kMax = 0x3fffffff;
  for (int i = 0; i < p.count; ++i)
    for (const Windows* w : {&p.products[i].left, &p.products[i].right})
      for (const std::int64_t size : {w->height, w->width, w->rows, w->columns, w->terms()})
        if (size > kMax)
          return Status::error(
              "%s: a GPU takes pictures of up to %lld rows and columns, filters of as many "
              "elements; one of these is %lld",
              p.function, static_cast<long long>(kMax), static_cast<long long>(size));
  return {};
}
Status mma_problem(const ConvProblem& p) {
  if (p.dtype == DType::f32)
    return Status::error("%s: tensor cores take f16 and bf16 here, x is f32", p.function);
  return gpu_sizes(p);
}
Status simt_problem(const ConvProblem& p) {
  if (p.dtype != DType::f32)
    return Status::error("%s: simt takes f32, x is %s, which tensor cores take: mma", p.function,
                         name(p.dtype));
  return gpu_sizes(p);
}

Status plain_product(const ConvProblem& p) {
  if (conv_gpu::is_product(p.products[0])) return {};
  return Status::error(
      "%s: gemm takes filters of one tap without stride, padding or groups, over pixels in one "
      "line; w "
      "has %lldx%lld taps, groups are %lld",
      p.function, static_cast<long long>(p.products[0].right.taps_h),
      static_cast<long long>(p.products[0].right.taps_w), static_cast<long long>(p.products[0].groups));
}
/// y[n] = x[n]·wᵀ, rows are pixels; of all pictures at once where those follow each other.
Status by_gemm(const Queue& queue, const ConvProblem& p) {
  const ConvProduct& product = p.products[0];
  const Windows &x = product.right, &w = product.left;
  const ConvOutput& o = product.out;
  if (product.empty()) return {};
  std::int64_t images = x.images, pixels = x.columns;
  if (x.n == pixels * x.w && o.stride[0] == pixels * o.stride[2]) pixels *= images, images = 1;
  const auto matrices = [&](void* data, std::int64_t stride, std::int64_t rows, std::int64_t row,
                            std::int64_t columns, std::int64_t column) {
    View v{};
    v.data = data, v.dtype = p.dtype, v.rank = 3;
    v.shape[0] = images, v.shape[1] = rows, v.shape[2] = columns;
    v.stride[0] = stride, v.stride[1] = row, v.stride[2] = column;
    return v;
  };
  GemmInputs in;
  in.a = matrices(const_cast<void*>(x.data), x.n, pixels, x.w, product.k(), x.c);
  in.b = matrices(const_cast<void*>(w.data), 0, product.k(), w.c, product.m(), w.n);
  if (p.bias) {
    View bias{};
    bias.data = const_cast<void*>(p.bias), bias.dtype = p.bias_dtype, bias.rank = 1;
    bias.shape[0] = product.m(), bias.stride[0] = p.bias_stride;
    in.bias = bias;
  }
  GemmOptions options;
  options.activation = static_cast<GemmActivation>(p.activation);
  return gemm(queue, in, matrices(o.data, o.stride[0], pixels, o.stride[2], product.m(), o.i_stride),
              options);
}

/// Hopper's tensor cores: channels in 16-byte vectors, of pictures and of filters.
Status wgmma_problem(const ConvProblem& p) {
  if (p.dtype == DType::f32) return Status::error("%s: wgmma takes f16 and bf16, x is f32", p.function);
  ROOFTILE_TRY(gpu_sizes(p));
  const ConvProduct& product = p.products[0];
  constexpr std::int64_t kMaxWindows = 0x7fffff00, kFewFilters = 8;
  if (product.groups != 1 || product.m() <= kFewFilters || product.m() > kMaxWindows || product.k() < 1 ||
      product.n() > kMaxWindows)
    return Status::error(
        "%s: wgmma takes one group of more than %lld filters, at least one channel and %lld windows at most; "
        "these are %lld groups of %lld filters with %lld terms, and %lld windows",
        p.function, static_cast<long long>(kFewFilters), static_cast<long long>(kMaxWindows),
        static_cast<long long>(product.groups), static_cast<long long>(product.m()),
        static_cast<long long>(product.k()), static_cast<long long>(product.n()));
  const Windows &x = product.right, &w = product.left;
  if (x.taps_h > conv_gpu::kMaxVectorTaps || x.taps_w > conv_gpu::kMaxVectorTaps)
    return Status::error("%s: wgmma takes filters of up to %dx%d taps, w has %lldx%lld", p.function,
                         conv_gpu::kMaxVectorTaps, conv_gpu::kMaxVectorTaps, static_cast<long long>(x.taps_h),
                         static_cast<long long>(x.taps_w));
  if (conv_gpu::words_of_terms(x) && conv_gpu::rows_of_terms(w) && conv_gpu::near_vectors(x)) return {};
  return Status::error(
      "%s: wgmma copies 16-byte vectors of channels: x and w must have contiguous channels (NHWC), a "
      "multiple "
      "of 8, w without gaps within a filter, addresses and strides that are multiples of 16 bytes, and x "
      "fewer than 2^33 elements; channels are %lld, their strides %lld in x and %lld in w",
      p.function, static_cast<long long>(x.channels), static_cast<long long>(x.c),
      static_cast<long long>(w.c));
}

constexpr Variant kTile{"tile",
                        "an implicit product: windows are packed from the picture as gemm packs its blocks",
                        Role::standard, accepts<any>};
constexpr Variant kMma{"mma", "the same on tensor cores: f16 and bf16", Role::standard, accepts<mma_problem>};
constexpr Variant kSimt{"simt", "the same without them: f32", Role::standard, accepts<simt_problem>};
constexpr Variant kVariants[] = {
    kTile,
    {"gemm", "a filter of one tap: one plain product", Role::standard, accepts<plain_product>,
     composes<by_gemm>},
    {"wgmma", "the same on Hopper's tensor cores, NHWC in 16-byte vectors; the bits of mma", Role::standard,
     accepts<wgmma_problem>},
    kMma,
    kSimt};
constexpr Variant kBackwardVariants[] = {kTile, kMma, kSimt};

/// What a call says about pictures. `x` and `y` are the picture and the result, or their gradients.
struct Sizes {
  std::int64_t n, c, h, w, k, r, s, p, q, groups;
  std::int64_t step_h, step_w, from_h, from_w, tap_h, tap_w;

  Sizes(const Call& call, const ConstView& x, const ConstView& f, const ConstView& y)
      : n(x.shape[0]),
        c(x.shape[1]),
        h(x.shape[2]),
        w(x.shape[3]),
        k(f.shape[0]),
        r(f.shape[2]),
        s(f.shape[3]),
        p(y.shape[2]),
        q(y.shape[3]),
        groups(call.whole(6)),
        step_h(call.whole(0)),
        step_w(call.whole(1)),
        from_h(-call.whole(2)),
        from_w(-call.whole(3)),
        tap_h(call.whole(4)),
        tap_w(call.whole(5)) {}
  std::int64_t channels() const { return c / groups; }
  std::int64_t filters() const { return k / groups; }
};

/// Strides as a picture's. Of one element a stride means nothing.
struct Strides {
  std::int64_t at[4];
  explicit Strides(const ConstView& v) {
    for (int d = 0; d < 4; ++d) at[d] = v.shape[d] > 1 ? v.stride[d] : 0;
  }
};

/// x, seen by the forward's windows.
Windows picture_of(const Sizes& z, const ConstView& x) {
  const Strides s(x);
  Windows v;
  v.data = x.data;
  v.n = s.at[0], v.c = s.at[1], v.h = s.at[2], v.w = s.at[3], v.group = z.channels() * s.at[1];
  v.height = z.h, v.width = z.w;
  v.images = z.n, v.rows = z.p, v.columns = z.q;
  v.taps_h = z.r, v.taps_w = z.s, v.channels = z.channels();
  v.step_h = z.step_h, v.step_w = z.step_w, v.tap_h = z.tap_h, v.tap_w = z.tap_w;
  v.from_h = z.from_h, v.from_w = z.from_w;
  return v;
}
/// A filter: K pictures of one window; for the data's gradient C pictures, whose channels are K.
Windows filter_of(const Sizes& z, const ConstView& f, bool backward) {
  const Strides s(f);
  Windows v;
  v.data = f.data;
  v.n = s.at[backward ? 1 : 0], v.c = s.at[backward ? 0 : 1], v.h = s.at[2], v.w = s.at[3];
  v.group = z.filters() * s.at[0];
  v.height = z.r, v.width = z.s;
  v.images = backward ? z.channels() : z.filters();
  v.taps_h = z.r, v.taps_w = z.s, v.channels = backward ? z.filters() : z.channels();
  return v;
}
/// dy, seen by x's pixels: tap r of pixel h is window (h + padding - r·dilation)/stride.
Windows gradient_of(const Sizes& z, const ConstView& dy) {
  const Strides s(dy);
  Windows v;
  v.data = dy.data;
  v.n = s.at[0], v.c = s.at[1], v.h = s.at[2], v.w = s.at[3], v.group = z.filters() * s.at[1];
  v.height = z.p, v.width = z.q;
  v.images = z.n, v.rows = z.h, v.columns = z.w;
  v.taps_h = z.r, v.taps_w = z.s, v.channels = z.filters();
  v.tap_h = -z.tap_h, v.tap_w = -z.tap_w, v.from_h = -z.from_h, v.from_w = -z.from_w;
  v.down_h = z.step_h, v.down_w = z.step_w;
  return v;
}
/// dy, whose windows are pixels and whose terms are channels.
Windows pixels_of(const Sizes& z, const ConstView& dy) {
  Windows v = gradient_of(z, dy);
  v.rows = z.p, v.columns = z.q;
  v.taps_h = v.taps_w = v.tap_h = v.tap_w = v.down_h = v.down_w = 1;
  v.from_h = v.from_w = 0;
  return v;
}
/// A picture that is written, a pixel for each window of `seen`.
ConvOutput pixels_out(const ConstView& y, void* data, const Windows& seen, std::int64_t channels) {
  const Strides s(y);
  ConvOutput o;
  o.data = data, o.dtype = y.dtype;
  o.i_stride = s.at[1], o.group = channels * s.at[1];
  o.middle = seen.rows, o.low = seen.columns;
  o.stride[0] = s.at[0], o.stride[1] = s.at[2], o.stride[2] = s.at[3];
  return o;
}

/// A filter of one tap that moves by one pixel: rows of pixels as one long row, where strides allow it.
void merge_rows(ConvProduct& p) {
  Windows& v = p.right;
  const bool one = v.taps_h == 1 && v.taps_w == 1 && v.step_h == 1 && v.step_w == 1 && v.from_h == 0 &&
                   v.from_w == 0 && v.down_h == 1 && v.down_w == 1 && v.height == v.rows &&
                   v.width == v.columns;
  const auto in_line = [&](std::int64_t row, std::int64_t column) {
    return v.rows <= 1 || (v.columns <= 1 ? false : row == v.columns * column);
  };
  const bool out = p.along_windows ? in_line(p.left.h, p.left.w) : in_line(p.out.stride[1], p.out.stride[2]);
  if (!one || !out || !in_line(v.h, v.w)) return;
  const std::int64_t pixels = v.rows * v.columns;
  for (Windows* w : {&p.right, &p.left}) {
    if (w == &p.left && !p.along_windows) continue;
    w->height = w->rows = 1, w->width = w->columns = pixels;
  }
  if (!p.along_windows) p.out.middle = 1, p.out.low = pixels;
}

ConvProduct forward_product(const Call& c, const Sizes& z) {
  ConvProduct p;
  p.left = filter_of(z, c.view(1), false);
  p.right = picture_of(z, c.view(0));
  p.out = pixels_out(c.view(3), c.output(3), p.right, z.filters());
  p.groups = z.groups;
  merge_rows(p);
  return p;
}
std::size_t forward_bytes(const Queue& queue, const Call& c) {
  if (queue.device() == Device::cpu) return 0;
  const Sizes z(c, c.view(0), c.view(1), c.view(3));
  return static_cast<std::size_t>(conv_gpu::Packing(c.view(0).dtype, forward_product(c, z)).bytes);
}
/// What must be packed for the first product goes to `memory`, and the product reads it there.
void pack(ConvProblem& p, std::byte* memory) {
  ConvProduct& product = p.products[0];
  const conv_gpu::Packing packing(p.dtype, product);
  const auto copy = [&](Windows& v, std::byte* to) {
    ConvPack& one = p.packs[p.pack_count++];
    one.from = v;
    v = conv_gpu::packed(v);
    v.data = to;
    one.to = v;
  };
  if (packing.picture) copy(product.right, memory);
  if (packing.filters) copy(product.left, memory + packing.filters_at);
}

Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &f = c.view(1), &bias = c.view(2), &y = c.view(3);
  const Sizes z(c, x, f, y);
  ConvProblem p{};
  p.products[0] = forward_product(c, z);
  p.count = 1;
  p.dtype = x.dtype;
  if (queue.device() != Device::cpu) pack(p, static_cast<std::byte*>(c.workspace.pointer));
  if (bias.present()) {
    p.bias = bias.data, p.bias_dtype = bias.dtype;
    p.bias_stride = z.k > 1 ? bias.stride[0] : 0, p.bias_group = z.filters() * p.bias_stride;
  }
  p.activation = static_cast<int>(c.whole(7));
  return dispatch(queue, op, &p, c.variant);
}

ConvProduct weight_product(const Call& c, const Sizes& z) {
  const ConstView &dw = c.view(4), &dbias = c.view(5);
  ConvProduct p;
  p.left = pixels_of(z, c.view(2));
  p.right = picture_of(z, c.view(0));
  p.groups = z.groups;
  p.along_windows = true;
  if (dw.present()) {
    const Strides s(dw);
    p.out.data = c.output(4), p.out.dtype = dw.dtype;
    p.out.i_stride = s.at[0], p.out.group = z.filters() * s.at[0];
    p.out.middle = z.s, p.out.low = z.channels() > 0 ? z.channels() : 1;
    p.out.stride[0] = s.at[2], p.out.stride[1] = s.at[3], p.out.stride[2] = s.at[1];
  }
  if (dbias.present()) {
    p.ones.data = c.output(5), p.ones.dtype = dbias.dtype;
    p.ones.i_stride = z.k > 1 ? dbias.stride[0] : 0, p.ones.group = z.filters() * p.ones.i_stride;
  }
  merge_rows(p);
  return p;
}

std::size_t backward_bytes(const Queue& queue, const Call& c) {
  if (queue.device() == Device::cpu || (!c.view(4).present() && !c.view(5).present())) return 0;
  const ConvProduct p = weight_product(c, Sizes(c, c.view(0), c.view(1), c.view(2)));
  return p.empty() ? 0 : static_cast<std::size_t>(conv_partials(p)) * sizeof(float);
}

Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &f = c.view(1), &dy = c.view(2), &dx = c.view(3);
  const Sizes z(c, x, f, dy);
  ConvProblem p{};
  p.function = "conv2d_backward";
  p.dtype = x.dtype;
  ConvProduct& product = p.products[p.count++];
  product.left = filter_of(z, f, true);
  product.right = gradient_of(z, dy);
  product.out = pixels_out(dx, c.output(3), product.right, z.channels());
  product.groups = z.groups;
  merge_rows(product);
  if (c.view(4).present() || c.view(5).present()) p.products[p.count++] = weight_product(c, z);
  p.partials = static_cast<float*>(c.workspace.pointer);
  return dispatch(queue, op, &p, c.variant);
}

/// The options' values, in the signatures' order.
struct OptionValues {
  double all[8];
  explicit OptionValues(const Conv2dOptions& o)
      : all{double(o.stride_h),   double(o.stride_w),
            double(o.padding_h),  double(o.padding_w),
            double(o.dilation_h), double(o.dilation_w),
            double(o.groups),     double(static_cast<int>(o.activation))} {}
};
struct BackwardViews {
  const ConstView* all[6];
  BackwardViews(const Conv2dBackwardInputs& in, const Conv2dGradients& out)
      : all{&in.x, &in.w, &in.dy, &out.dx, &out.dw, &out.dbias} {}
};

}  // namespace

extern const Op conv2d_op{"conv2d", "forward", "conv2d", kVariants, kForward, launch_forward, forward_bytes};
extern const Op conv2d_backward_op{"conv2d",  "backward",      "conv2d_backward", kBackwardVariants,
                                   kBackward, launch_backward, backward_bytes};
extern const Op* const conv2d_ops[] = {&conv2d_op, &conv2d_backward_op, nullptr};

Status conv2d(const Queue& queue, const Conv2dInputs& in, View y, const Conv2dOptions& options,
              Workspace workspace) {
  const ConstView* const views[] = {&in.x, &in.w, &in.bias, &y};
  return call(queue, conv2d_op, Call{views, OptionValues(options).all, options.variant, workspace});
}
Status conv2d_workspace(const Queue& queue, const Conv2dInputs& in, View y, const Conv2dOptions& options,
                        std::size_t& bytes) {
  const ConstView* const views[] = {&in.x, &in.w, &in.bias, &y};
  return workspace_of(queue, conv2d_op, Call{views, OptionValues(options).all}, bytes);
}
Status conv2d_backward(const Queue& queue, const Conv2dBackwardInputs& in, const Conv2dGradients& gradients,
                       const Conv2dOptions& options, Workspace workspace) {
  return call(queue, conv2d_backward_op,
              Call{BackwardViews(in, gradients).all, OptionValues(options).all, options.variant, workspace});
}
Status conv2d_backward_workspace(const Queue& queue, const Conv2dBackwardInputs& in,
                                 const Conv2dGradients& gradients, const Conv2dOptions& options,
                                 std::size_t& bytes) {
  return workspace_of(queue, conv2d_backward_op,
                      Call{BackwardViews(in, gradients).all, OptionValues(options).all}, bytes);
}

}  // namespace rooftile
