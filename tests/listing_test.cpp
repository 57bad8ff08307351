// Disassembly, taken apart; texts as the tools print them.
#include "cli/listing.h"

#include <gtest/gtest.h>

namespace rooftile::cli {
namespace {

constexpr const char* kObjdump = R"(
/lib/rooftile-cpu-avx2.so:     file format elf64-x86-64

Disassembly of section .text:

0000000000001000 <_Z6launchv>:
_Z6launchv():
build/release/rooftile/ops/softmax/softmax.cpu.cpp:12
    1000:	push   %rbx
rooftile/ops/softmax/softmax.tile.h:30 (discriminator 3)
    1001:	call   1040 <_Z4loopIfEvv>
rooftile/ops/softmax/softmax.tile.h:31
rooftile/ops/softmax/softmax.tile.h:32
    1006:	lea    0x53(%rip),%rdi        # 1060 <_Z4loopI4bf16Evv>
    100d:	vmovaps 0x2000(%rip),%ymm0        # 3014 <_fini+0x14>
    1015:	jmp    1001 <_Z6launchv+0x1>

0000000000001040 <_Z4loopIfEvv>:
    1040:	ret

0000000000001060 <_Z4loopI4bf16Evv>:
    1060:	jmp    1030 <memcpy@plt>

0000000000001080 <_Z5otherv>:
    1080:	ret

0000000000003000 <_fini>:
    3000:	ret
)";

TEST(Listing, OfObjdump) {
  const std::vector<ListedFunction> functions = parse_objdump(kObjdump);
  ASSERT_EQ(functions.size(), 5u);
  EXPECT_EQ(functions[0].address, 0x1000u);
  const auto& lines = functions[0].lines;
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0].file, "build/release/rooftile/ops/softmax/softmax.cpu.cpp");
  EXPECT_EQ(lines[0].line, 12);
  EXPECT_EQ(lines[1].text, "push   %rbx");
  EXPECT_EQ(lines[2].line, 30);
  EXPECT_EQ(lines[4].line, 32);  // 31 has no instruction of its own
  EXPECT_EQ(lines[7].text, "jmp    1001 <_Z6launchv+0x1>");
  EXPECT_EQ(functions[0].targets, (std::set<std::uint64_t>{0x1040, 0x1060}));
}
TEST(Listing, FollowsCallsAndAddresses) {
  const std::vector<ListedFunction> functions = parse_objdump(kObjdump);
  const auto reached = reachable(functions, 0x1000);
  ASSERT_EQ(reached.size(), 3u);
  EXPECT_EQ(reached[0]->name, "_Z6launchv");
  EXPECT_EQ(reached[1]->name, "_Z4loopIfEvv");
  EXPECT_EQ(reached[2]->name, "_Z4loopI4bf16Evv");
  EXPECT_TRUE(reachable(functions, 0x1234).empty());
}
TEST(Listing, OfNvdisasm) {
  const std::vector<ListedFunction> functions = parse_nvdisasm(
      "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
      "//--------------------- .text._Z3addPf          --------------------------\n"
      "\t.section\t.text._Z3addPf,\"ax\",@progbits\n"
      ".text._Z3addPf:\n"
      "\t//## File \"/src/rooftile/ops/blas1/blas1.cu\", line 12\n"
      "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n"
      "\t//## File \"/src/rooftile/tile/cuda/memory.h\", line 7 inlined at \"/src/x.cu\", line 40\n"
      "        /*0010*/              @!P0 LDG.E.128 R4, [R2.64] ;\n"
      ".L_x_0:\n"
      "        /*0020*/                   EXIT ;\n"
      "//--------------------- .nv.shared --------------------------\n"
      "        /*0030*/  NOP ;\n");
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].name, "_Z3addPf");
  ASSERT_EQ(functions[0].lines.size(), 6u);
  EXPECT_EQ(functions[0].lines[0].line, 12);
  EXPECT_EQ(functions[0].lines[1].text, "MOV R1, c[0x0][0x28]");
  EXPECT_EQ(functions[0].lines[2].file, "/src/rooftile/tile/cuda/memory.h");
  EXPECT_EQ(functions[0].lines[3].text, "@!P0 LDG.E.128 R4, [R2.64]");
  EXPECT_EQ(functions[0].lines[4].text, ".L_x_0:");
  EXPECT_EQ(functions[0].lines[5].text, "EXIT");
}
TEST(Listing, OfPtx) {
  const std::vector<ListedFunction> functions = parse_ptx(
      ".version 9.0\n.target sm_80\n"
      ".visible .entry _Z3addPf(\n\t.param .u64 _Z3addPf_param_0\n)\n{\n"
      "\t.reg .b32 \t%r<2>;\n\t.loc\t1 12 3\n\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, "
      "[%rd1];\n\tret;\n}\n"
      "\t.file\t1 \"/src/rooftile/ops/blas1/blas1.cu\"\n"
      ".version 9.0\n.weak .entry second(){\n\t.loc 1 7 0\n\tret;\n}\n.file 1 \"/src/other.cu\"\n");
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "_Z3addPf");
  const auto source = [](const ListedFunction& f) {
    for (const ListingLine& l : f.lines)
      if (!l.file.empty()) return l.file + ":" + std::to_string(l.line);
    return std::string();
  };
  EXPECT_EQ(source(functions[0]), "/src/rooftile/ops/blas1/blas1.cu:12");
  EXPECT_EQ(source(functions[1]), "/src/other.cu:7");
  EXPECT_EQ(functions[0].lines.back().text, "}");
}
TEST(Listing, KnowsElementTypes) {
  EXPECT_FALSE(is_for_other_dtype("_Z4loopIfEvv", "f32"));
  EXPECT_TRUE(is_for_other_dtype("_Z4loopIfEvv", "bf16"));
  EXPECT_TRUE(is_for_other_dtype("_Z4loopI4bf16Evv", "f16"));
  EXPECT_FALSE(is_for_other_dtype("_Z4loopI4bf16Evv", "bf16"));
  EXPECT_FALSE(is_for_other_dtype("_Z6launchv", "bf16"));
  // A team computes in float whatever lies in memory.
  EXPECT_TRUE(is_for_other_dtype("_Z3addI7CpuTeamIfL6Access1EEN8rooftile4bf16EEvT_", "f32"));
  EXPECT_FALSE(
      is_for_other_dtype("_Z3runI8CudaTeamIfLi8ELi4ELb1EE7ForwardIN8rooftile4bf16ELb0EEEvT_", "bf16"));
  EXPECT_TRUE(is_for_other_dtype("_Z3runI8CudaTeamIfLi8ELi4ELb1EE7ForwardIN8rooftile4bf16ELb0EEEvT_", "f32"));
}
TEST(Listing, FindsKernelsByTheHostsName) {
  EXPECT_EQ(without_linkage("_ZN8rooftile4tile4cudaL8run_rowsILi256ENS_1AEEEvT0_"),
            "_ZN8rooftile4tile4cuda8run_rowsILi256ENS_1AEEEvT0_");
  EXPECT_EQ(without_linkage("_Z4loopIfLb1EEvvL"), "_Z4loopIfLb1EEvvL");
}
TEST(Listing, Demangles) {
  EXPECT_EQ(demangled("_Z4loopIfEvv"), "void loop<float>()");
  EXPECT_EQ(demangled("_Z4loopIfEvv.cold"), "void loop<float>() [cold]");
  EXPECT_EQ(demangled("_fini"), "_fini");
}

}  // namespace
}  // namespace rooftile::cli
