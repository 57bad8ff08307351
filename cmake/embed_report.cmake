# The report's page, style, script and Chart.js as sources: report_sources.
find_file(ROOFTILE_CHART_JS NAMES chart.umd.js chart.min.js Chart.min.js chart.js Chart.js
          PATHS /usr/share/javascript/chart.js REQUIRED)
set(report_sources "")
foreach(part "kReportHtml=${CMAKE_CURRENT_SOURCE_DIR}/harness/report/page.html"
             "kReportCss=${CMAKE_CURRENT_SOURCE_DIR}/harness/report/page.css"
             "kReportJs=${CMAKE_CURRENT_SOURCE_DIR}/harness/report/page.js" "kChartJs=${ROOFTILE_CHART_JS}")
  string(REGEX REPLACE "=.*" "" name ${part})
  string(REGEX REPLACE "^[^=]*=" "" input ${part})
  set(output ${ROOFTILE_GENERATED_INCLUDE_DIR}/${name}.cpp)
  add_custom_command(OUTPUT ${output} DEPENDS ${input} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                     COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name}
                             -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  list(APPEND report_sources ${output})
endforeach()
