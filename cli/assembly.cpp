#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

#include "cli/answers.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/interrupt.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "cli/program.h"
#include "rooftile/harness/course/sources.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::cli {
namespace {

namespace fs = std::filesystem;

/// Removed with what is in it; signals wait for that.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "rooftile-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      fail("{}: no temporary folder can be made: {}", pattern, std::strerror(errno));
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  const HoldSignals hold_;  // first here, and so given up last
  fs::path path_;
};

struct Place {
  std::string file;  // of the plug-in
  std::uint64_t address = 0;
  std::string variant;
};

/// Where the variant's launch function lies in its plug-in.
Place find_launch(const AsmArguments& arguments, const Op& op) {
  const bool cuda = arguments.device == "cuda";
  const Queue queue =
      cuda ? Queue::cuda()
           : Queue::cpu({.threads = 1, .isa = arguments.isa.empty() ? nullptr : arguments.isa.c_str()});
  // Without a GPU the queue cannot be used, but its plug-in is loaded.
  const Backend* backend = queue.state().backend;
  if (!backend) throw Failure(kTrouble, queue.status().message());
  for (std::size_t v = 0; v < op.variants.size(); ++v) {
    const Variant& variant = op.variants[v];
    if (variant.compose && (arguments.variant.empty() || arguments.variant == variant.name))
      fail("{}: variant \"{}\" has no machine code of its own: {}", op.function, variant.name, variant.idea);
    const PluginEntry& entry = backend->entries[static_cast<std::size_t>(op.slot) + v];
    if (!entry.kernel || (!arguments.variant.empty() && arguments.variant != variant.name)) continue;
    Dl_info info{};
    link_map* map = nullptr;
    if (dladdr1(reinterpret_cast<void*>(entry.kernel), &info, reinterpret_cast<void**>(&map),
                RTLD_DL_LINKMAP) == 0 ||
        !map)
      fail("the plug-in {} of {} cannot be found in memory", backend->name, op.function);
    return {info.dli_fname, reinterpret_cast<std::uintptr_t>(entry.kernel) - map->l_addr, variant.name};
  }
  fail("{}: variant \"{}\" is not part of plug-in {}", op.function, arguments.variant, backend->name);
}

std::vector<ListedFunction> host_functions(const std::string& file) {
  const ProgramOutput output = run_program({"objdump", "-d", "-l", "--no-show-raw-insn", file}, false);
  if (output.code != 0) fail("objdump {}: exit code {}", file, output.code);
  return parse_objdump(output.text);
}

std::string tool(const AsmArguments& arguments, const char* name) {
  const std::string path = find_cuda_tool(name, arguments.tools);
  if (path.empty())
    fail(
        "{} is not here: not on PATH, nor in $ROOFTILE_CUDA_TOOLS, $CUDA_HOME/bin or /usr/local/cuda/bin; it "
        "is part "
        "of the CUDA toolkit",
        name);
  return path;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The kernels in the plug-in that come from `folder` ("rooftile/ops/softmax/"), as PTX or as machine code;
/// of several architectures the newest.
std::vector<ListedFunction> kernels_of(const AsmArguments& arguments, const std::string& file,
                                       const std::string& folder) {
  const std::string cuobjdump = tool(arguments, "cuobjdump");
  std::vector<ListedFunction> all;
  if (arguments.ptx) {
    all = parse_ptx(run_program({cuobjdump, "-ptx", file}, false).text);
    if (all.empty()) fail("{}: holds no PTX: it was compiled for machine code alone", file);
  } else {
    const std::string nvdisasm = tool(arguments, "nvdisasm");
    const Folder temporary;
    const ProgramOutput output = run_program({cuobjdump, "-xelf", "all", fs::absolute(file).string()}, true,
                                             temporary.path().string());
    std::map<std::string, std::vector<fs::path>> cubins;  // by architecture
    static const std::regex architecture("sm_([0-9]+)([a-z]?)");
    for (const auto& entry : fs::directory_iterator(temporary.path())) {
      std::smatch found;
      const std::string name = entry.path().filename().string();
      if (std::regex_search(name, found, architecture))
        cubins[fmt::format("{:0>4}{}", found[1].str(), found[2].str())].push_back(entry.path());
    }
    if (cubins.empty())
      fail("{}: cuobjdump found no machine code: {}", file, output.text.substr(0, output.text.find('\n')));
    for (const fs::path& cubin : cubins.rbegin()->second) {
      stop_if_interrupted();
      // Its line table names the folder; to take the others apart would cost seconds each.
      if (bytes_of(cubin).find(folder.substr(0, folder.size() - 1)) == std::string::npos) continue;
      for (ListedFunction& f :
           parse_nvdisasm(run_program({nvdisasm, "-c", "-g", cubin.string()}, false).text))
        all.push_back(std::move(f));
    }
  }
  return all;
}

/// The kernels that the host's functions name.
std::vector<const ListedFunction*> launched(const std::vector<ListedFunction>& kernels,
                                            const std::vector<const ListedFunction*>& host) {
  std::set<std::string> names;
  for (const ListedFunction* h : host) names.insert(without_linkage(h->name));
  std::vector<const ListedFunction*> found;
  for (const ListedFunction& k : kernels)
    if (names.count(without_linkage(k.name))) found.push_back(&k);
  return found;
}

void print(const ListedFunction& function, harness::Sources& sources, bool with_source) {
  say("{}:\n", demangled(function.name));
  for (const ListingLine& line : function.lines) {
    if (line.file.empty()) {
      say("        {}\n", line.text);
      continue;
    }
    const std::string file = harness::from_root(line.file);
    const std::string text = with_source ? sources.line(file, line.line) : "";
    say("  {}:{}{}{}\n", file, line.line, text.empty() ? "" : "  ", text);
  }
  say("\n");
}

}  // namespace

