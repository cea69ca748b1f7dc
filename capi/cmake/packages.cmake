# Debian packages by cpack: libaerie1 (libraries and drafters), libaerie-dev, aerie-tools (the command line), and
# aerie-cuda apart where it was built. `cmake --preset debian && cmake --build --preset debian && cpack --preset debian`.
set(CPACK_PACKAGE_NAME aerie)
set(CPACK_PACKAGE_VENDOR "Aerie")
set(CPACK_PACKAGE_CONTACT "Aerie maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_COMPONENTS_ALL runtime development tools)
if(TARGET aerie-cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # of libraries from outside; ours are named below, to the very version
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})

set(runtime libaerie${AERIE_SOVERSION})
set(exactly "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Lossless speculative decoding: the runtime, text library and drafters")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libaerie-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime} ${exactly}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Lossless speculative decoding: headers, CMake and pkg-config files")
if(AERIE_STATIC)  # libaerie.a leaves these to whoever links it
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libhwy-dev, libzstd-dev, libxxhash-dev, libpcre2-dev")
endif()

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME aerie-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${runtime} ${exactly}")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Lossless speculative decoding: the command line")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME aerie-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${runtime} ${exactly}")
set(CPACK_COMPONENT_CUDA_DESCRIPTION "Lossless speculative decoding: the CUDA backend")
include(CPack)
