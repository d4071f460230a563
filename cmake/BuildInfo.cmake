# Writes generated/build_info.cpp anew whenever the commit or the sources change, so that a result file says which build
# measured it.
set(FDBENCH_BUILD_INFO ${PROJECT_BINARY_DIR}/generated/build_info.cpp)
set(cuda_version "")
if(FDBENCH_HAVE_CUDA)
  set(cuda_version ${CMAKE_CUDA_COMPILER_VERSION})
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
add_custom_target(fdbench_build_info
  COMMAND ${CMAKE_COMMAND} -DOUT=${FDBENCH_BUILD_INFO} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
          -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in -DVERSION=${PROJECT_VERSION}
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DCUDA=${cuda_version}"
          "-DFLAGS=${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS_${build_type_upper}} ${CMAKE_CXX_FLAGS}"
          -P ${PROJECT_SOURCE_DIR}/cmake/WriteBuildInfo.cmake
  BYPRODUCTS ${FDBENCH_BUILD_INFO}
  VERBATIM)
set_source_files_properties(${FDBENCH_BUILD_INFO} PROPERTIES GENERATED TRUE)