int assembly(const AsmArguments& arguments) {
  const Op* op = one_op(arguments.what.op, arguments.what.backward);
  if (!arguments.variant.empty()) check_variants({op}, {arguments.variant});
  const bool cuda = arguments.device == "cuda";
  if (!cuda && arguments.device != "cpu")
    refuse("no device \"{}\"; asm takes cpu and cuda", arguments.device);
  if (arguments.ptx && !cuda) refuse("--ptx: PTX is a GPU's; add --device cuda");
  if (cuda && !arguments.isa.empty())
    refuse("--isa {}: instruction sets are the CPU's, --device is cuda", arguments.isa);
  if (!arguments.isa.empty()) check_isas({arguments.isa});
  std::regex wanted;
  try {
    wanted = std::regex(arguments.kernel, std::regex::optimize);
  } catch (const std::regex_error& e) {
    refuse("--kernel \"{}\": no regular expression: {}", arguments.kernel, e.what());
  }
  // Elements that are refused have no code, whatever is compiled for others.
  if (!arguments.what.dtype.empty()) check_taken(one_case(arguments.what, cuda), arguments.variant);

  const Place launch = find_launch(arguments, *op);
  const std::vector<ListedFunction> host = host_functions(launch.file);
  std::vector<const ListedFunction*> functions = reachable(host, launch.address);
  if (functions.empty()) fail("{}: has no symbols: it was stripped", launch.file);
  std::vector<ListedFunction> kernels;
  if (cuda) {
    const harness::Spec* spec = harness::find_spec(op->function);
    kernels =
        kernels_of(arguments, launch.file, fmt::format("rooftile/ops/{}/", spec ? spec->folder : op->name));
    functions = launched(kernels, functions);
  }
  const auto drop = [&](const ListedFunction* f) {
    return (!arguments.what.dtype.empty() && is_for_other_dtype(f->name, arguments.what.dtype)) ||
           (!arguments.kernel.empty() && !std::regex_search(demangled(f->name), wanted) &&
            !std::regex_search(f->name, wanted));
  };
  functions.erase(std::remove_if(functions.begin(), functions.end(), drop), functions.end());
  if (functions.empty()) refuse("{} {}: no function of it fits these options", op->function, launch.variant);
  say("{} {} in {}: {} function{}\n\n", op->function, launch.variant,
      fs::path(launch.file).filename().string(), functions.size(), functions.size() == 1 ? "" : "s");
  harness::Sources sources(source_folders());
  for (const ListedFunction* f : functions) print(*f, sources, arguments.source);
  return kOk;
}

}  // namespace rooftile::cli
