# install_exercises(FOLDER [COMPONENT NAME]): the exercises, and what `rooftile exercise check` builds an answer with. In
# FOLDER they stand as in the repository; the wrong answers, which are the tests', stay there.
function(install_exercises folder)
  if(NOT ROOFTILE_TOOLS OR NOT TARGET rooftile-exercise)
    return()
  endif()
  set(from ${PROJECT_SOURCE_DIR}/rooftile)
  install(DIRECTORY ${from}/core ${from}/tile ${from}/exercise ${from}/backend DESTINATION ${folder}/rooftile ${ARGN}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.map")
  install(DIRECTORY ${from}/backend/emulated/include DESTINATION ${folder}/rooftile/backend/emulated ${ARGN})
  install(DIRECTORY ${from}/ops DESTINATION ${folder}/rooftile ${ARGN}
          FILES_MATCHING REGEX "[.]problem[.]h$"
          REGEX "/exercise/[a-z_]+/(exercise[.]json|plugin[.]cpp|start[.][a-z]+|solution[.][a-z]+)$"
          PATTERN ladder EXCLUDE PATTERN lessons EXCLUDE)
  install(FILES $<TARGET_FILE:rooftile-exercise> DESTINATION ${folder} ${ARGN})
endfunction()
