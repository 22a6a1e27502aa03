# SPDX-License-Identifier: Apache-2.0
# Headers that cost seconds in each file that includes them are precompiled once for all targets that see them. Files still include
# what they use: a build with -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows what one has forgotten.
#
# They hold what nearly all of these include and nothing else: what a header leaves to be instantiated is instantiated in each unit that
# uses it (2.5 s for CLI11's, which a dozen units need).
#
# A precompiled header serves only compilations with the same code generation flags: hence libraries and programs alike are compiled
# with -fPIC (CMake would give programs -fPIE), all of them with abl::warnings.

# abl_precompiled(NAME LIBS x y HEADERS <a> <b> [OPTIONS -O1]): a set of headers, of these libraries, for targets with these options.
function(abl_precompiled name)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS;OPTIONS" ${ARGN})
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.cc" CONTENT "// Empty: its target only holds precompiled headers.\n")
  add_library(abl_${name}_headers STATIC "${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.cc")
  target_link_libraries(abl_${name}_headers PRIVATE ${ARG_LIBS} Threads::Threads abl::warnings)
  target_compile_options(abl_${name}_headers PUBLIC ${ARG_OPTIONS})
  target_precompile_headers(abl_${name}_headers PRIVATE ${ARG_HEADERS})
endfunction()

# abl_use_precompiled(TARGET NAME): after the target was added.
function(abl_use_precompiled target name)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:abl_${name}_headers,INTERFACE_COMPILE_OPTIONS>)
  target_precompile_headers(${target} REUSE_FROM abl_${name}_headers)
endfunction()
