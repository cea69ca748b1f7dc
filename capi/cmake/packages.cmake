# Debian packages by cpack: libaerie1 (libraries and drafters), libaerie-dev, aerie-tools (the command line), and
# aerie-cuda apart where it was built. `cmake --preset debian && cmake --build --preset debian && cpack --preset debian`.
# tests/full.sh installs them into a clean Debian and asks lintian about them.
set(CPACK_PACKAGE_NAME aerie)
set(CPACK_PACKAGE_VENDOR "Aerie")
set(CPACK_PACKAGE_CONTACT "Aerie maintainers <maintainers@aerie.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)  # whatever the umask of who builds

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

# aerie_deb(component package section text): what it is called and says of itself below the project's line; its licences.
function(aerie_deb component name section text)
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${COMPONENT}_DESCRIPTION "${text}" PARENT_SCOPE)
  if(NOT component STREQUAL "runtime")
    set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_DEPENDS "${runtime} ${exactly}" PARENT_SCOPE)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/capi/debian/copyright DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name}
    COMPONENT ${component})
endfunction()

aerie_deb(runtime ${runtime} libs
  "Aerie generates text with a language model, several tokens per pass of the\nmodel, bit for bit the text that the model alone would have written. These\nare its libraries and drafters.")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")  # the C ABI only grows
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/capi/debian/triggers)

aerie_deb(development libaerie-dev libdevel
  "Headers, CMake and pkg-config files of Aerie, and its static libraries.")
if(AERIE_STATIC)  # libaerie.a leaves these to whoever links it
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libhwy-dev, libzstd-dev, libxxhash-dev, libpcre2-dev")
endif()

aerie_deb(tools aerie-tools utils
  "The command line: runs, measures, converts, verifies and profiles models,\nand checks drafter plugins.")

if(TARGET aerie-cuda)
  aerie_deb(cuda aerie-cuda libs
    "The CUDA backend, loaded by libaerie when a program asks for it.\nContains the CUDA runtime and needs NVIDIA's driver.")
endif()
include(CPack)
