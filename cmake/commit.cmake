# Writes the header that names the commit of a source folder; it changes when that does.
#   cmake -DSOURCE=FOLDER -DHEADER=FILE -P commit.cmake
set(commit "")
set(date "")
if(EXISTS ${SOURCE}/.git)  # a folder, or a worktree's file; not the checkout of another project around this one
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --tags --abbrev=12
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C ${SOURCE} log -1 --format=%cs
                  OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit STREQUAL "")
  set(commit "unknown")
endif()
if(date STREQUAL "")
  string(TIMESTAMP date "%Y-%m-%d" UTC)
endif()
set(text "#define ROOFTILE_COMMIT \"${commit}\"\n#define ROOFTILE_COMMIT_DATE \"${date}\"\n")
set(before "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${HEADER} "${text}")
endif()
