# Debian's MinGW-w64 (GCC, POSIX threads) for 64-bit Windows, the libraries in AERIE_SYSROOT (tests/cross/mingw_sysroot.sh),
# and Wine to run what comes out.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AERIE_SYSROOT)  # else CMake's own test programs would not have it

set(flags "-DPCRE2_STATIC -Wa,-muse-unaligned-vector-move")  # the last: CMakeLists.txt, for libraries too
set(CMAKE_C_FLAGS_INIT ${flags})
set(CMAKE_CXX_FLAGS_INIT ${flags})
# GCC's own libraries are linked in: who has a program of ours need not have them.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-static")
endforeach()

set(CMAKE_FIND_ROOT_PATH ${AERIE_SYSROOT} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # flatc and pkg-config are the build machine's
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${AERIE_SYSROOT}/lib/pkgconfig:${AERIE_SYSROOT}/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR wine)
