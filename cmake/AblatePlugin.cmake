# SPDX-License-Identifier: Apache-2.0
# ablate_add_plugin(NAME a.cc …): NAME.so, a shared library that ablate-trainer loads (docs/plugins.md). For this tree and for
# find_package(ablate).
function(ablate_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE abl::plugin)
  target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:LibTorch::LibTorch,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
                                           CXX_VISIBILITY_PRESET hidden)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    target_compile_options(${name} PRIVATE -O2)
  endif()
  # The digest of the file is part of a trial's identity: the same source is to give the same bytes wherever it, ablate and PyTorch lie. Of
  # two options that match the compiler takes the later one.
  target_compile_options(${name} PRIVATE "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build" "-ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=.")
  foreach(_library IN ITEMS abl::plugin LibTorch::LibTorch)
    get_target_property(_folders ${_library} INTERFACE_INCLUDE_DIRECTORIES)
    foreach(_folder IN LISTS _folders)
      string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" _folder "${_folder}")  # in this tree
      if(IS_ABSOLUTE "${_folder}")
        target_compile_options(${name} PRIVATE "-ffile-prefix-map=${_folder}=${_library}")
      endif()
    endforeach()
  endforeach()
endfunction()
