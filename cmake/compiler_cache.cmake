# ccache where it is installed; -DROOFTILE_CCACHE=OFF: not. It caches precompiled headers and what reads them only when told
# that dates do not matter to them. No base_dir: debuggers and `rooftile asm` need the sources' real places.
find_program(ROOFTILE_CCACHE ccache)
if(ROOFTILE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ROOFTILE_CCACHE})
endif()
