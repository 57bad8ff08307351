#pragma once
// The binary interface of XLA's custom calls, as far as a handler needs it: the structures of its version 0.
// Source: OpenXLA, xla/ffi/api/c_api.h, https://openxla.org/xla/custom_call.
#include <cstddef>
#include <cstdint>

namespace rooftile::python::xla {

struct Extension {
  std::size_t size;
  int type;  // 1: metadata
  Extension* next;
};
inline constexpr int kMetadata = 1;

struct Version {
  std::size_t size;
  Extension* extension;
  int major, minor;
};

/// What a handler fills in when it is registered; later fields are of versions that have handlers with state.
struct Metadata {
  std::size_t size;
  Version version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;
struct ErrorArguments {
  std::size_t size;
  Extension* extension;
  const char* message;
  int code;
};
inline constexpr int kInvalidArgument = 3, kResourceExhausted = 8;

struct StreamArguments {
  std::size_t size;
  Extension* extension;
  void* context;
  void* stream;  // out
};
struct MemoryArguments {
  std::size_t size;
  Extension* extension;
  void* context;
  std::size_t bytes, alignment;
  void* data;  // out
};
struct FreeArguments {
  std::size_t size;
  Extension* extension;
  void* context;
  std::size_t bytes;
  void* data;
};
struct OrdinalArguments {
  std::size_t size;
  Extension* extension;
  void* context;
  std::int32_t ordinal;  // out
};

/// In the order of XLA's structure; those without a type here are not called.
struct Api {
  std::size_t size;
  Extension* extension;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorArguments*);
  void *error_message, *destroy_error, *register_handler;
  Error* (*stream)(StreamArguments*);
  void *register_type, *execution_context, *set_state, *state;
  Error* (*allocate)(MemoryArguments*);
  Error* (*release)(FreeArguments*);
  void *schedule, *threads, *create_future, *set_available, *set_error, *run_id;
  Error* (*ordinal)(OrdinalArguments*);  // where `size` says that it is there
};

struct Buffer {
  std::size_t size;
  Extension* extension;
  int dtype;
  void* data;
  std::int64_t rank;
  std::int64_t* shape;
};

/// Arguments, and results: `items` are buffers where `types` are 1.
struct List {
  std::size_t size;
  Extension* extension;
  std::int64_t count;
  int* types;
  void** items;
};

struct Text {
  const char* data;
  std::size_t size;
};
struct Scalar {
  int dtype;
  void* value;
};
struct Array {
  int dtype;
  std::size_t count;
  void* data;
};
struct Attributes {
  std::size_t size;
  Extension* extension;
  std::int64_t count;
  int* types;  // 1: array, 3: scalar
  Text** names;
  void** items;
};

struct Frame {
  std::size_t size;
  Extension* extension;
  const Api* api;
  void* context;
  int stage;
  List arguments;
  List results;
  Attributes attributes;
};

}  // namespace rooftile::python::xla
