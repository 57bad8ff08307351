#pragma once
// Disassembly as text, taken apart: for `rooftile asm`.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rooftile::cli {

/// One instruction, or a source line that the following ones come from.
struct ListingLine {
  std::string text;  ///< of an instruction
  std::string file;  ///< of a source line; then `line` is its number
  int line = 0;
};

struct ListedFunction {
  std::string name;  ///< mangled
  std::uint64_t address = 0;
  std::vector<ListingLine> lines;
  std::set<std::uint64_t> targets;  ///< addresses that it jumps to, calls or takes
};

/// What `objdump -d -l --no-show-raw-insn` prints.
std::vector<ListedFunction> parse_objdump(const std::string& text);
/// What `nvdisasm -c -g` prints of a cubin.
std::vector<ListedFunction> parse_nvdisasm(const std::string& text);
/// What `cuobjdump -ptx` prints.
std::vector<ListedFunction> parse_ptx(const std::string& text);

/// The function that begins at `address` and all that it reaches, itself first; calls out of the library and
/// sentences left out.
std::vector<const ListedFunction*> reachable(const std::vector<ListedFunction>& functions,
                                             std::uint64_t address);

/// A kernel's mangled name without the marks of internal linkage, which nvcc sets on the host's side alone.
std::string without_linkage(const std::string& mangled);

/// Whether a function's mangled name speaks of other element types than this one alone.
bool is_for_other_dtype(const std::string& mangled, const std::string& dtype);

/// The name as C++ spells it, or as it is.
std::string demangled(const std::string& name);

}  // namespace rooftile::cli
