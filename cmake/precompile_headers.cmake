# What most files of the harness and the command include, read once: an eighth of the time that they take to compile.
# Sanitized builds see what each file includes.
function(precompile_headers target)
  if(NOT ROOFTILE_SANITIZE)
    target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <cstdint> <cstring> <filesystem> <fmt/format.h>
                              <functional> <map> <memory> <nlohmann/json.hpp> <set> <stdexcept> <string> <vector>)
  endif()
endfunction()
