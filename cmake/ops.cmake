# Every folder of rooftile/ops is an op: nothing else names them. Written into the build folder:
#   generated/rooftile/rooftile.h      the umbrella header
#   generated/registry.cpp             all_ops()
#   generated/cpu_plugin.cpp           a CPU plug-in's table
#   generated/cuda_plugin.cpp          a GPU plug-in's table
#   generated/case_registry.cpp        all_specs(), for the harness
#   generated/cases/<op>.cpp           an op's cases and oracles: units of their own, so that all are compiled at a time
file(GLOB op_folders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rooftile/ops/*/*.h)
list(TRANSFORM op_folders REPLACE "/[^/]*$" "")
list(REMOVE_DUPLICATES op_folders)
list(SORT op_folders)
# -DROOFTILE_OPS="rms_norm;gemm": a build of these folders alone.
if(ROOFTILE_OPS)
  foreach(op IN LISTS ROOFTILE_OPS)
    if(NOT ${PROJECT_SOURCE_DIR}/rooftile/ops/${op} IN_LIST op_folders)
      message(FATAL_ERROR "ROOFTILE_OPS: there is no folder rooftile/ops/${op}")
    endif()
  endforeach()
  # And those whose functions these call, and so on: their sources include <op>.h or <op>.parts.h.
  set(chosen_ops "")
  set(waiting ${ROOFTILE_OPS})
  while(waiting)
    list(POP_FRONT waiting op)
    if(op IN_LIST chosen_ops)
      continue()
    endif()
    list(APPEND chosen_ops ${op})
    file(GLOB sources ${PROJECT_SOURCE_DIR}/rooftile/ops/${op}/*.cpp)
    foreach(source IN LISTS sources)
      file(STRINGS ${source} headers REGEX "^#include \"rooftile/ops/[a-z0-9_]+/[a-z0-9_]+(\\.parts)?\\.h\"")
      foreach(header IN LISTS headers)
        string(REGEX REPLACE ".*rooftile/ops/([a-z0-9_]+)/([a-z0-9_]+).*" "\\1;\\2" names "${header}")
        list(GET names 0 other)
        list(GET names 1 its)
        if(other STREQUAL its)
          list(APPEND waiting ${other})
        endif()
      endforeach()
    endforeach()
  endwhile()
  list(JOIN chosen_ops "|" chosen_ops)
  list(FILTER op_folders INCLUDE REGEX "/(${chosen_ops})$")
endif()

set(ROOFTILE_GENERATED_INCLUDE_DIR ${PROJECT_BINARY_DIR}/generated)
set(ROOFTILE_OP_SOURCES "")
set(ROOFTILE_CPU_SOURCES "")
set(ROOFTILE_CUDA_SOURCES "")
set(ROOFTILE_CASE_SOURCES "")
set(ROOFTILE_PUBLIC_HEADERS rooftile/rooftile.h rooftile/c.h rooftile/c_functions.h)
foreach(header convert dtype element permuted queue status tensor_view view view_of workspace)
  list(APPEND ROOFTILE_PUBLIC_HEADERS rooftile/core/${header}.h)
endforeach()
set(umbrella "#pragma once\n#include \"rooftile/core/queue.h\"\n#include \"rooftile/core/status.h\"\n\
#include \"rooftile/core/view_of.h\"\n#include \"rooftile/core/workspace.h\"\n")
foreach(folder IN LISTS op_folders)
  get_filename_component(op ${folder} NAME)
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.kernels.cpp ${folder}/*.cpu.cpp ${folder}/ladder/*.cpp
       ${folder}/ladder/*/*.cpp)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "\\.(cpu|kernels)\\.cpp$")
  list(APPEND ROOFTILE_OP_SOURCES ${sources})
  list(APPEND ROOFTILE_CPU_SOURCES ${kernels})
  list(APPEND ROOFTILE_PUBLIC_HEADERS rooftile/ops/${op}/${op}.h)
  string(APPEND umbrella "#include \"rooftile/ops/${op}/${op}.h\"\n")
  string(APPEND op_externs "extern const Op* const ${op}_ops[];\n")
  string(APPEND op_names "${op}_ops, ")
  if(kernels)  # a composed function has none
    string(APPEND cpu_externs "extern const PluginEntry ${op}_cpu_kernels[];\n")
    string(APPEND cpu_names "${op}_cpu_kernels, ")
  endif()
  # A folder with launches for all machines and for one has two tables.
  if(EXISTS ${folder}/${op}.kernels.cpp AND EXISTS ${folder}/${op}.cpu.cpp)
    string(APPEND cpu_externs "extern const PluginEntry ${op}_rest_cpu_kernels[];\n")
    string(APPEND cpu_names "${op}_rest_cpu_kernels, ")
  endif()
  if(EXISTS ${folder}/${op}.kernels.cpp AND EXISTS ${folder}/${op}.cu)
    string(APPEND cuda_externs "extern const PluginEntry ${op}_rest_cuda_kernels[];\n")
    string(APPEND cuda_names "${op}_rest_cuda_kernels, ")
  endif()
  file(GLOB cuda_kernels CONFIGURE_DEPENDS ${folder}/*.cu ${folder}/ladder/*.cu ${folder}/ladder/*/*.cu)
  # Launches that are the same for all machines, as a source of the GPU's compiler.
  if(EXISTS ${folder}/${op}.kernels.cpp)
    set(cuda_source ${ROOFTILE_GENERATED_INCLUDE_DIR}/ops/${op}/${op}.kernels.cu)
    file(CONFIGURE OUTPUT ${cuda_source} CONTENT "#include \"rooftile/ops/${op}/${op}.kernels.cpp\"\n" @ONLY)
    list(APPEND cuda_kernels ${cuda_source})
  endif()
  # Functions whose "tile" on a GPU is launched by the folder itself, with numbers of its own. (The backwards of
  # functions of rows are row programs, whoever launches them.)
  if(EXISTS ${folder}/${op}.cu)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${op}.cu)
    file(STRINGS ${folder}/${op}.cu launched REGEX "\\(\"[a-z0-9_]+\", \"tile\"")
    list(TRANSFORM launched REPLACE ".*\\((\"[a-z0-9_]+\"), \"tile\".*" "\\1")
    list(FILTER launched EXCLUDE REGEX "_backward")
    list(APPEND own_numbers ${launched})
  endif()
  if(cuda_kernels)
    list(APPEND ROOFTILE_CUDA_SOURCES ${cuda_kernels})
    string(APPEND cuda_externs "extern const PluginEntry ${op}_cuda_kernels[];\n")
    string(APPEND cuda_names "${op}_cuda_kernels, ")
  endif()
  set(case_source ${ROOFTILE_GENERATED_INCLUDE_DIR}/cases/${op}.cpp)
  file(CONFIGURE OUTPUT ${case_source} CONTENT "#include \"rooftile/ops/${op}/cases.h\"

namespace rooftile::harness {
std::vector<Spec> cases_of_${op}() { return ${op}_specs(); }
}  // namespace rooftile::harness\n" @ONLY)
  list(APPEND ROOFTILE_CASE_SOURCES ${case_source})
  string(APPEND case_declarations "std::vector<Spec> cases_of_${op}();\n")
  string(APPEND case_calls "    add(\"${op}\", cases_of_${op}());\n")
endforeach()

function(write_if_different file text)
  file(CONFIGURE OUTPUT ${ROOFTILE_GENERATED_INCLUDE_DIR}/${file} CONTENT "${text}" @ONLY)
endfunction()
write_if_different(rooftile/rooftile.h "${umbrella}")
list(JOIN own_numbers ", " own_numbers)
write_if_different(own_numbers.inc "${own_numbers}")
write_if_different(registry.cpp "#include <vector>\n#include \"rooftile/core/op.h\"\n\nnamespace rooftile {\n${op_externs}
std::span<const Op* const> all_ops() {
  static const std::vector<const Op*> all = [] {
    std::vector<const Op*> ops;
    for (const Op* const* list : {${op_names}})
      for (; *list; ++list) ops.push_back(*list);
    return ops;
  }();
  return all;
}
}  // namespace rooftile\n")
function(write_plugin file externs names device)
  write_if_different(${file} "#include \"rooftile/core/plugin.h\"\n\nnamespace rooftile {\n${externs}
namespace cuda {
extern const DeviceFunctions device_functions;
}
namespace {
constexpr const PluginEntry* kFolders[] = {${names}};
constexpr int kMax = 4096;
PluginEntry table[kMax];
Plugin plugin{kPluginVersion, ROOFTILE_BACKEND, 0, table, ${device}};
}  // namespace
}  // namespace rooftile

extern \"C\" __attribute__((visibility(\"default\"))) const rooftile::Plugin* rooftile_plugin() {
  using namespace rooftile;
  plugin.count = 0;
  for (const PluginEntry* folder : kFolders)
    for (; folder->function && plugin.count < kMax; ++folder) table[plugin.count++] = *folder;
  return &plugin;
}\n")
endfunction()
write_plugin(cpu_plugin.cpp "${cpu_externs}" "${cpu_names}" nullptr)
write_plugin(cuda_plugin.cpp "${cuda_externs}" "${cuda_names}" "&cuda::device_functions")
# The plug-ins that the library itself holds: those of the CPU's instruction sets `isas`.
function(write_built_in isas)
  set(declarations "")
  set(entries "")
  foreach(isa IN LISTS isas)
    string(APPEND declarations "extern \"C\" const rooftile::Plugin* rooftile_plugin_cpu_${isa}();\n")
    string(APPEND entries "rooftile_plugin_cpu_${isa}, ")
  endforeach()
  write_if_different(built_in.cpp "#include \"rooftile/runtime/queue_state.h\"\n\n${declarations}
namespace rooftile {
const PluginFunction built_in_plugins[] = {${entries}nullptr};
}  // namespace rooftile\n")
endfunction()
write_if_different(case_registry.cpp "#include \"rooftile/harness/spec.h\"

namespace rooftile::harness {
${case_declarations}
const std::vector<Spec>& all_specs() {
  static const std::vector<Spec> specs = [] {
    std::vector<Spec> all;
    const auto add = [&](const char* folder, std::vector<Spec> its) {
      for (Spec& spec : its) {
        spec.folder = folder;
        all.push_back(std::move(spec));
      }
    };
${case_calls}    return all;
  }();
  return specs;
}
}  // namespace rooftile::harness\n")
