#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>

#include "rooftile/core/check.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile {
namespace {

/// The folder that librooftile.so lies in: plug-ins are looked for there and nowhere else. Found when the
/// library is loaded: its name may be relative to the working folder, which may change.
struct OwnFolder {
  char path[sizeof Backend::folder] = "";
  Status status;

  OwnFolder() {
    Dl_info info;
    char *name = nullptr, *folder = nullptr;
    if (dladdr(reinterpret_cast<void*>(&load_backend), &info) && info.dli_fname)
      name = strdup(info.dli_fname);
    if (name) {
      char* slash = std::strrchr(name, '/');
      if (slash) slash[slash == name] = '\0';
      folder = realpath(slash ? name : ".", nullptr);
    }
    if (!folder)
      status = Status::error(
          "rooftile: the folder of librooftile.so could not be found; name it by ROOFTILE_PLUGINS");
    else if (std::strlen(folder) >= sizeof path)
      status = Status::error("rooftile: the path of librooftile.so is too long: %.200s", folder);
    else
      std::strcpy(path, folder);
    std::free(name);
    std::free(folder);
  }
};
const OwnFolder own_folder;
std::mutex loading;

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

Status find_folder(const char* named, char (&folder)[sizeof Backend::folder]) {
  if (!named || !*named) {
    std::strcpy(folder, own_folder.path);
    return own_folder.status;
  }
  if (std::strlen(named) + 1 > sizeof folder)
    return Status::error("rooftile: the plug-in folder's path is too long: %.200s", named);
  std::strcpy(folder, named);
  return {};
}

const Plugin* built_in(const char* name) {
  for (const PluginFunction* plugin = built_in_plugins; *plugin; ++plugin)
    if (const Plugin* its = (*plugin)(); std::strcmp(its->backend, name) == 0) return its;
  return nullptr;
}

/// What to do where a plug-in is absent: that depends on who put the folder there.
Status no_such_file(const char* path, const char* name) {
  const auto beside = [&](const char* file) {  // in the folder above the plug-in's
    char other[sizeof Backend::folder + 64];
    const char* end = std::strrchr(path, '/');
    while (end && end > path && end[-1] != '/') --end;
    const int length = end ? static_cast<int>(end - path) : 0;
    return std::snprintf(other, sizeof other, "%.*s%s", length, path, file) <
               static_cast<int>(sizeof other) &&
           access(other, F_OK) == 0;
  };
  if (std::strcmp(name, "cuda") == 0)
    return Status::error(
        "%s: no such plug-in; build it with nvcc (cmake --preset cuda && cmake --build --preset "
        "cuda), or for Python: pip install rooftile-cuda",
        path);
  const char* instead =
      beside("_core.abi3.so") ? "reinstall the package: pip install --force-reinstall rooftile"
      : beside("CMakeCache.txt")
          ? "run `make build`"
          : "build or reinstall rooftile, or name the folder of its plug-ins by ROOFTILE_PLUGINS";
  return Status::error("%s: no such plug-in; %s%s", path, instead,
                       std::strncmp(name, "cpu-", 4) == 0 ? ", or choose another by ROOFTILE_CPU" : "");
}

Status open_file(const char* path, const char* name, void*& handle, const Plugin*& plugin) {
  if (access(path, F_OK) != 0) return no_such_file(path, name);
  handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return Status::error("%s: cannot be loaded: %s", path, dlerror());
  const auto function = reinterpret_cast<PluginFunction>(dlsym(handle, kPluginSymbol));
  plugin = function ? function() : nullptr;
  if (plugin) return {};
  dlclose(handle);
  return Status::error("%s: is a shared library, but no rooftile plug-in (no symbol %s)", path,
                       kPluginSymbol);
}

Status load(const char* folder, const char* name, const Backend*& backend) {
  static std::list<Backend> loaded;  // never unloaded: their kernels may be running
  // A forked child finds the list whole, and nobody in here.
  [[maybe_unused]] static const int guarded =
      pthread_atfork([] { loading.lock(); }, [] { loading.unlock(); }, [] { loading.unlock(); });
  const std::lock_guard lock(loading);

  Backend fresh;
  std::snprintf(fresh.name, sizeof fresh.name, "%s", name);
  const Plugin* plugin = folder && *folder ? nullptr : built_in(name);
  if (!plugin) ROOFTILE_TRY(find_folder(folder, fresh.folder));
  for (const Backend& known : loaded) {
    if (std::strcmp(known.folder, fresh.folder) == 0 && std::strcmp(known.name, fresh.name) == 0) {
      backend = &known;
      return {};
    }
  }

  char path[sizeof fresh.folder + 64];
  std::snprintf(path, sizeof path, "%s/rooftile-%s.so", fresh.folder, fresh.name);
  void* handle = nullptr;
  if (!plugin) ROOFTILE_TRY(open_file(path, name, handle, plugin));
  Status status;
  if (plugin->version != kPluginVersion) {
    status = Status::error("%s: is a plug-in of version %d, this library needs version %d", path,
                           plugin->version, kPluginVersion);
  } else if (std::strcmp(plugin->backend, fresh.name) != 0) {
    status = Status::error("%s: holds the plug-in \"%s\", not \"%s\"", path, plugin->backend, fresh.name);
  } else {
    status = fill(path, *plugin, fresh);
  }
  if (!status) {
    if (handle) dlclose(handle);
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
