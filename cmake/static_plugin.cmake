# The static library holds the CPU's plug-ins. Each is linked into one object of which only the plug-in's function can
# be seen, under a name of its own: else the linker would take one instruction set's copy of a std:: template for all,
# and a CPU without AVX-512 meet its instructions in baseline code.
#   link_into_library(TARGET SYMBOL)    TARGET: an object library
function(link_into_library target symbol)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
  set(objects "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,[.]o$>")  # not the precompiled header
  # --force-group-allocation: no COMDAT group remains, of which the linker would keep the first.
  add_custom_command(OUTPUT ${object}
                     COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${object} ${objects}
                     COMMAND ${CMAKE_OBJCOPY} --redefine-sym rooftile_plugin=${symbol} ${object}
                     COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${symbol} ${object}
                     DEPENDS ${target} ${objects}
                     COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(rooftile PRIVATE ${object})
endfunction()
