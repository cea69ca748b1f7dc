# Debian's cross compiler for 64-bit ARM, the target's libraries in AERIE_SYSROOT (tests/cross/sysroot.sh), and
# qemu to run what comes out. The C and C++ libraries are the cross compiler's own, in /usr/aarch64-linux-gnu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AERIE_SYSROOT)  # else CMake's own test programs would not have it

set(libraries ${AERIE_SYSROOT}/usr/lib/aarch64-linux-gnu)
# Behind the include folders of the project; pkg-config leaves them out, as every compiler has them.
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${AERIE_SYSROOT}/usr/include)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${AERIE_SYSROOT}/usr/include)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")
endforeach()

set(CMAKE_FIND_ROOT_PATH ${AERIE_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # flatc and pkg-config are the build machine's
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${AERIE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${AERIE_SYSROOT})

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${libraries})
