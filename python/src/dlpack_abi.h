#pragma once
// DLPack's binary interface, as far as it is needed here: the structures of version 1 and those from before
// it. Source: DLPack 1.3, https://dmlc.github.io/dlpack/latest/c_api.html.
#include <cstdint>

namespace rooftile::python::dlpack {

struct Device {
  std::int32_t type = 0, id = 0;
  friend bool operator==(const Device&, const Device&) = default;
};
inline constexpr std::int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;

struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // null: dense
  std::uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};

struct Version {
  std::uint32_t major, minor;
};

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t kReadOnly = 1;

/// What a type of arrays offers to C: borrowed tensors, new ones, and its current stream.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  int (*allocate)(Tensor* prototype, ManagedVersioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, ManagedVersioned** out);
  int (*object_from_managed)(ManagedVersioned* tensor, void** object);
  int (*tensor_from_object)(void* object, Tensor* out);  // may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** stream);
};

}  // namespace rooftile::python::dlpack
