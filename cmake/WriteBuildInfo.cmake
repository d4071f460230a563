# Run as a script by the target fdbench_build_info.
find_program(GIT git)
set(COMMIT "unknown")
set(DIRTY "false")
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(COMMIT ${commit})
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
    if(NOT changes STREQUAL "")
      set(DIRTY "true")
    endif()
  endif()
endif()
string(STRIP "${FLAGS}" FLAGS)
configure_file(${TEMPLATE} ${OUT} @ONLY)  # leaves the file alone when nothing changed
