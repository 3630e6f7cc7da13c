# SPDX-License-Identifier: BSD-2-Clause
# Cross-compiles for arm64 with Debian's gcc-aarch64-linux-gnu, and runs what is built under qemu-user (packages.txt, "all"):
#
#   cmake/arm64-sysroot.sh build-arm64/sysroot && cmake --preset arm64 && cmake --build --preset arm64
#
# SYSROOT has the libraries; build-arm64/sysroot where it is not given.
if(NOT DEFINED SYSROOT)
	set(SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-arm64/sysroot)
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${SYSROOT}/usr/share/pkgconfig)
