// One of XLA's custom calls for all functions: place, which operands are arguments and results, and options
// are its attributes.
#include <Python.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

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

/// The CPU's queue for all of XLA's calls; made by the first.
const rooftile_queue* queue(rooftile_status& status) {
  static rooftile_status first;
  static rooftile_queue* const made = [] {
    rooftile_queue* fresh = nullptr;
    first = rooftile_queue_new("cpu", nullptr, &fresh);
    return fresh;
  }();
  status = first;
  return made;
}

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

  rooftile_view view[12];
  const rooftile_view* views[12] = {};
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
    std::int64_t bytes = view[o].dtype == ROOFTILE_F64 || view[o].dtype == ROOFTILE_I64    ? 8
                         : view[o].dtype == ROOFTILE_F32 || view[o].dtype == ROOFTILE_I32  ? 4
                         : view[o].dtype == ROOFTILE_F16 || view[o].dtype == ROOFTILE_BF16 ? 2
                                                                                           : 1;
    for (std::int64_t d = 0; d < buffer->rank; ++d) bytes *= buffer->shape[d];
    std::memcpy(buffer->data, given,
                static_cast<std::size_t>(bytes));  // read and written: the result starts as it
  }

  rooftile_status status;
  const rooftile_queue* q = queue(status);
  if (!q) return error(*frame, status.message);
  const auto* numbers = static_cast<const double*>(options->data);
  rooftile_workspace workspace{nullptr, 0};
  if (f.has_workspace) {
    status = rooftile_workspace_of(q, f.name, views, numbers, &workspace.bytes);
    if (status.message[0]) return error(*frame, status.message);
    if (workspace.bytes) workspace.pointer = std::aligned_alloc(64, (workspace.bytes + 63) / 64 * 64);
    if (workspace.bytes && !workspace.pointer)
      return error(*frame, "rooftile: no memory for a workspace", xla::kResourceExhausted);
  }
  status = rooftile_call(q, f.name, views, numbers, nullptr, workspace);
  std::free(workspace.pointer);
  return status.message[0] ? error(*frame, status.message) : nullptr;
}

}  // namespace

PyObject* xla_handler(PyObject*, PyObject*) {
  return PyCapsule_New(reinterpret_cast<void*>(handle), "xla._CUSTOM_CALL_TARGET", nullptr);
}

}  // namespace rooftile::python
