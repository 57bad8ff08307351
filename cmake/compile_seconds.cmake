# The compile budget: a launcher writes the CPU seconds of each compile beside its object, and
# tests/compile_budget_test.cpp adds them up. Also without tests: turning them on should not compile everything anew.
#   record_compile_seconds(TARGET [LANGUAGE])   CXX, or CUDA
function(record_compile_seconds target)
  set(language CXX)
  if(ARGC GREATER 1)
    set(language ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES ${language}_COMPILER_LAUNCHER
                        ${PROJECT_SOURCE_DIR}/scripts/compile_seconds.sh)
  if(CMAKE_${language}_COMPILER_LAUNCHER)
    set_property(TARGET ${target} APPEND PROPERTY ${language}_COMPILER_LAUNCHER ${CMAKE_${language}_COMPILER_LAUNCHER})
  endif()
endfunction()
