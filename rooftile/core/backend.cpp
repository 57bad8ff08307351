#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>

#include "rooftile/core/queue_state.h"

namespace rooftile {
namespace {

/// The folder that librooftile.so lies in: plug-ins are looked for there and nowhere else.
Status own_folder(char* folder, std::size_t size) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&load_backend), &info) || !info.dli_fname)
    return Status::error(
        "rooftile: the folder of librooftile.so could not be found; name it by ROOFTILE_PLUGINS");
  const char* slash = std::strrchr(info.dli_fname, '/');
  const std::size_t length = slash ? static_cast<std::size_t>(slash - info.dli_fname) : 1;
  if (length + 1 > size)
    return Status::error("rooftile: the path of librooftile.so is too long: %s", info.dli_fname);
  std::memcpy(folder, slash ? info.dli_fname : ".", length);
  folder[length] = '\0';
  return {};
}

/// Each op's variants get consecutive places in a backend's table.
std::size_t assign_slots() {
  std::size_t slots = 0;
  for (const Op* op : all_ops()) {
    op->slot = static_cast<int>(slots);
    slots += op->variants.size();
  }
  return slots;
}

Status fill(const char* path, const Plugin& plugin, Backend& backend) {
  static const std::size_t slots = assign_slots();
  backend.entries.assign(slots, {});
  backend.device = plugin.device;
  for (int e = 0; e < plugin.count; ++e) {
    const PluginEntry& entry = plugin.entries[e];
    bool known = false;
    for (const Op* op : all_ops()) {
      if (std::strcmp(op->function, entry.function) != 0) continue;
      for (std::size_t v = 0; v < op->variants.size(); ++v) {
        if (std::strcmp(op->variants[v].name, entry.variant) != 0) continue;
        backend.entries[static_cast<std::size_t>(op->slot) + v] = entry;
        known = true;
      }
    }
    if (!known)
      return Status::error("%s: holds variant \"%s\" of %s, which this library does not know", path,
                           entry.variant, entry.function);
  }
  return {};
}

Status load(const char* folder, const char* name, const Backend*& backend) {
  static std::mutex mutex;
  static std::list<Backend> loaded;  // never unloaded: their kernels may be running
  const std::lock_guard lock(mutex);

  Backend fresh;
  if (folder && *folder) {
    if (std::strlen(folder) + 1 > sizeof fresh.folder)
      return Status::error("rooftile: the plug-in folder's path is too long: %.200s", folder);
    std::strcpy(fresh.folder, folder);
  } else if (Status s = own_folder(fresh.folder, sizeof fresh.folder); !s) {
    return s;
  }
  std::snprintf(fresh.name, sizeof fresh.name, "%s", name);
  for (const Backend& known : loaded) {
    if (std::strcmp(known.folder, fresh.folder) == 0 && std::strcmp(known.name, fresh.name) == 0) {
      backend = &known;
      return {};
    }
  }

  char path[sizeof fresh.folder + 64];
  std::snprintf(path, sizeof path, "%s/rooftile-%s.so", fresh.folder, fresh.name);
  if (access(path, F_OK) != 0)
    return Status::error("%s: no such plug-in; %s", path,
                         std::strcmp(name, "cuda") == 0
                             ? "build it with nvcc: cmake --preset cuda && cmake --build --preset cuda"
                         : std::strncmp(name, "cpu-", 4) == 0
                             ? "run `make build`, or choose another by ROOFTILE_CPU"
                             : "run `make build`");
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return Status::error("%s: cannot be loaded: %s", path, dlerror());
  const auto function = reinterpret_cast<PluginFunction>(dlsym(handle, kPluginSymbol));
  const Plugin* plugin = function ? function() : nullptr;
  Status status;
  if (!plugin) {
    status =
        Status::error("%s: is a shared library, but no rooftile plug-in (no symbol %s)", path, kPluginSymbol);
  } else if (plugin->version != kPluginVersion) {
    status = Status::error("%s: is a plug-in of version %d, this library needs version %d", path,
                           plugin->version, kPluginVersion);
  } else if (std::strcmp(plugin->backend, fresh.name) != 0) {
    status = Status::error("%s: holds the plug-in \"%s\", not \"%s\"", path, plugin->backend, fresh.name);
  } else {
    status = fill(path, *plugin, fresh);
  }
  if (!status) {
    dlclose(handle);
    return status;
  }
  loaded.push_back(std::move(fresh));
  backend = &loaded.back();
  return {};
}

}  // namespace

Status load_backend(const char* folder, const char* name, const Backend*& backend) {
  try {
    return load(folder, name, backend);
  } catch (const std::exception& e) {  // no memory for the list of plug-ins
    return Status::error("rooftile: plug-in %s could not be loaded: %s", name, e.what());
  }
}

}  // namespace rooftile
