# SPDX-License-Identifier: Apache-2.0
# One line per target. Headers are included as "folder/file.h", from the root of the tree.

# abl_library(NAME [FOLDERS . layers …] [EXCEPT a.cc …] [SRC a.cc …] LIBS x y): static library abl_NAME, alias abl::NAME, of every .cc of this
# folder, or of those named: a folder is its list. EXCEPT: what is a program's or another target's. SRC: these alone, instead.
function(abl_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;EXCEPT;SRC;LIBS" ${ARGN})
  set(_sources ${ARG_SRC})
  if(NOT ARG_SRC)
    if(NOT ARG_FOLDERS)
      set(ARG_FOLDERS .)
    endif()
    list(TRANSFORM ARG_FOLDERS APPEND "/*.cc" OUTPUT_VARIABLE _patterns)
    list(TRANSFORM _patterns REPLACE "^\\./" "")
    file(GLOB _sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" ${_patterns})
    if(ARG_EXCEPT)
      list(REMOVE_ITEM _sources ${ARG_EXCEPT})
    endif()
  endif()
  add_library(abl_${name} STATIC ${_sources})
  target_link_libraries(abl_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:abl::warnings>)
  target_include_directories(abl_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                                                "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ablate>")
  add_library(abl::${name} ALIAS abl_${name})
endfunction()

# abl_program(NAME SRC main.cc LIBS x y): an executable in build/bin, installed.
function(abl_program name)
  cmake_parse_arguments(ARG "" "" "SRC;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SRC})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} abl::warnings)
  target_compile_definitions(${name} PRIVATE ABLATE_VERSION="${PROJECT_VERSION}")
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
endfunction()

# abl_test_folder(NAME LIBS x y LABELS unit [EXCEPT a.cc …] [SRC elsewhere.cc …] [FILTER "-Slow*"] [TIMEOUT seconds]
#                 [ENV A=1 …] [PRECOMPILED torch]): every .cc of a folder of tests as one GoogleTest program, NAME_test, and one ctest entry of
# that name; with a filter, an entry for those tests alone. One program: linking costs more than compiling a test.
function(abl_test_folder name)
  cmake_parse_arguments(ARG "" "FILTER;TIMEOUT;PRECOMPILED" "LIBS;LABELS;EXCEPT;SRC;ENV" ${ARGN})
  set(_program ${name}_test)
  file(GLOB _sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" *.cc)
  if(ARG_EXCEPT)
    list(REMOVE_ITEM _sources ${ARG_EXCEPT})
  endif()
  add_executable(${_program} ${_sources} ${ARG_SRC})
  set_target_properties(${_program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${_program} PRIVATE ${ARG_LIBS} GTest::gmock_main abl::warnings)
  target_include_directories(${_program} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${_program} PRIVATE ABLATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                 ABLATE_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED test)
  endif()
  abl_use_precompiled(${_program} ${ARG_PRECOMPILED})
  if(name IN_LIST ABLATE_SERVICE_FOLDERS)
    list(APPEND ARG_LABELS service)
  endif()
  abl_test_entry(${_program} ${_program} FILTER "${ARG_FILTER}" LABELS ${ARG_LABELS} TIMEOUT "${ARG_TIMEOUT}" ENV ${ARG_ENV})
endfunction()

# abl_test_entry(ENTRY PROGRAM [FILTER "*Gpu*"] LABELS cuda [TIMEOUT seconds] [ENV A=1 …]): some tests of a program, by name.
function(abl_test_entry name program)
  cmake_parse_arguments(ARG "" "FILTER;TIMEOUT" "LABELS;ENV" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ABLATE_SANITIZE)  # tests take several times as long
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  if(ARG_FILTER)
    list(APPEND ARG_ENV "GTEST_FILTER=${ARG_FILTER}")
  endif()
  add_test(NAME ${name} COMMAND ${program})
  # PROCESSORS 2: one processor, as `make test` counts
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENV}" PROCESSORS 2)
endfunction()

# abl_headers_digest(VARIABLE x/a.h …): a digest of headers of this tree, by their names from its root; when one changes CMake runs again.
# Sets ABLATE_COMPILER_MAJOR as well: both are what a plugin and its trainer must have in common.
function(abl_headers_digest variable)
  list(SORT ARGN)
  set(_digests "")
  foreach(_header IN LISTS ARGN)
    file(SHA256 "${PROJECT_SOURCE_DIR}/${_header}" _digest)
    string(APPEND _digests "${_header} ${_digest}\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${_header}")
  endforeach()
  string(SHA256 _digest "${_digests}")
  string(SUBSTRING "${_digest}" 0 12 _digest)
  string(REGEX MATCH "^[0-9]+" _major "${CMAKE_CXX_COMPILER_VERSION}")
  set(${variable} "${_digest}" PARENT_SCOPE)
  set(ABLATE_COMPILER_MAJOR "${_major}" PARENT_SCOPE)
endfunction()
