# The compile budget: a launcher writes the CPU seconds of each compile beside its object, and
# tests/compile_budget_test.cpp adds them up. Also without tests: turning them on should not compile everything anew.
function(record_compile_seconds target)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/scripts/compile_seconds.sh)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set_property(TARGET ${target} APPEND PROPERTY CXX_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endfunction()
