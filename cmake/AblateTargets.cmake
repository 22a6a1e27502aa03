# SPDX-License-Identifier: Apache-2.0
# One line per target. Headers are included as "folder/file.h", from the root of the tree.

# abl_library(NAME SRC a.cc b.cc LIBS x y): static library abl_NAME, alias abl::NAME.
function(abl_library name)
  cmake_parse_arguments(ARG "" "" "SRC;LIBS" ${ARGN})
  if(ARG_SRC)
    add_library(abl_${name} STATIC ${ARG_SRC})
    target_link_libraries(abl_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:abl::warnings>)
    target_include_directories(abl_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                                                  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ablate>")
  else()
    add_library(abl_${name} INTERFACE)
    target_link_libraries(abl_${name} INTERFACE ${ARG_LIBS})
    target_include_directories(abl_${name} INTERFACE "${PROJECT_SOURCE_DIR}")
  endif()
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

# abl_test(NAME SRC a_test.cc … LIBS x y LABELS unit [TIMEOUT seconds]): one GoogleTest program, one ctest entry.
function(abl_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRC;LIBS;LABELS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SRC})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock_main abl::warnings)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE ABLATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             ABLATE_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_property(GLOBAL APPEND PROPERTY ABLATE_TESTS ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENV}")
endfunction()
