# Every package is looked for first; a pinned download stands in only where FDBENCH_FETCH allows it.
find_package(Threads REQUIRED)

function(fdbench_dependency name target url hash)
  find_package(${name} QUIET)
  if(TARGET ${target})
    return()
  endif()
  if(NOT FDBENCH_FETCH)
    message(FATAL_ERROR "${name} was not found. Install it (scripts/quickstart.sh does on Debian and Ubuntu) or configure with "
                        "-DFDBENCH_FETCH=ON to download a pinned version.")
  endif()
  include(FetchContent)
  FetchContent_Declare(fdbench_${name} URL ${url} URL_HASH SHA256=${hash})
  FetchContent_MakeAvailable(fdbench_${name})
endfunction()

fdbench_dependency(fmt fmt::fmt https://github.com/fmtlib/fmt/archive/refs/tags/10.2.1.tar.gz
                   1250e4cc58bf06ee631567523f48848dc4596133e163f02615c97f78bab6c811)
fdbench_dependency(nlohmann_json nlohmann_json::nlohmann_json
                   https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
                   d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
fdbench_dependency(CLI11 CLI11::CLI11 https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
                   f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a)

# Highway is optional: Debian's and Ubuntu's libhwy-dev has a pkg-config file, newer ones a CMake package too.
set(FDBENCH_HAVE_HIGHWAY FALSE)
set(FDBENCH_SIMD_STATUS "off (FDBENCH_SIMD=OFF): plain loops")
if(NOT FDBENCH_SIMD STREQUAL "OFF")
  find_path(FDBENCH_HWY_INCLUDE hwy/highway.h)
  find_library(FDBENCH_HWY_LIBRARY hwy)
  if(FDBENCH_HWY_INCLUDE AND FDBENCH_HWY_LIBRARY)
    set(FDBENCH_HAVE_HIGHWAY TRUE)
    set(FDBENCH_SIMD_STATUS "on (Highway)")
    add_library(fdbench_highway INTERFACE)
    target_include_directories(fdbench_highway SYSTEM INTERFACE ${FDBENCH_HWY_INCLUDE})
    target_link_libraries(fdbench_highway INTERFACE ${FDBENCH_HWY_LIBRARY})
    target_compile_definitions(fdbench_highway INTERFACE FDBENCH_HAVE_HIGHWAY=1)
  elseif(FDBENCH_SIMD STREQUAL "ON")
    message(FATAL_ERROR "FDBENCH_SIMD=ON but Highway (libhwy-dev) was not found.")
  else()
    set(FDBENCH_SIMD_STATUS "off (Highway not installed): plain loops")
  endif()
endif()
