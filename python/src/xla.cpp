// One of XLA's custom calls for all functions: place, which operands are arguments and results, and options
// are its attributes.
#include <Python.h>

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "python/src/function.h"
#include "python/src/xla_abi.h"

namespace rooftile::python {
namespace {

int dtype_of(int xla_type) {
  switch (xla_type) {
    case 1:
      return ROOFTILE_BOOL;
    case 2:
      return ROOFTILE_I8;
    case 4:
      return ROOFTILE_I32;
    case 5:
      return ROOFTILE_I64;
    case 6:
      return ROOFTILE_U8;
    case 10:
      return ROOFTILE_F16;
    case 11:
      return ROOFTILE_F32;
    case 12:
      return ROOFTILE_F64;
    case 16:
      return ROOFTILE_BF16;
    case 19:
      return ROOFTILE_F8E5M2;
    case 20:
      return ROOFTILE_F8E4M3;
    default:
      return 255;  // which the library refuses by a sentence
  }
}

xla::Error* error(const xla::Frame& frame, const char* message, int code = xla::kInvalidArgument) {
  xla::ErrorArguments arguments{sizeof(xla::ErrorArguments), nullptr, message, code};
  return frame.api->create_error(&arguments);
}

const void* attribute(const xla::Frame& frame, std::string_view name) {
  for (std::int64_t a = 0; a < frame.attributes.count; ++a)
    if (std::string_view(frame.attributes.names[a]->data, frame.attributes.names[a]->size) == name)
      return frame.attributes.items[a];
  return nullptr;
}
std::int64_t number(const xla::Frame& frame, const char* name) {
  const auto* scalar = static_cast<const xla::Scalar*>(attribute(frame, name));
  return scalar ? *static_cast<const std::int64_t*>(scalar->value) : -1;
}

/// The queue of a device and a stream, made by the first call there.
const rooftile_queue* queue_of(const char* device, int index, void* stream, rooftile_status& status) {
  struct Made {
    const char* device;
    int index;
    void* stream;
    rooftile_queue* queue;
  };
  static std::mutex one;
  static auto& all = *new std::vector<Made>;
  const std::lock_guard lock(one);
  for (const Made& made : all)
    if (made.device == device && made.index == index && made.stream == stream) return made.queue;
  rooftile_queue_options options = ROOFTILE_QUEUE_DEFAULTS;
  options.device = index;
  options.stream = stream;
  rooftile_queue* fresh = nullptr;
  status = rooftile_queue_new(device, &options, &fresh);
  if (fresh) all.push_back({device, index, stream, fresh});
  return fresh;
}

/// A workspace of the host, or of XLA's device.
class Memory {
 public:
  Memory(const xla::Frame& frame, bool cuda) : frame_(frame), cuda_(cuda) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  /// An error where there is none; XLA's own, if it has one.
  xla::Error* get(std::size_t bytes) {
    if (cuda_) {
      // XLA vouches for 16 bytes at most, and refuses to be asked for more; a GPU's allocations begin at 256.
      xla::MemoryArguments arguments{sizeof arguments, nullptr, frame_.context, bytes, 16, nullptr};
      if (xla::Error* its = frame_.api->allocate(&arguments)) return its;
      workspace.pointer = arguments.data;
    } else {
      workspace.pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    if (workspace.pointer) workspace.bytes = bytes;
    return workspace.pointer ? nullptr
                             : error(frame_, "rooftile: no memory for a workspace", xla::kResourceExhausted);
  }
  ~Memory() {
    if (!cuda_) {
      std::free(workspace.pointer);
    } else if (workspace.pointer) {
      xla::FreeArguments arguments{sizeof arguments, nullptr, frame_.context, workspace.bytes,
                                   workspace.pointer};
      frame_.api->release(&arguments);
    }
  }
  rooftile_workspace workspace{nullptr, 0};

 private:
  const xla::Frame& frame_;
  bool cuda_;
};

/// Which GPU, and XLA's stream there; -1: the thread's current one, where XLA is too old to say.
xla::Error* where(const xla::Frame& frame, int& index, void*& stream) {
  xla::StreamArguments its{sizeof its, nullptr, frame.context, nullptr};
  if (xla::Error* failed = frame.api->stream(&its)) return failed;
  stream = its.stream;
  index = -1;
  if (frame.api->size < offsetof(xla::Api, ordinal) + sizeof frame.api->ordinal || !frame.api->ordinal)
    return nullptr;
  xla::OrdinalArguments ordinal{sizeof ordinal, nullptr, frame.context, -1};
  if (xla::Error* failed = frame.api->ordinal(&ordinal)) return failed;
  index = ordinal.ordinal;
  return nullptr;
}

template <bool kCuda>
xla::Error* handle(xla::Frame* frame) {
  for (xla::Extension* e = frame->extension; e; e = e->next) {
    if (e->type != xla::kMetadata) continue;
    xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(e)->metadata;
    metadata.version.major = 0;
    metadata.version.minor = 1;
    metadata.traits = 0;
    return nullptr;
  }
  rooftile_function f;
  const std::int64_t place = number(*frame, "place"), inputs = number(*frame, "inputs");
  const std::int64_t outputs = number(*frame, "outputs");
  const auto* options = static_cast<const xla::Array*>(attribute(*frame, "options"));
  if (inputs < 0 || outputs < 0 || !options || !rooftile_function_at(static_cast<int>(place), &f) ||
      options->count != static_cast<std::size_t>(f.options) + 1)
    return error(*frame, "rooftile: the custom call's attributes are not those of rooftile.jax");

  int index = -1;
  void* stream = nullptr;
  if (kCuda)
    if (xla::Error* its = where(*frame, index, stream)) return its;
  rooftile_status status{};
  const rooftile_queue* q = queue_of(kCuda ? "cuda" : "cpu", index, stream, status);
  if (!q) return error(*frame, status.message);

  rooftile_view view[ROOFTILE_MAX_OPERANDS];
  const rooftile_view* views[ROOFTILE_MAX_OPERANDS] = {};
  std::int64_t argument = 0, result = 0;
  for (int o = 0; o < f.operands; ++o) {
    const xla::Buffer* buffer = nullptr;
    if (inputs >> o & 1) {
      if (argument == frame->arguments.count) return error(*frame, "rooftile: a custom call lacks arguments");
      buffer = static_cast<const xla::Buffer*>(frame->arguments.items[argument++]);
    }
    const void* given = buffer ? buffer->data : nullptr;
    if (outputs >> o & 1) {
      if (result == frame->results.count) return error(*frame, "rooftile: a custom call lacks results");
      buffer = static_cast<const xla::Buffer*>(frame->results.items[result++]);
    }
    if (!buffer) continue;
    view[o] =
        rooftile_dense(buffer->data, dtype_of(buffer->dtype), static_cast<int>(buffer->rank), buffer->shape);
    views[o] = &view[o];
    if (!given || !(outputs >> o & 1) || given == buffer->data) continue;
    rooftile_view before = view[o];  // read and written: the result starts as it
    before.data = const_cast<void*>(given);
    const rooftile_view* const both[] = {&before, &view[o]};
    constexpr double kNoOptions[] = {0};
    status = rooftile_call(q, "copy", both, kNoOptions, nullptr, {nullptr, 0});
    if (status.message[0]) return error(*frame, status.message);
  }

  // permute's order: the last dimensions of its input as its output has them.
  if (const auto* order = static_cast<const xla::Array*>(attribute(*frame, "order"))) {
    const rooftile_view dense = view[0];
    const auto* dims = static_cast<const std::int64_t*>(order->data);
    const auto count = static_cast<std::int64_t>(order->count), first = dense.rank - count;
    if (!views[0] || first < 0)
      return error(*frame, "rooftile: a custom call permutes more dimensions than there are");
    for (std::int64_t d = 0; d < count; ++d) {
      if (dims[d] < 0 || dims[d] >= count)
        return error(*frame, "rooftile: a custom call permutes a dimension that is not there");
      view[0].shape[first + d] = dense.shape[first + dims[d]];
      view[0].stride[first + d] = dense.stride[first + dims[d]];
    }
  }

  const auto* numbers = static_cast<const double*>(options->data);
  Memory memory(*frame, kCuda);
  if (f.has_workspace) {
    std::size_t bytes = 0;
    status = rooftile_workspace_of(q, f.name, views, numbers, &bytes);
    if (status.message[0]) return error(*frame, status.message);
    if (bytes)
      if (xla::Error* its = memory.get(bytes)) return its;
  }
  status = rooftile_call(q, f.name, views, numbers, nullptr, memory.workspace);
  return status.message[0] ? error(*frame, status.message) : nullptr;
}

}  // namespace

PyObject* xla_handler(PyObject*, PyObject* cuda) {
  const auto handler = cuda == Py_True ? handle<true> : handle<false>;
  return PyCapsule_New(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET", nullptr);
}

}  // namespace rooftile::python
