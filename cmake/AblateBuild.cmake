# SPDX-License-Identifier: Apache-2.0
# How everything is compiled: language, folders, and the faster tools where the machine has them.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=2097152)  # KiB: collecting garbage among precompiled headers costs a tenth of the time
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # the time is spent in LibTorch and SQLite; -O3 costs a fifth more to compile
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
include(GNUInstallDirs)
set(ABLATE_LIBRARY_DIR "${CMAKE_INSTALL_LIBDIR}/ablate")  # LibTorch's libraries, beside ours
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${ABLATE_LIBRARY_DIR}")
find_package(Threads REQUIRED)

find_program(ABLATE_CCACHE ccache)
if(ABLATE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # pch_defines and time_macros are what ccache needs to cache files that use a precompiled header. CCACHE_DEPEND: it knows a file by the
  # headers that the compiler names, and does not preprocess it first, which would find the precompiled header of before a change. It reads
  # them after the compiler has finished: only exact file times (no sloppiness for mtime or ctime) keep out a file that was edited meanwhile
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_DEPEND=1 "${ABLATE_CCACHE}")
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
find_program(ABLATE_MOLD mold)
if(ABLATE_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()
if(ABLATE_SANITIZE)
  add_compile_options(-fsanitize=${ABLATE_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ABLATE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND ABLATE_SANITIZE MATCHES "undefined")
    # Two checks of each pointer cost GCC as long to compile as all others together. A null pointer ends the program anyway, and
    # clang's, of `make fuzz`, looks at both.
    add_compile_options(-fno-sanitize=null,alignment)
  endif()
  if(ABLATE_FUZZ)  # what does not hold ends the program, or nobody would see it among a million inputs
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

add_library(abl_warnings INTERFACE)
add_library(abl::warnings ALIAS abl_warnings)
target_compile_options(abl_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
                                              -Woverloaded-virtual -Wno-missing-field-initializers
                                              -Werror=switch  # a new value of an enumeration: every place must know it
                                              $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>
                                              $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # GCC 12: false alarms on std::string
